//! What every stack is asked to do, and how that is said to a server that speaks no HTTP.

use std::fmt;

use clap::ValueEnum;

/// What one run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    /// Bytes of a body, or how many requests or connections.
    pub(crate) amount: u64,
}

/// The kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// One body from the server.
    Download,
    /// One body to the server.
    Upload,
    /// Requests for one byte, all at once, on one connection.
    Requests,
    /// Connections one after the other, with a request for one byte each.
    Connections,
}

impl Work {
    /// As an argument.
    pub(crate) fn arguments(self) -> [String; 2] {
        let kind = self.kind.to_possible_value();
        let kind = kind.map_or_else(String::new, |value| value.get_name().to_owned());
        [kind, self.amount.to_string()]
    }

    /// By how much figures are divided, and what of: gigabytes, or thousands of requests or connections.
    pub(crate) fn unit(self) -> (f64, &'static str) {
        let amount = self.amount as f64;
        match self.kind {
            Kind::Download | Kind::Upload => (amount / 1e9, "s/GB"),
            Kind::Requests => (amount / 1e3, "ms/request"),
            Kind::Connections => (amount / 1e3, "ms/connection"),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = self.amount;
        match self.kind {
            Kind::Download => write!(f, "{amount} bytes down"),
            Kind::Upload => write!(f, "{amount} bytes up"),
            Kind::Requests => write!(f, "{amount} parallel requests for one byte"),
            Kind::Connections => write!(f, "{amount} connections with a request for one byte"),
        }
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

    pub(crate) const BYTE: Self = Self { down: 1, up: 0 };

    /// What a single stream of the work asks for. An upload is answered with one byte, once it is whole.
    pub(crate) const fn of(work: Work) -> Self {
        match work.kind {
            Kind::Download => Self {
                down: work.amount,
                up: 0,
            },
            Kind::Upload => Self {
                down: 1,
                up: work.amount,
            },
            Kind::Requests | Kind::Connections => Self::BYTE,
        }
    }

    pub(crate) fn encode(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let (down, up) = bytes.split_at_mut(8);
        down.copy_from_slice(&self.down.to_be_bytes());
        up.copy_from_slice(&self.up.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: [u8; Self::SIZE]) -> Self {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(number)
        };
        Self {
            down: number(0),
            up: number(8),
        }
    }
}
