//! What makes a message malformed, [RFC 9114, section 4](https://www.rfc-editor.org/rfc/rfc9114#section-4).
//!
//! One pass over the lines, for messages in both directions: the peer's become stream errors, our own are refused.
//! Lines go to [`Check::line`] in order, and `request`, `response` or `trailers` gives the verdict.

use crate::field::Field;

/// Which rule a message breaks.
pub(crate) type Malformed = &'static str;

/// The methods that change what a response may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Method {
    #[default]
    Other,
    /// The response has no body.
    Head,
    /// What follows is a tunnel.
    Connect,
}

/// Whether a method only asks and changes nothing (RFC 9110, 9.2.1).
pub(crate) const fn is_safe(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
}

/// What a valid request means for its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Whether the method is [a safe one](is_safe).
    pub(crate) is_safe: bool,
    /// How long the body must be, if the request says so.
    pub(crate) body: Option<u64>,
}

/// What a valid response means for its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
}

impl Response {
    pub(crate) const fn is_interim(self) -> bool {
        self.status < 200
    }

    /// How long the body must be, if the response says so, as the answer to a request of that kind.
    pub(crate) const fn body(self, method: Method) -> Option<u64> {
        match method {
            Method::Head => Some(0),
            Method::Connect if self.is_success() => None,
            Method::Connect | Method::Other if matches!(self.status, 204 | 304) => Some(0),
            Method::Connect | Method::Other => self.content_length,
        }
    }

    pub(crate) const fn is_success(self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

/// The pseudo-header fields, and the fields that bear on the message itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Check<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    protocol: Option<&'a [u8]>,
    status: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
    content_length: Option<u64>,
    regular: bool,
    broken: Option<Malformed>,
}

impl<'a> Check<'a> {
    /// Takes the next line.
    #[inline]
    pub(crate) fn line(&mut self, field: Field<'a>) {
        let result = if field.name.first() == Some(&b':') {
            self.pseudo(field)
        } else {
            self.regular = true;
            self.regular(field)
        };
        if let Err(rule) = result {
            self.broken.get_or_insert(rule);
        }
    }

    fn pseudo(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if self.regular {
            return Err("a pseudo-header field after a regular one");
        }
        let place = match field.name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            b":status" => &mut self.status,
            _ => return Err("an unknown pseudo-header field"),
        };
        if place.replace(field.value).is_some() {
            return Err("a pseudo-header field occurs twice");
        }
        value(field.value)
    }

