//! Two ends.
