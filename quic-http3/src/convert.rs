//! Between field lines and the types of the `http` crate.
//!
//! A received message becomes an `http` one without its values being copied: they share the list's buffer.

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, Parts, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Response, StatusCode};

use crate::field::{Field, Fields};

/// The `http` crate has no place for a message, such as one with more than 32768 field lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertError(&'static str);

impl std::fmt::Display for ConvertError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ConvertError {}

impl Fields {
    /// The header section of a request as an [`http::Request`]. Cookie lines are joined into one
    /// ([RFC 9114, section 4.2.1](https://www.rfc-editor.org/rfc/rfc9114#section-4.2.1)).
    ///
    /// # Errors
    ///
    /// When a part of it can't be represented.
    pub fn into_request(self) -> Result<Request<()>, ConvertError> {
        let (headers, pseudo) = split(self)?;
        let mut request = Request::new(());
        let method = pseudo.method.ok_or(ConvertError("no :method"))?;
        *request.method_mut() =
            Method::from_bytes(&method).map_err(|_invalid| ConvertError("an invalid :method"))?;
        let mut parts = Parts::default();
        let host = headers.get(HOST).map(HeaderValue::as_bytes);
        let authority = match (pseudo.authority, host) {
            (Some(authority), _) => Some(Authority::from_maybe_shared(authority)),
            (None, Some(host)) => Some(Authority::try_from(host)),
            (None, None) => None,
        };
        parts.authority = authority
            .transpose()
            .map_err(|_invalid| ConvertError("an invalid authority"))?;
        if let (Some(scheme), Some(_)) = (pseudo.scheme, &parts.authority) {
            let scheme = Scheme::try_from(&*scheme);
            parts.scheme = Some(scheme.map_err(|_invalid| ConvertError("an invalid :scheme"))?);
        }
        if let Some(path) = pseudo.path {
            let path = PathAndQuery::from_maybe_shared(path);
            parts.path_and_query = Some(path.map_err(|_invalid| ConvertError("an invalid :path"))?);
        }
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_invalid| {
            ConvertError("an invalid combination of scheme, authority and path")
        })?;
        *request.version_mut() = http::Version::HTTP_3;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The header section of a response as an [`http::Response`].
    ///
    /// # Errors
    ///
    /// When a part of it can't be represented.
    pub fn into_response(self) -> Result<Response<()>, ConvertError> {
        let (headers, pseudo) = split(self)?;
        let status = pseudo.status.ok_or(ConvertError("no :status"))?;
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_bytes(&status)
            .map_err(|_invalid| ConvertError("an invalid :status"))?;
        *response.version_mut() = http::Version::HTTP_3;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// A trailer section, or the regular lines of any section.
    ///
    /// # Errors
    ///
    /// When a part of it can't be represented.
    pub fn into_headers(self) -> Result<HeaderMap, ConvertError> {
        split(self).map(|(headers, _)| headers)
    }
}

#[derive(Default)]
struct Pseudo {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    status: Option<Bytes>,
}

const INVALID_VALUE: ConvertError = ConvertError("an invalid field value");
const TOO_MANY: ConvertError = ConvertError("more field lines than a HeaderMap can hold");

fn split(fields: Fields) -> Result<(HeaderMap, Pseudo), ConvertError> {
    let mut pseudo = Pseudo::default();
    let mut headers = HeaderMap::try_with_capacity(fields.len()).map_err(|_too_many| TOO_MANY)?;
    let mut cookies = Vec::new();
    let bytes = Bytes::from(fields.into_bytes());
    for field in Fields::lines_of(&bytes) {
        let value = bytes.slice_ref(field.value);
        match field.name {
            b":method" => pseudo.method = Some(value),
            b":scheme" => pseudo.scheme = Some(value),
            b":authority" => pseudo.authority = Some(value),
            b":path" => pseudo.path = Some(value),
            b":status" => pseudo.status = Some(value),
            [b':', ..] => {}
            b"cookie" => cookies.push(value),
            name => {
                let name = HeaderName::from_lowercase(name)
                    .map_err(|_invalid| ConvertError("an invalid field name"))?;
                let mut value =
                    HeaderValue::from_maybe_shared(value).map_err(|_invalid| INVALID_VALUE)?;
                value.set_sensitive(field.sensitive);
                headers
                    .try_append(name, value)
                    .map_err(|_too_many| TOO_MANY)?;
            }
        }
    }
    if !cookies.is_empty() {
        let joined = Bytes::from(cookies.join(&b"; "[..]));
        let mut value = HeaderValue::from_maybe_shared(joined).map_err(|_invalid| INVALID_VALUE)?;
        value.set_sensitive(true);
        headers
            .try_append(http::header::COOKIE, value)
            .map_err(|_too_many| TOO_MANY)?;
    }
    Ok((headers, pseudo))
}

/// The lines of a request. The scheme is https and the path / where the URI says nothing.
pub(crate) fn request_lines<B>(request: &Request<B>) -> impl Iterator<Item = Field<'_>> {
    let uri = request.uri();
    let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
    let authority = uri
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    let is_connect = request.method() == Method::CONNECT;
    let scheme = uri.scheme_str().unwrap_or("https");
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let pseudo = [
        Some(Field::new(":method", request.method().as_str())),
        (!is_connect).then(|| Field::new(":scheme", scheme)),
        authority
            .or(host)
            .map(|authority| Field::new(":authority", authority)),
        (!is_connect).then(|| Field::new(":path", path)),
    ];
    let headers = lines(request.headers()).filter(|field| field.name != b"host");
    pseudo.into_iter().flatten().chain(headers)
}

