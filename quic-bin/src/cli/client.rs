//! The command line of `quic-client`.

use std::{path::PathBuf, time::Duration};

use clap::{Parser, value_parser};

use quic_transport::{Version, Versions};

use super::command;
use super::extensions::Extensions;
use super::values::{Cipher, Group, Upload, byte_count, timeout, version, versions};
use crate::{
    alpn::Alpn, certificate::Fingerprint, ech::Ech, limits::MAX_DATAGRAMS, roaming::Plan,
    url::Target,
};

/// Downloads over HTTP/3, or shows what this QUIC stack can do.
///
/// With URLs: fetches all of them over one connection. Without: starts a server of its own on a free loopback port,
/// downloads a generated body from it, verifies every byte and prints how fast that was.
#[derive(Clone, Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
#[command(name = "quic-client", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Client {
    /// What to fetch.
    #[arg(value_name = "URL", value_parser = parse_target, help = URLS)]
    pub urls: Vec<Target>,

    /// Write the body to FILE instead of stdout; "-" is stdout. Give it once for each URL, in the URLs' order.
    #[arg(short, long, value_name = "FILE", requires = "urls")]
    pub output: Vec<PathBuf>,

    /// Send a POST with this body; @FILE sends the content of a file.
    #[arg(short, long, value_name = "DATA|@FILE", requires = "urls")]
    pub data: Option<Upload>,

    /// Trust the certificates in this PEM file instead of the built-in roots.
    #[arg(long, value_name = "FILE", group = "trust", requires = "urls")]
    pub ca: Option<PathBuf>,

    /// Trust only the certificate with this SHA-256. Its name, time and signature are checked as well.
    #[arg(long, value_name = "HEX", group = "trust", requires = "urls")]
    pub pin_sha256: Option<Fingerprint>,

    /// Check nothing about the server: anyone can pretend to be it.
    #[arg(long, group = "trust", requires = "urls")]
    pub insecure: bool,

    /// The protocol to speak; hq-interop is HTTP/0.9, without status codes and uploads.
    #[arg(long, value_name = "NAME", default_value = "h3", requires = "urls")]
    pub alpn: Alpn,

    /// The QUIC versions to speak, most wanted first.
    #[arg(long, value_name = "LIST", default_value = "v1,v2", value_parser = versions, requires = "urls")]
    pub quic_versions: Versions,

    /// The QUIC version to begin with, from which a server may change to one that is wanted more; v1 if it is spoken.
    #[arg(long, value_name = "VERSION", value_parser = version, requires = "urls")]
    pub first_version: Option<Version>,

    /// Offer only this cipher suite.
    #[arg(long, value_name = "NAME", requires = "urls")]
    pub cipher: Option<Cipher>,

    /// Offer only these key exchange groups, most wanted first.
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "urls")]
    pub key_exchange: Vec<Group>,

    /// Hide the server's name: encrypt the ClientHello (ECH) with what the server has published, a PEM file or the base64
    /// of its ECHConfigList; "grease" only has it look so. A server that has another list now is asked again with that,
    /// once. Needs a build with the feature aws-lc-rs.
    #[arg(long, value_name = "FILE|BASE64|grease", requires = "urls")]
    pub ech: Option<Ech>,

    /// Update the keys once, as soon as the handshake is confirmed.
    #[arg(long, requires = "urls")]
    pub key_update: bool,

    /// Go on from another port after this time, without telling the server, as if a NAT had forgotten the connection. The
    /// client sends a PING after 250 ms of silence then: one that only receives would wait in vain.
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    pub rebind_after: Option<Duration>,

    /// Move to another socket after this time, once the server has been reached from there.
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    pub migrate_after: Option<Duration>,

    /// Send N datagrams beside the requests, and tell how many were acknowledged and how many came back from a server
    /// that returns them. Needs hq-interop: those of HTTP/3 belong to requests.
    #[arg(long, value_name = "N", requires = "urls", value_parser = value_parser!(u32).range(1..=i64::from(MAX_DATAGRAMS)))]
    pub datagrams: Option<u32>,

    /// Make the ClientHello larger than a datagram, with names of protocols that nobody speaks.
    #[arg(long, requires = "urls")]
    pub large_client_hello: bool,

    /// Write a qlog file for each connection into this directory; the variable QLOGDIR does the same.
    #[arg(long, value_name = "DIR", requires = "urls")]
    pub qlog_dir: Option<PathBuf>,
    /// Fetch the first URL, and the others over a second connection that resumes the first one's session.
    #[arg(long, requires = "urls")]
    pub resume: bool,

    /// As --resume, and make the second connection's requests at once, in 0-RTT packets. Someone who records those may
    /// be able to make the server answer them again.
    #[arg(long = "0rtt", requires = "urls", conflicts_with = "data")]
    pub zero_rtt: bool,

    /// What it does without.
    #[command(flatten)]
    pub extensions: Extensions,

    /// Cut the first message in the middle of the server's name and send it the wrong way round.
    #[arg(long, requires = "urls")]
    pub split_client_hello: bool,

    /// Give up when the server has been silent for this long.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = timeout)]
    pub timeout: Duration,

    /// Without URLs: how large a body to generate and download; K, M, G and T are binary.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = byte_count, conflicts_with = "urls")]
    pub size: u64,
}

