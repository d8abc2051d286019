//! The only place that names rustls or ring.