    fn regular(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        name(field.name)?;
        value(field.value)?;
        match field.name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Err("a field that belongs to one connection of HTTP/1"),
            b"te" if field.value != b"trailers" => Err("te is not \"trailers\""),
            b"host" if self.host.replace(field.value).is_some() => Err("host occurs twice"),
            b"content-length" => {
                let length = number(field.value).ok_or("content-length is not a number")?;
                match self.content_length.replace(length) {
                    Some(other) if other != length => Err("two values of content-length"),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// The lines were those of a request.
    pub(crate) fn request(self, extended_connect: bool) -> Result<Request, Malformed> {
        if let Some(rule) = self.broken {
            return Err(rule);
        }
        if self.status.is_some() {
            return Err("a request with :status");
        }
        let mut is_options = false;
        let method = self.method.ok_or("a request without :method")?;
        token(method)?;
        let is_safe = is_safe(method);
        let method = match method {
            b"CONNECT" => Method::Connect,
            b"HEAD" => Method::Head,
            b"OPTIONS" => {
                is_options = true;
                Method::Other
            }
            _ => Method::Other,
        };
        let is_connect = method == Method::Connect;
        match self.protocol {
            Some(_) if !is_connect || !extended_connect => {
                return Err(":protocol without extended CONNECT");
            }
            None if is_connect => self.connect()?,
            _ => self.target(is_options)?,
        }
        Ok(Request {
            method,
            is_safe,
            body: self.content_length.filter(|_| !is_connect),
        })
    }

    /// RFC 9114, 4.4.
    fn connect(self) -> Result<(), Malformed> {
        if self.scheme.is_some() || self.path.is_some() {
            return Err("CONNECT with :scheme or :path");
        }
        let target = self.authority.ok_or("CONNECT without :authority")?;
        authority(target)?;
        let colon = target.iter().rposition(|byte| *byte == b':');
        let port = colon.and_then(|colon| target.get(colon + 1..));
        match (colon, port.and_then(number)) {
            (Some(1..), Some(1..=0xffff)) => Ok(()),
            _ => Err("CONNECT without a host and a port"),
        }
    }

    /// RFC 9114, 4.3.1.
    fn target(self, is_options: bool) -> Result<(), Malformed> {
        let scheme = self.scheme.ok_or("a request without :scheme")?;
        let path = self.path.ok_or("a request without :path")?;
        if !scheme.first().is_some_and(u8::is_ascii_alphabetic) {
            return Err(":scheme is not a scheme");
        }
        if let Some(target) = self.authority.or(self.host) {
            authority(target)?;
        }
        if let (Some(target), Some(host)) = (self.authority, self.host)
            && target != host
        {
            return Err(":authority and host differ");
        }
        if !path
            .iter()
            .all(|byte| byte.is_ascii_graphic() && *byte != b'#')
        {
            return Err(":path holds what no path can");
        }
        if scheme.eq_ignore_ascii_case(b"https") || scheme.eq_ignore_ascii_case(b"http") {
            if self.authority.or(self.host).is_none() {
                return Err("neither :authority nor host");
            }
            match path {
                b"*" if is_options => {}
                [b'/', ..] => {}
                _ => return Err(":path doesn't begin with a slash"),
            }
        }
        Ok(())
    }

    /// The lines were those of a response.
    pub(crate) fn response(self) -> Result<Response, Malformed> {
        if let Some(rule) = self.broken {
            return Err(rule);
        }
        if self.method.is_some()
            || self.scheme.is_some()
            || self.authority.is_some()
            || self.path.is_some()
            || self.protocol.is_some()
        {
            return Err("a response with the pseudo-header fields of a request");
        }
        let status = self.status.ok_or("a response without :status")?;
        let [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] = status else {
            return Err(":status is not of three digits");
        };
        let status = number(status)
            .and_then(|status| u16::try_from(status).ok())
            .ok_or(":status is not of three digits")?;
        if status == 101 {
            return Err("HTTP/3 has no status 101");
        }
        Ok(Response {
            status,
            content_length: self.content_length,
        })
    }

    /// The lines were those of a trailer section.
    pub(crate) const fn trailers(self) -> Result<(), Malformed> {
        if let Some(rule) = self.broken {
            return Err(rule);
        }
        if self.method.is_some()
            || self.scheme.is_some()
            || self.authority.is_some()
            || self.path.is_some()
            || self.protocol.is_some()
            || self.status.is_some()
        {
            return Err("a pseudo-header field in trailers");
        }
        Ok(())
    }
}

/// A token without capitals (RFC 9114, 4.2).
fn name(name: &[u8]) -> Result<(), Malformed> {
    let class = |byte: &u8| CLASSES.get(usize::from(*byte)).copied().unwrap_or(0);
    if name.is_empty() || name.iter().any(|byte| class(byte) & LOWER == 0) {
        return Err("a field name holds what no name can");
    }
    Ok(())
}

/// RFC 9110, 5.6.2.
fn token(token: &[u8]) -> Result<(), Malformed> {
    let class = |byte: &u8| CLASSES.get(usize::from(*byte)).copied().unwrap_or(0);
    if token.is_empty() || token.iter().any(|byte| class(byte) == 0) {
        return Err(":method is not a token");
    }
    Ok(())
}

/// May stand in a token.
const TOKEN: u8 = 1;
/// May stand in a token without capitals.
const LOWER: u8 = 2;

static CLASSES: [u8; 256] = classes();

#[expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    reason = "runs at compile time, where an overrun is a compile error"
)]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        classes[byte as usize] = match byte {
            b'A'..=b'Z' => TOKEN,
            b'a'..=b'z'
            | b'0'..=b'9'
            | b'!'
            | b'#'
            | b'$'
            | b'%'
            | b'&'
            | b'\''
            | b'*'
            | b'+'
            | b'-'
            | b'.'
            | b'^'
            | b'_'
            | b'`'
            | b'|'
            | b'~' => TOKEN | LOWER,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

/// RFC 9110, 5.5: no control characters but the tab, and no white space around.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches the loop goes many bytes at a time"
)]
fn value(value: &[u8]) -> Result<(), Malformed> {
    let control = |byte: &u8| (*byte < b' ') & (*byte != b'\t') | (*byte == 0x7f);
    if value.iter().fold(false, |bad, byte| bad | control(byte)) {
        return Err("a field value holds a control character");
    }
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if blank(value.first()) || blank(value.last()) {
        return Err("white space around a field value");
    }
    Ok(())
}

