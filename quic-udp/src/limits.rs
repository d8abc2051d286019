//! Every bound of this crate.

/// Bytes of one slot of a [`ReceiveBuffer`](crate::ReceiveBuffer): more than the largest UDP payload, and than the
/// largest run of datagrams that the kernel joins for one read.
pub const SLOT_BYTES: usize = 64 * 1024;

/// The most slots that one read fills.
pub const MAX_SLOTS: usize = 8;

/// What is asked of the kernel for each of the two buffers of a socket, in bytes.
pub const DEFAULT_SOCKET_BUFFER: usize = 4 * 1024 * 1024;

/// A socket buffer smaller than this is not asked for, however often the kernel refuses.
pub(crate) const MIN_SOCKET_BUFFER: usize = 64 * 1024;

/// Reads in a row that each filled all slots with single datagrams, before the number of slots is doubled.
pub(crate) const FULL_READS_TO_GROW: u32 = 8;

/// The most bytes of one send over IPv6: 65535 less the IPv6 and UDP headers, which the length of the IPv6 header
/// would not even include.
pub(crate) const MAX_SEND_BYTES_IPV6: usize = 65487;

/// ICMP errors that wait to be asked for; further ones are dropped.
pub(crate) const MAX_ICMP_ERRORS: usize = 8;

/// How often one send is tried again because the kernel reported an earlier ICMP error in its place.
pub(crate) const MAX_SEND_RETRIES: usize = 4;

/// How often offloads are probed anew because a send went out without the ECN mark asked for.
pub(crate) const MAX_UNMARKED: u32 = 16;

/// How often one read is tried again because the kernel reported an error in its place.
pub(crate) const MAX_RECEIVE_RETRIES: usize = 8;

/// Failed reads in a row, with neither a datagram nor an empty socket between, after which the error counts as
/// permanent.
pub(crate) const MAX_FAILED_READS: u32 = 1024;
