//! A network path: its addresses, and all that is known about it,
//! [RFC 9000, sections 8, 9, 13.4 and 14](https://www.rfc-editor.org/rfc/rfc9000#section-8).

mod amplification;
mod ecn;
mod mtu;
mod responses;
mod validation;
mod probing;
mod state;
mod others;

pub(crate) use amplification::Amplification;
pub(crate) use ecn::{EcnSpace, EcnValidation};
pub(crate) use mtu::{MINIMUM_MTU, Mtu};
pub(crate) use others::{OtherPath, OtherPaths};
pub(crate) use probing::Probing;
pub(crate) use state::{MAXIMUM_MTU_V6, Path, PathSettings};
pub(crate) use validation::{Expired, Reached};
