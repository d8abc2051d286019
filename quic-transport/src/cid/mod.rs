//! Connection IDs: those that we give out and those that the peer gave us,
//! [RFC 9000, section 5.1](https://www.rfc-editor.org/rfc/rfc9000#section-5.1).

mod quic_lb;
mod generator;
mod local;
mod retired;
mod remote;

pub use generator::CidGenerator;
pub use quic_lb::Routing;

pub(crate) use local::{CidChange, LocalCids};
pub(crate) use remote::{NewConnectionId, RemoteCids};