/// The silence after which a client asks that somebody may have forgotten.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

const URLS: &str =
    "What to fetch: https://HOST[:PORT][/PATH]. Several URLs must have the same host and port";

const EXIT_CODES: &str = "Exit codes: 0 all went well, 1 something failed (an HTTP status of 400 or more included), \
                          2 the command line is wrong.";

/// What makes a server's certificate acceptable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It leads to one of the roots of the web.
    WebRoots,
    /// It leads to one in this PEM file.
    File(PathBuf),
    /// It is this one.
    Pin(Fingerprint),
    /// Nothing is checked.
    Anything,
}

impl Client {
    /// Reads the program's command line; ends the program when it is wrong, or asks for help.
    #[must_use]
    pub fn from_arguments() -> Self {
        command::from_arguments(Self::check)
    }

    /// What makes the server's certificate acceptable.
    #[must_use]
    pub fn trust(&self) -> Trust {
        match (&self.ca, self.pin_sha256) {
            (Some(file), _) => Trust::File(file.clone()),
            (None, Some(pin)) => Trust::Pin(pin),
            (None, None) if self.insecure => Trust::Anything,
            (None, None) => Trust::WebRoots,
        }
    }

    /// After how long a silence the server is asked whether it is still there.
    #[must_use]
    pub fn keep_alive(&self) -> Option<Duration> {
        self.rebind_after
            .map(|_after| KEEP_ALIVE.min(self.timeout / 2))
    }

    /// When to change the address, and how.
    #[must_use]
    pub const fn roaming(&self) -> Plan {
        Plan {
            rebind_after: self.rebind_after,
            migrate_after: self.migrate_after,
        }
    }

    /// Whether there is to be a second connection.
    #[must_use]
    pub const fn resumes(&self) -> bool {
        self.resume || self.zero_rtt
    }

    /// Where the body of the URL at `index` goes: `None` is stdout.
    #[must_use]
    pub fn output_of(&self, index: usize) -> Option<&PathBuf> {
        self.output
            .get(index)
            .filter(|file| file.as_os_str() != "-")
    }

    fn check(&self) -> Result<(), String> {
        if self.output.len() > self.urls.len() {
            return Err("more outputs (-o) than URLs".to_owned());
        }
        if self.alpn == Alpn::HqInterop && self.data.is_some() {
            return Err("hq-interop has no uploads (-d)".to_owned());
        }
        if self.alpn != Alpn::HqInterop && self.datagrams.is_some() {
            return Err("--datagrams needs --alpn hq-interop".to_owned());
        }
        if let Some(first) = self.first_version
            && !self.quic_versions.contains(first)
        {
            return Err(format!(
                "{first} (--first-version) isn't among --quic-versions"
            ));
        }
        let Some(first) = self.urls.first() else {
            return Ok(());
        };
        if self.resumes() && self.urls.len() < 2 {
            return Err("a second connection (--resume, --0rtt) needs a second URL".to_owned());
        }
        if let Some(other) = self.urls.iter().find(|url| !url.has_same_server(first)) {
            return Err(format!("{other} is on another server than {first}"));
        }
        Ok(())
    }
}

