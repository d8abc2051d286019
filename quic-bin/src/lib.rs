//! The quic-client and quic-server programs.
