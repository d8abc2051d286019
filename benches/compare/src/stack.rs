//! Who is compared.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::ValueEnum;

use crate::{
    Outcome, bound,
    ours::{self, Way},
    peers::{
        Datagrams, nginx,
        programs::{self, Programs},
        quiche::{self, Language},
        quinn, quinn_h3, s2n, tcp,
    },
    work::{Job, Kind},
};

/// A stack that this program can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stack {
    /// This one, HTTP/3.
    Ours,
    /// The same, with keys exchanged by X25519MLKEM768.
    OursPostQuantum,
    /// The same, without ACK_FREQUENCY.
    OursManyAcks,
    /// quinn, raw streams.
    Quinn,
    /// The same, with datagrams for loopback.
    QuinnLarge,
    /// The crate h3 over quinn.
    QuinnH3,
    /// s2n-quic, raw streams.
    S2n,
    /// The same, with datagrams for loopback.
    S2nLarge,
    /// quiche, raw streams.
    Quiche,
    /// The same, with datagrams for loopback.
    QuicheLarge,
    /// quiche, HTTP/3.
    QuicheH3,
    /// Kernel TCP and TLS 1.3 by rustls.
    Tcp,
    /// Kernel TCP and TLS 1.3 by OpenSSL: nginx and curl, HTTP/1.1.
    Nginx,
    /// What no stack can beat: batches and AES-128-GCM, nothing else.
    Bound,
}

impl Stack {
    /// Whether it can do that at all.
    const fn does(self, work: Kind) -> bool {
        match self {
            Self::S2n | Self::S2nLarge => !matches!(work, Kind::Resumed),
            Self::Nginx => !matches!(work, Kind::Upload),
            Self::Bound => work.is_bulk(),
            Self::Ours
            | Self::OursPostQuantum
            | Self::OursManyAcks
            | Self::Quinn
            | Self::QuinnLarge
            | Self::QuinnH3
            | Self::Quiche
            | Self::QuicheLarge
            | Self::QuicheH3
            | Self::Tcp => true,
        }
    }

    /// Whether it is among those that are compared when nobody says which.
    const fn is_usual(self, work: Kind, is_loopback: bool) -> bool {
        self.does(work)
            && match self {
                Self::OursPostQuantum => matches!(work, Kind::Connections),
                Self::OursManyAcks | Self::Nginx => work.is_bulk(),
                Self::QuinnLarge | Self::S2nLarge | Self::QuicheLarge => {
                    work.is_bulk() && is_loopback
                }
                Self::QuinnH3 | Self::QuicheH3 => !work.is_bulk(),
                Self::Ours | Self::Quinn | Self::S2n | Self::Quiche | Self::Tcp | Self::Bound => {
                    true
                }
            }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Ours => "this stack, HTTP/3",
            Self::OursPostQuantum => "this stack, X25519MLKEM768",
            Self::OursManyAcks => "this stack, no ACK_FREQUENCY",
            Self::Quinn => "quinn, raw streams",
            Self::QuinnLarge => "quinn, large datagrams",
            Self::QuinnH3 => "quinn, HTTP/3 by h3",
            Self::S2n => "s2n-quic, raw streams",
            Self::S2nLarge => "s2n-quic, large datagrams",
            Self::Quiche => "quiche, raw streams",
            Self::QuicheLarge => "quiche, large datagrams",
            Self::QuicheH3 => "quiche, HTTP/3",
            Self::Tcp => "TCP, TLS 1.3 by rustls",
            Self::Nginx => "TCP, nginx to curl",
            Self::Bound => "the bound",
        }
    }

    fn serve(self, job: &Job) -> Outcome<()> {
        use Datagrams::{Large, Usual};
        match self {
            Self::Ours => ours::serve(job, Way::Usual),
            Self::OursPostQuantum => ours::serve(job, Way::PostQuantum),
            Self::OursManyAcks => ours::serve(job, Way::ManyAcks),
            Self::Quinn => quinn::serve(job, Usual),
            Self::QuinnLarge => quinn::serve(job, Large),
            Self::QuinnH3 => quinn_h3::serve(job),
            Self::S2n => s2n::serve(job, Usual),
            Self::S2nLarge => s2n::serve(job, Large),
            Self::Quiche => quiche::serve(job, Language::Raw, Usual),
            Self::QuicheLarge => quiche::serve(job, Language::Raw, Large),
            Self::QuicheH3 => quiche::serve(job, Language::Http3, Usual),
            Self::Tcp => tcp::serve(job),
            Self::Nginx => nginx::serve(job),
            Self::Bound => bound::serve(job),
        }
    }

    fn run(self, job: &Job, address: SocketAddr) -> Outcome<()> {
        use Datagrams::{Large, Usual};
        match self {
            Self::Ours => ours::run(job, address, Way::Usual),
            Self::OursPostQuantum => ours::run(job, address, Way::PostQuantum),
            Self::OursManyAcks => ours::run(job, address, Way::ManyAcks),
            Self::Quinn => quinn::run(job, address, Usual),
            Self::QuinnLarge => quinn::run(job, address, Large),
            Self::QuinnH3 => quinn_h3::run(job, address),
            Self::S2n => s2n::run(job, address, Usual),
            Self::S2nLarge => s2n::run(job, address, Large),
            Self::Quiche => quiche::run(job, address, Language::Raw, Usual),
            Self::QuicheLarge => quiche::run(job, address, Language::Raw, Large),
            Self::QuicheH3 => quiche::run(job, address, Language::Http3, Usual),
            Self::Tcp => tcp::run(job, address),
            Self::Nginx => nginx::run(job, address),
            Self::Bound => bound::run(job, address),
        }
    }
}