fn parse_target(text: &str) -> Result<Target, String> {
    let explain = |failure: crate::failure::Failure| {
        let line = failure.to_string();
        // clap shows the value itself.
        line.strip_prefix(&format!("{text}: "))
            .unwrap_or(&line)
            .to_owned()
    };
    Target::parse(text).map_err(explain)
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, time::Duration};

    use clap::{CommandFactory as _, Parser as _};

    use super::{Client, Trust};

    fn parse(arguments: &[&str]) -> Result<Client, i32> {
        let all = std::iter::once(&"quic-client").chain(arguments);
        let client = Client::try_parse_from(all).map_err(|error| error.exit_code())?;
        client.check().map(|()| client).map_err(|_line| 2)
    }

    #[test]
    fn the_definition_is_consistent() {
        Client::command().debug_assert();
    }

    #[test]
    fn nothing_at_all_is_the_demonstration() {
        let client = parse(&[]).unwrap();
        assert!(client.urls.is_empty());
        assert_eq!(client.size, 1 << 30);
        assert_eq!(client.timeout, Duration::from_secs(10));
        assert_eq!(parse(&["--size", "64M"]).unwrap().size, 64 << 20);
    }

    #[test]
    fn downloads() {
        let client = parse(&["https://a/1", "https://a/2", "-o", "x", "-o", "-"]).unwrap();
        assert_eq!(client.output_of(0), Some(&PathBuf::from("x")));
        assert_eq!(client.output_of(1), None);
        assert_eq!(client.trust(), Trust::WebRoots);
        let client = parse(&["https://a/", "--ca", "f"]).unwrap();
        assert_eq!(client.trust(), Trust::File("f".into()));
        let pin = "ab".repeat(32);
        let client = parse(&["https://a/", "--pin-sha256", &pin]).unwrap();
        assert!(matches!(client.trust(), Trust::Pin(print) if print.to_string() == pin));
        assert_eq!(
            parse(&["https://a/", "--insecure"]).unwrap().trust(),
            Trust::Anything
        );
    }

    #[test]
    fn wrong_command_lines_end_with_2() {
        let pin = "ab".repeat(32);
        let wrong: [&[&str]; 22] = [
            &["https://a/", "--quic-versions", "v3"],
            &["https://a/", "--first-version", "1"],
            &[
                "https://a/",
                "--quic-versions",
                "v1",
                "--first-version",
                "v2",
            ],
            &["http://a/"],
            &["a"],
            &["https://a/", "https://b/"],
            &["https://a/", "https://a:444/"],
            &["https://a/", "-o", "x", "-o", "y"],
            &["-o", "x"],
            &["--insecure"],
            &["-d", "x"],
            &["https://a/", "--insecure", "--ca", "f"],
            &["https://a/", "--insecure", "--pin-sha256", &pin],
            &["https://a/", "--pin-sha256", "abc"],
            &["https://a/", "--size", "1G"],
            &["https://a/", "--timeout", "0"],
            &["--unknown"],
            &["--0rtt"],
            &["https://a/", "--datagrams", "1"],
            &["https://a/", "--datagrams", "0", "--alpn", "hq-interop"],
            &["--resume", "https://a/"],
            &["--0rtt", "https://a/1", "https://a/2", "-d", "x"],
        ];
        for arguments in wrong {
            assert_eq!(parse(arguments).err(), Some(2), "{arguments:?}");
        }
        assert_eq!(parse(&["--help"]).err(), Some(0));
        assert_eq!(parse(&["--version"]).err(), Some(0));
    }
}
