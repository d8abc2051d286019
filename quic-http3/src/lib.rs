//! A sans-I/O HTTP/3 client and server with QPACK.
#![forbid(unsafe_code)]
