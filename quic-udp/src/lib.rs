//! UDP sockets for QUIC: a shared receive buffer, batched sends and every offload that the system has.
//!
//! [`Socket`] reads into a long-lived [`ReceiveBuffer`] and hands out the datagrams in it, borrowed; it sends a whole
//! [`DatagramBatch`](quic_common::DatagramBatch) with one system call where the system can. What goes wrong on the way
//! is a value ([`Sent`], [`IcmpError`]), not a reason to stop: a datagram that wasn't sent is a lost one, and QUIC
//! recovers lost ones.
//!
//! The system calls are those of the `quinn-udp` crate.

mod limits;
mod address;
mod fault;
mod counters;
mod icmp;
mod offloads;
mod calls;
mod probe;
mod kernel;
mod receive_buffer;
mod transfer;
mod sizing;
mod socket;
mod builder;
mod shared;

pub use builder::SocketBuilder;
pub use counters::Counters;
pub use fault::Fault;
pub use icmp::{IcmpError, IcmpKind};
pub use limits::{DEFAULT_SOCKET_BUFFER, MAX_SLOTS, SLOT_BYTES};
pub use receive_buffer::{Datagrams, ReceiveBuffer};
pub use sizing::BufferSize;
pub use socket::Socket;
pub use transfer::Sent;