/// A stack of this program, or one that was built elsewhere.
#[derive(Clone, Debug)]
pub(crate) enum Contestant {
    Built(Stack),
    /// One of this program's, in this program as it was built with aws-lc-rs.
    Rebuilt(Stack, PathBuf),
    Outside(Programs),
}

impl Contestant {
    /// All that can do this work, those in the folder `outside` last.
    pub(crate) fn usual(
        work: Kind,
        is_loopback: bool,
        outside: Option<&Path>,
    ) -> Outcome<Vec<Self>> {
        let built = Stack::value_variants().iter().copied();
        let built = built.filter(|stack| stack.is_usual(work, is_loopback));
        let mut all: Vec<_> = built
            .filter(|stack| *stack != Stack::Nginx || nginx::is_here())
            .map(Self::Built)
            .collect();
        if let Some(outside) = outside {
            let programs = Programs::all(outside)?;
            let able = programs.into_iter().filter(|programs| programs.does(work));
            all.extend(able.map(Self::Outside));
        }
        Ok(all)
    }

    pub(crate) fn does(&self, work: Kind) -> bool {
        match self {
            Self::Built(stack) | Self::Rebuilt(stack, _) => stack.does(work),
            Self::Outside(programs) => programs.does(work),
        }
    }

    /// Whether there is a handshake.
    pub(crate) const fn has_tls(&self) -> bool {
        !matches!(
            self,
            Self::Built(Stack::Bound) | Self::Rebuilt(Stack::Bound, _)
        )
    }

    pub(crate) fn title(&self) -> String {
        match self {
            Self::Built(stack) => stack.title().to_owned(),
            Self::Rebuilt(stack, _) => format!("{}, aws-lc-rs", stack.title()),
            Self::Outside(programs) => programs.name(),
        }
    }

    /// The program that runs an end of it.
    pub(crate) fn program(&self) -> Outcome<PathBuf> {
        Ok(match self {
            Self::Rebuilt(_, program) => program.clone(),
            Self::Built(_) | Self::Outside(_) => std::env::current_exe()?,
        })
    }

    /// What [`FromStr`] reads.
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Built(stack) | Self::Rebuilt(stack, _) => stack
                .to_possible_value()
                .map_or_else(String::new, |value| value.get_name().to_owned()),
            Self::Outside(programs) => programs.folder(),
        }
    }

    pub(crate) fn serve(&self, job: &Job) -> Outcome<()> {
        match self {
            Self::Built(stack) | Self::Rebuilt(stack, _) => stack.serve(job),
            Self::Outside(outside) => {
                programs::serve(|port| Ok(outside.command("server", job, port)))
            }
        }
    }

    pub(crate) fn run(&self, job: &Job, address: SocketAddr) -> Outcome<()> {
        match self {
            Self::Built(stack) | Self::Rebuilt(stack, _) => stack.run(job, address),
            Self::Outside(outside) => {
                programs::run(&mut outside.command("client", job, address.port())).map(drop)
            }
        }
    }
}

impl FromStr for Contestant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Ok(Self::Outside(Programs::new(text)));
        }
        Stack::from_str(text, false).map(Self::Built)
    }
}
