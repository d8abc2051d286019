//! The cryptographic library that the stack was built with, for tests that seal something themselves.

#[cfg(feature = "aws-lc-rs")]
pub use aws_lc_rs::aead;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub use ring::aead;
