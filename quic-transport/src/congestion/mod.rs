//! How much may be in flight, and how fast it leaves, [RFC 9002, section 7](https://www.rfc-editor.org/rfc/rfc9002#section-7).

mod window;
mod algorithm;
mod new_reno;
mod cubic;
mod slow_start;
mod controller;
mod pacer;

pub use controller::CongestionControl;
pub(crate) use controller::{Congestion, Controller};
pub(crate) use pacer::{Pace, Pacer};
