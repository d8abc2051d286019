//! UDP sockets for QUIC: a shared receive buffer, batched sends and every offload that the system has.
