//! Every bound of this crate, in one place.
