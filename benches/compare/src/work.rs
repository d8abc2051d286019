//! What every stack is asked to do, and how that is said to a server that speaks no HTTP.

use std::{fmt, path::PathBuf};

use clap::{Args, ValueEnum};

use crate::{Outcome, number::Real as _};

/// What one run does.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    /// Bytes of a body, or how many requests or connections.
    pub(crate) amount: u64,
    /// How many of the requests are under way at a time.
    pub(crate) parallel: u64,
}

/// The kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// One body from the server.
    Download,
    /// One body to the server.
    Upload,
    /// Requests for one byte on one connection.
    Requests,
    /// Connections one after the other, with a request for one byte each.
    Connections,
    /// The same, each resuming the session of the one before.
    Resumed,
}

impl Kind {
    /// Whether it is about bytes.
    pub(crate) const fn is_bulk(self) -> bool {
        matches!(self, Self::Download | Self::Upload)
    }

    /// The amount, if none is given.
    pub(crate) const fn usual_amount(self) -> u64 {
        match self {
            Self::Download | Self::Upload => 1 << 30,
            Self::Requests => 10_000,
            Self::Connections | Self::Resumed => 1000,
        }
    }
}

impl Work {
    /// As arguments.
    pub(crate) fn arguments(self) -> [String; 3] {
        let kind = self.kind.to_possible_value();
        let kind = kind.map_or_else(String::new, |value| value.get_name().to_owned());
        [kind, self.amount.to_string(), self.parallel.to_string()]
    }

    /// Connections that it makes, one after the other.
    pub(crate) const fn connections(self) -> u64 {
        match self.kind {
            Kind::Download | Kind::Upload | Kind::Requests => 1,
            Kind::Connections | Kind::Resumed => self.amount,
        }
    }

    /// Requests on each of them.
    pub(crate) const fn requests(self) -> u64 {
        match self.kind {
            Kind::Requests => self.amount,
            Kind::Download | Kind::Upload | Kind::Connections | Kind::Resumed => 1,
        }
    }

    /// What each request asks for. An upload is answered with one byte, once it is whole.
    pub(crate) const fn ask(self) -> Ask {
        let (down, up) = match self.kind {
            Kind::Download => (self.amount, 0),
            Kind::Upload => (1, self.amount),
            Kind::Requests | Kind::Connections | Kind::Resumed => (1, 0),
        };
        Ask { down, up }
    }

    /// Into how many parts figures are divided: gigabytes, requests or connections.
    pub(crate) fn units(self) -> f64 {
        let amount = self.amount.real();
        if self.kind.is_bulk() {
            amount / 1e9
        } else {
            amount
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            amount, parallel, ..
        } = self;
        match self.kind {
            Kind::Download => write!(f, "{amount} bytes down"),
            Kind::Upload => write!(f, "{amount} bytes up"),
            Kind::Requests if *parallel == 1 => write!(f, "{amount} requests in turn"),
            Kind::Requests => write!(f, "{amount} requests, {parallel} at a time"),
            Kind::Connections => write!(f, "{amount} connections in turn"),
            Kind::Resumed => write!(f, "{amount} resumed connections in turn"),
        }
    }
}

/// What both ends of a run need to know.
#[derive(Args, Clone, Debug)]
pub(crate) struct Job {
    /// Where the certificate and its key are, and where files may be left.
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) work: Work,
}

impl Job {
    /// A file of the directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The certificate, in DER.
    pub(crate) fn certificate(&self) -> Outcome<Vec<u8>> {
        Ok(std::fs::read(self.file("cert.der"))?)
    }

    /// Its key, in PKCS#8.
    pub(crate) fn key(&self) -> Outcome<Vec<u8>> {
        Ok(std::fs::read(self.file("key.der"))?)
    }
}

/// What a stream without HTTP begins with: how many bytes the server is to send, and how many follow to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) down: u64,
    pub(crate) up: u64,
}

impl Ask {
    /// Bytes of an encoded one.
    pub(crate) const SIZE: usize = 16;

    pub(crate) fn encode(self) -> [u8; Self::SIZE] {
        let number = u128::from(self.down) << 64 | u128::from(self.up);
        number.to_be_bytes()
    }

    pub(crate) fn decode(bytes: [u8; Self::SIZE]) -> Self {
        let half = |at: usize| {
            let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
            u64::from_be_bytes(bytes.copied().unwrap_or_default())
        };
        Self {
            down: half(0),
            up: half(8),
        }
    }
}
