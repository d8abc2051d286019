//! URLs that name something an HTTP/3 server has: `https://HOST[:PORT][/PATH]`.

use std::{
    fmt,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    sync::mpsc,
    thread,
    time::Duration,
};

use http::Uri;

use crate::failure::Failure;

/// A URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    uri: Uri,
    host: String,
    port: u16,
}

impl Target {
    /// Takes `text` apart.
    ///
    /// # Errors
    ///
    /// A line that says what a URL for this program looks like.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let fail = |what: &str| Failure::new(format!("{text}: {what}"));
        let uri: Uri = text
            .parse()
            .map_err(|error| fail(&format!("not a URL ({error})")))?;
        let uri = with_root_path(uri);
        match uri.scheme_str() {
            Some("https") => {}
            Some(_) => return Err(fail("only https URLs can be fetched over HTTP/3")),
            None => return Err(fail("not a URL (it begins with https://)")),
        }
        let authority = uri.authority().ok_or_else(|| fail("a host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(fail("user names in URLs are not supported"));
        }
        let host = authority.host();
        let host = match host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
        {
            Some(literal) => match literal.parse::<IpAddr>() {
                Ok(IpAddr::V6(ip)) => ip.to_string(),
                Ok(IpAddr::V4(_)) | Err(_) => return Err(fail("not an IPv6 address in brackets")),
            },
            None => host.to_ascii_lowercase(),
        };
        if host.is_empty() {
            return Err(fail("a host is missing"));
        }
        let after_host = authority.as_str().rsplit(']').next().unwrap_or_default();
        let port = match (authority.port(), after_host.contains(':')) {
            (Some(port), _) if port.as_u16() > 0 => port.as_u16(),
            (None, false) => 443,
            (Some(_), _) | (None, true) => return Err(fail("not a port number after the host")),
        };
        Ok(Self { uri, host, port })
    }

    /// The URL as a request has it.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The host, lower case; an IPv6 address has no brackets. What the server's certificate must be for.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 443 if the URL has none.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether both can be had over one connection.
    #[must_use]
    pub fn has_same_server(&self, other: &Self) -> bool {
        self.host == other.host && self.port == other.port
    }

    /// What `:authority` says.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or("", http::uri::Authority::as_str)
    }

    /// What `:path` says.
    #[must_use]
    pub fn path(&self) -> &str {
        self.uri
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str)
    }

    /// A name for a file that the body is saved in: the path's last segment, or `index.html`. Never a path, a hidden
    /// file, or a name with a special meaning.
    #[must_use]
    pub fn file_name(&self) -> String {
        let last = self.uri.path().rsplit('/').next().unwrap_or_default();
        let clean: String = last
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "._-+,=~".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .take(200)
            .collect();
        let clean = clean.trim_start_matches('.').trim_end_matches('.');
        if clean.is_empty() {
            return "index.html".to_owned();
        }
        clean.to_owned()
    }

    /// The server's addresses, in the system's order of preference.
    ///
    /// # Errors
    ///
    /// When the name has none, or none came within `timeout`.
    pub fn resolve(&self, timeout: Duration) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(ip) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, self.port)]);
        }
        // The system's resolver knows no timeout: it is left behind in its thread.
        let (sender, receiver) = mpsc::channel();
        let name = (self.host.clone(), self.port);
        thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || {
                let found = name.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
                // The receiver may have given up.
                drop(sender.send(found));
            })
            .map_err(|error| Failure::new(format!("can't start a thread: {error}")))?;
        let host = &self.host;
        match receiver.recv_timeout(timeout) {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            Ok(Ok(_)) => Err(Failure::new(format!("{host}: the name has no address"))),
            Ok(Err(error)) => Err(Failure::new(format!("can't resolve {host}: {error}"))),
            Err(_) => Err(Failure::new(format!(
                "can't resolve {host}: no answer in time"
            ))),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

/// The parser takes `https://host?query`, and leaves its path empty.
fn with_root_path(uri: Uri) -> Uri {
    let Some(query) = uri
        .path_and_query()
        .filter(|path| path.as_str().starts_with('?'))
    else {
        return uri;
    };
    // Its display has the slash.
    let path = query.to_string().parse();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = path.ok();
    Uri::from_parts(parts).unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Target;

    #[test]
    fn parts() {
        for (text, host, port, path, authority) in [
            (
                "https://Example.ORG",
                "example.org",
                443,
                "/",
                "Example.ORG",
            ),
            ("https://a:4433/x/y?z=1#f", "a", 4433, "/x/y?z=1", "a:4433"),
            ("https://127.0.0.1:1/", "127.0.0.1", 1, "/", "127.0.0.1:1"),
            ("https://[::1]/", "::1", 443, "/", "[::1]"),
            (
                "https://[2001:DB8::1]:65535/a",
                "2001:db8::1",
                65535,
                "/a",
                "[2001:DB8::1]:65535",
            ),
            ("https://a?q", "a", 443, "/?q", "a"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.host(), host, "{text}");
            assert_eq!(target.port(), port, "{text}");
            assert_eq!(target.path(), path, "{text}");
            assert_eq!(target.authority(), authority, "{text}");
        }
    }

    #[test]
    fn what_is_no_such_url_is_said_in_one_line() {
        for text in [
            "",
            "example.org",
            "/path",
            "http://example.org/",
            "ftp://example.org/",
            "https://",
            "https:///x",
            "https://:443/",
            "https://user@example.org/",
            "https://user:secret@example.org/",
            "https://a:0/",
            "https://a:65536/",
            "https://a:/",
            "https://a:b/",
            "https://[::1/",
            "https://[1.2.3.4]/",
            "https://[::g]/",
            "https://a b/",
        ] {
            let failure = Target::parse(text).expect_err(text);
            assert!(!failure.to_string().contains('\n'));
        }
    }

    #[test]
    fn one_connection_serves_one_host_and_port() {
        let target = |text| Target::parse(text).unwrap();
        let first = target("https://a/x");
        assert!(first.has_same_server(&target("https://A:443/y")));
        assert!(!first.has_same_server(&target("https://a:444/x")));
        assert!(!first.has_same_server(&target("https://b/x")));
    }

    #[test]
    fn file_names_are_only_names() {
        for (text, name) in [
            ("https://a/x/file.tar.gz?q", "file.tar.gz"),
            ("https://a/", "index.html"),
            ("https://a/x/..", "index.html"),
            ("https://a/x/.bashrc", "bashrc"),
            ("https://a/..%2f..%2fetc", "_2f.._2fetc"),
            ("https://a/c:x", "c_x"),
        ] {
            assert_eq!(Target::parse(text).unwrap().file_name(), name);
        }
    }

    #[test]
    fn literal_addresses_need_no_resolver() {
        let resolve = |text: &str| Target::parse(text).unwrap().resolve(Duration::ZERO);
        assert_eq!(
            resolve("https://[::1]:5/"),
            Ok(vec!["[::1]:5".parse().unwrap()])
        );
        assert_eq!(
            resolve("https://127.0.0.1/"),
            Ok(vec!["127.0.0.1:443".parse().unwrap()])
        );
    }
}
