//! Flow control.
