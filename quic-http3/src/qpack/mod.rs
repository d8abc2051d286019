//! QPACK, [RFC 9204](https://www.rfc-editor.org/rfc/rfc9204): field sections as bytes.
//!
//! [`Encoder`] and [`Decoder`] keep a dynamic table each, one for either direction of a connection; [`encode`] and
//! [`decode`] are for sections that stand for themselves.

mod integer;
mod huffman;
mod static_table;
mod dynamic_table;
mod prefix;
mod instruction;
mod encode;
mod encoder;
mod decode;
mod decoder;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

pub use decode::{DecodeError, decode};
pub use decoder::{Decoded, Decoder};
pub use encode::encode;
pub use encoder::{Encoded, Encoder, References};
