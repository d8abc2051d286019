//! One path: addresses and all that is measured on it.
