//! Bytes between the application and the packets.