/// The lines of a response.
pub(crate) fn response_lines<'a>(
    status: &'a StatusCode,
    headers: &'a HeaderMap,
) -> impl Iterator<Item = Field<'a>> {
    let status = Field::new(":status", status.as_str());
    std::iter::once(status).chain(lines(headers))
}

/// The lines of a header map.
pub(crate) fn lines(headers: &HeaderMap) -> impl Iterator<Item = Field<'_>> {
    headers.iter().map(|(name, value)| Field {
        name: name.as_str().as_bytes(),
        value: value.as_bytes(),
        sensitive: value.is_sensitive(),
    })
}

#[cfg(test)]
mod tests {
    use http::{Method, Request, Response};

    use super::{request_lines, response_lines};
    use crate::field::{Field, Fields};

    #[test]
    fn a_request_comes_back() {
        let request = Request::builder()
            .method("POST")
            .uri("https://example.com:8443/a/b?c=d")
            .header("content-type", "text/plain")
            .header("x-custom", "1")
            .header("x-custom", "2")
            .body(())
            .unwrap();
        let fields: Fields = request_lines(&request).collect();
        assert_eq!(fields.path(), Some(&b"/a/b?c=d"[..]));
        let back = fields.into_request().unwrap();
        assert_eq!(back.method(), Method::POST);
        assert_eq!(back.uri(), request.uri());
        assert_eq!(back.headers(), request.headers());
    }

    #[test]
    fn host_becomes_the_authority() {
        let request = Request::builder()
            .uri("/x")
            .header("host", "example.com")
            .body(())
            .unwrap();
        let fields: Fields = request_lines(&request).collect();
        let lines = [
            Field::new(":method", "GET"),
            Field::new(":scheme", "https"),
            Field::new(":authority", "example.com"),
            Field::new(":path", "/x"),
        ];
        assert!(fields.iter().eq(lines));
    }

    #[test]
    fn connect_and_options_come_back() {
        for lines in [
            &[
                Field::new(":method", "CONNECT"),
                Field::new(":authority", "example.com:443"),
            ][..],
            &[
                Field::new(":method", "OPTIONS"),
                Field::new(":scheme", "https"),
                Field::new(":authority", "example.com"),
                Field::new(":path", "*"),
            ],
        ] {
            let fields: Fields = lines.iter().copied().collect();
            let request = fields.clone().into_request().unwrap();
            let back: Fields = request_lines(&request).collect();
            assert_eq!(back, fields);
        }
    }

    /// RFC 9114, 4.2.1.
    #[test]
    fn cookies_are_joined() {
        let fields: Fields = [
            Field::new(":status", "200"),
            Field::new("cookie", "a=b"),
            Field::new("cookie", "c=d"),
        ]
        .into_iter()
        .collect();
        let response = fields.into_response().unwrap();
        assert_eq!(response.headers()["cookie"], "a=b; c=d");
        assert!(response.headers()["cookie"].is_sensitive());
    }

    #[test]
    fn a_response_comes_back() {
        let response = Response::builder()
            .status(404)
            .header("content-length", "3")
            .body(())
            .unwrap();
        let fields: Fields = response_lines(&response.status(), response.headers()).collect();
        let back = fields.into_response().unwrap();
        assert_eq!(back.status(), 404);
        assert_eq!(back.headers(), response.headers());
    }

    #[test]
    fn too_many_lines_are_an_error_and_no_panic() {
        let line = Field::new("a", "");
        let fields: Fields = std::iter::repeat_n(line, 40_000).collect();
        assert!(fields.into_headers().is_err());
    }
}
