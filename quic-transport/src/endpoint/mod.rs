//! The server's side of a socket: routing and admission.