/// A host and an optional port, without user information (RFC 9114, 4.3.1).
fn authority(authority: &[u8]) -> Result<(), Malformed> {
    if authority.is_empty() {
        return Err("an empty authority");
    }
    let allowed =
        |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'/' | b'?' | b'#' | b'\\');
    if !authority.iter().all(allowed) {
        return Err("an authority holds what no host and port can");
    }
    Ok(())
}

/// A decimal number of digits alone.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::{Check, Method, Request, Response};
    use crate::field::Field;

    fn check<'a>(lines: &[(&'a str, &'a str)]) -> Check<'a> {
        let mut check = Check::default();
        for (name, value) in lines {
            check.line(Field::new(*name, *value));
        }
        check
    }

    fn get<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let base = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "example.com"),
            (":path", "/"),
        ];
        [&base[..], more].concat()
    }

    fn is_request(lines: &[(&str, &str)]) -> bool {
        check(lines).request(false).is_ok()
    }

    fn is_response(lines: &[(&str, &str)]) -> bool {
        check(lines).response().is_ok()
    }

    #[test]
    fn usual_requests_are_accepted() {
        let more = [
            ("host", "example.com"),
            ("te", "trailers"),
            ("content-length", "12"),
            ("content-length", "12"),
            ("cookie", "a=b"),
            ("cookie", "c=d"),
            ("x-latin", "\u{fc} with inner\tspace"),
            ("empty", ""),
        ];
        let request = check(&get(&more)).request(false);
        let expected = Request {
            method: Method::Other,
            is_safe: true,
            body: Some(12),
        };
        assert_eq!(request, Ok(expected));
        assert!(is_request(&[
            (":method", "OPTIONS"),
            (":scheme", "https"),
            (":path", "*"),
            ("host", "example.com")
        ]));
        assert!(is_request(&[
            (":method", "CONNECT"),
            (":authority", "example.com:443")
        ]));
        assert!(is_request(&[
            (":method", "CONNECT"),
            (":authority", "[::1]:443")
        ]));
        assert!(is_request(&[
            (":method", "GET"),
            (":scheme", "custom"),
            (":path", "")
        ]));
    }

    /// RFC 9114, 4.2 and 10.3: names and values.
    #[test]
    fn bad_names_and_values_are_malformed() {
        for line in [
            ("Upper", "x"),
            ("", "x"),
            ("a b", "x"),
            ("a:b", "x"),
            ("a\r", "x"),
            ("a\n", "x"),
            ("a\0", "x"),
            ("\u{fc}", "x"),
            ("a", "x\r\ny: z"),
            ("a", "x\ny"),
            ("a", "x\0"),
            ("a", "\u{7f}"),
            ("a", " x"),
            ("a", "x "),
            ("a", "x\t"),
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("te", "trailers, gzip"),
            ("content-length", ""),
            ("content-length", "-1"),
            ("content-length", "+1"),
            ("content-length", "1, 1"),
            ("content-length", "0x1"),
            ("content-length", "18446744073709551616"),
            (":path", "/"),
            (":unknown", "x"),
            (":status", "200"),
            (":protocol", "websocket"),
            ("host", "other.com"),
        ] {
            assert!(!is_request(&get(&[line])), "{line:?}");
        }
        assert!(!is_request(&get(&[
            ("content-length", "1"),
            ("content-length", "2")
        ])));
        assert!(!is_request(&get(&[
            ("host", "example.com"),
            ("host", "example.com")
        ])));
    }

    /// RFC 9114, 4.3: pseudo-header fields come first, once, all that are needed.
    #[test]
    fn bad_pseudo_headers_are_malformed() {
        let base = get(&[]);
        assert!(is_request(&base));
        for without in [":method", ":scheme", ":authority", ":path"] {
            let lines: Vec<_> = base
                .iter()
                .copied()
                .filter(|(n, _)| *n != without)
                .collect();
            assert!(!is_request(&lines), "{without}");
        }
        for (name, value) in [
            (":method", ""),
            (":method", "GE T"),
            (":scheme", ""),
            (":scheme", "1"),
            (":authority", ""),
            (":authority", "user@example.com"),
            (":authority", "example.com/"),
            (":authority", "a b"),
            (":path", ""),
            (":path", "*"),
            (":path", "a"),
            (":path", "/a b"),
            (":path", "/a#b"),
            (":path", "/\u{fc}"),
        ] {
            let lines: Vec<_> = base
                .iter()
                .map(|(n, v)| (*n, if *n == name { value } else { *v }))
                .collect();
            assert!(!is_request(&lines), "{name}: {value}");
        }
        let mut late = base.clone();
        late.insert(1, ("a", "b"));
        assert!(!is_request(&late));
        let empty_host = [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/"),
            ("host", ""),
        ];
        assert!(!is_request(&empty_host));
    }

    /// RFC 9114, 4.4, and RFC 9220 when it was not offered.
    #[test]
    fn bad_connects_are_malformed() {
        let connect = (":method", "CONNECT");
        for lines in [
            &[connect][..],
            &[connect, (":authority", "example.com")],
            &[connect, (":authority", ":443")],
            &[connect, (":authority", "example.com:")],
            &[connect, (":authority", "example.com:0")],
            &[connect, (":authority", "example.com:65536")],
            &[connect, (":authority", "a:1"), (":path", "/")],
            &[connect, (":authority", "a:1"), (":scheme", "https")],
        ] {
            assert!(!is_request(lines), "{lines:?}");
        }
        let mut extended = get(&[]);
        extended[0].1 = "CONNECT";
        extended.push((":protocol", "websocket"));
        assert!(!is_request(&extended));
        assert!(check(&extended).request(true).is_ok());
    }

    /// RFC 9114, 4.3.2 and 4.5.
    #[test]
    fn bad_responses_are_malformed() {
        for status in ["100", "103", "200", "404", "599"] {
            assert!(is_response(&[(":status", status)]));
        }
        for status in ["", "20", "2000", "2x0", "+20", "101", "099", " 200"] {
            assert!(!is_response(&[(":status", status)]), "{status}");
        }
        assert!(!is_response(&[]));
        assert!(!is_response(&[("a", "b"), (":status", "200")]));
        assert!(!is_response(&[(":status", "200"), (":status", "200")]));
        for line in get(&[]) {
            assert!(!is_response(&[(":status", "200"), line]));
        }
    }

    #[test]
    fn trailers_hold_no_pseudo_headers() {
        assert_eq!(check(&[("a", "b")]).trailers(), Ok(()));
        assert!(check(&[(":status", "200")]).trailers().is_err());
        assert!(check(&[(":path", "/")]).trailers().is_err());
        assert!(check(&[("A", "b")]).trailers().is_err());
    }

    #[test]
    fn some_responses_have_no_body_whatever_they_say() {
        let response = |status| Response {
            status,
            content_length: Some(5),
        };
        assert_eq!(response(200).body(Method::Other), Some(5));
        assert_eq!(response(200).body(Method::Head), Some(0));
        assert_eq!(response(304).body(Method::Other), Some(0));
        assert_eq!(response(200).body(Method::Connect), None);
        assert_eq!(response(404).body(Method::Connect), Some(5));
    }
}
