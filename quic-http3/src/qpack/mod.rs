//! QPACK, [RFC 9204](https://www.rfc-editor.org/rfc/rfc9204): field sections as bytes.
//!
//! The dynamic table has capacity 0 on both sides: every section stands for itself, and no stream waits for another.

mod integer;
mod huffman;
mod static_table;
mod instruction;
mod encode;
mod decode;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

pub use decode::{DecodeError, decode};
pub use encode::encode;
pub(crate) use instruction::{DecoderStream, EncoderStream};
