//! Every bound of this crate, in one place.
//!
//! What a peer can make us hold or do is limited by one of these numbers.

/// Transport parameters unknown to us among which duplicates are noticed; more of them are skipped unseen.
pub(crate) const REMEMBERED_UNKNOWN_PARAMETERS: usize = 32;

/// Ranges of received packet numbers kept for each packet number space.
pub(crate) const ACK_RANGES: usize = 256;

/// Ranges that an ACK frame of ours holds.
pub(crate) const ACK_RANGES_SENT: usize = 32;

/// The latest packet numbers among which duplicates are told apart; what is older is dropped.
pub(crate) const DUPLICATE_WINDOW: u64 = 4096;

/// Packets in a row that elicit no acknowledgment before one carries a PING.
pub(crate) const QUIET_PACKETS: u32 = 20;

/// Packets sent since the oldest that is in flight, those that elicit nothing included.
pub(crate) const SENT_PACKETS: usize = 1 << 18;

/// The latest packet numbers that were skipped, and that nobody may acknowledge.
pub(crate) const SKIPPED_NUMBERS: usize = 8;

/// Packets declared lost that are remembered in case their acknowledgment is only late.
pub(crate) const LOST_PACKETS: usize = 1024;

/// Packets of a handshake whose fate is remembered, to find congestion that lasts.
pub(crate) const HANDSHAKE_OUTCOMES: usize = 64;

/// How many packets out of order the network may get before that counts as loss, however often it was mistaken.
pub(crate) const PACKET_THRESHOLD: u64 = 256;

/// The exponent of the probe timeout's backoff.
pub(crate) const PTO_EXPONENT: u32 = 16;

/// The longest probe timeout, backoff included.
pub(crate) const PTO: std::time::Duration = std::time::Duration::from_mins(1);

/// The smallest datagram that is worth sending to an address that may get little: a challenge fits.
pub(crate) const SMALLEST_DATAGRAM: u64 = 64;

/// Paths of a connection that are known at a time, the one in use included.
pub(crate) const PATHS: usize = 5;

/// News of paths that wait for the application; the oldest goes.
pub(crate) const PATH_EVENTS: usize = 16;

/// PATH_CHALLENGE frames for each path that wait to be answered.
pub(crate) const PATH_RESPONSES: usize = 4;

/// Spare 16 KiB chunks that a connection keeps for its next bytes, as long as it uses some.
pub(crate) const SPARE_CHUNKS: usize = 128;

/// Spare chunks in all: those beyond [`SPARE_CHUNKS`] go when they weren't wanted in a while.
pub(crate) const MOST_SPARE_CHUNKS: usize = 1024;

/// Spare buffers of up to 2 KiB that a connection keeps.
pub(crate) const SPARE_SMALL_BUFFERS: usize = 64;

/// Separate pieces beyond gaps that all streams of a connection may have together.
pub(crate) const CONNECTION_PIECES: usize = 24_576;

/// Separate pieces beyond a gap that a stream may have, besides one for each [`BYTES_PER_EXTRA_PIECE`].
pub(crate) const REASSEMBLY_PIECES: usize = 4096;

/// A stream may have one more piece for each of so many bytes that it spans.
pub(crate) const BYTES_PER_EXTRA_PIECE: usize = 4096;

/// Streams of each direction that the peer may have open at once.
pub(crate) const STREAMS: u64 = 100;

/// What a peer may send ahead on a stream at first.
pub(crate) const STREAM_WINDOW: u64 = 1 << 20;

/// What a stream's window may grow to.
pub(crate) const STREAM_WINDOW_MOST: u64 = 16 << 20;

/// What a peer may send ahead on all streams at first.
pub(crate) const CONNECTION_WINDOW: u64 = STREAM_WINDOW + STREAM_WINDOW / 2;

/// What the connection's window may grow to.
pub(crate) const CONNECTION_WINDOW_MOST: u64 = 24 << 20;

/// Bytes that a stream takes from the application before they can be sent.
pub(crate) const SEND_BACKLOG: u64 = 256 << 10;

/// Bytes that it takes even when the peer gives no credit.
pub(crate) const LEAST_BACKLOG: u64 = 4 << 10;

/// Bytes of all streams that are held, sent or not, until they are acknowledged.
pub(crate) const SEND_HELD: u64 = 32 << 20;

/// Bytes that the application lends for sending are copied if they are fewer.
pub(crate) const LEAST_LENT: usize = 4096;

/// A frame carries at least so many bytes, if there are as many and something is in flight to wait for.
pub(crate) const LEAST_FRAGMENT: u64 = 32;

/// What has become of datagrams that were sent, for an application that doesn't ask; the oldest go.
pub(crate) const DATAGRAM_OUTCOMES: usize = 65_536;

/// CRYPTO data that is held ahead of what TLS has read.
pub(crate) const CRYPTO_BUFFER: u64 = 64 << 10;
/// The longest ClientHello, in bytes: post-quantum key shares and tickets fit several times.
pub(crate) const MAX_CLIENT_HELLO: usize = 16 << 10;

/// Connection IDs of the peer that we are willing to store at a time (`active_connection_id_limit`).
pub(crate) const ACTIVE_CIDS: u64 = 8;

/// Connection IDs that we give to the peer at a time, whatever it permits.
pub(crate) const ISSUED_CIDS: u64 = 8;

/// Connection IDs that it has as long as neither end moves and the connection isn't in use for more than a second: the one
/// in use, one for a move, and one to spare meanwhile.
pub(crate) const FIRST_CIDS: u64 = 3;

/// RETIRE_CONNECTION_ID frames that may wait to be sent or acknowledged.
pub(crate) const PENDING_RETIREMENTS: usize = 16;

/// Packets kept for each connection until their keys are there.
pub(crate) const UNDECRYPTABLE_PACKETS: usize = 10;

/// The largest of them, in bytes; until the handshake is confirmed nobody needs larger ones.
pub(crate) const UNDECRYPTABLE_SIZE: usize = 1500;

/// Coalesced packets looked at in one datagram.
pub(crate) const COALESCED_PACKETS: usize = 16;

/// Bytes of a peer's close reason that are kept.
pub(crate) const CLOSE_REASON: usize = 1024;

/// Bytes of a Retry or NEW_TOKEN token that a client stores.
pub(crate) const TOKEN: usize = 1024;

/// Handshakes that an endpoint has under way before it asks new clients for a token.
pub(crate) const HALF_OPEN_BEFORE_RETRY: usize = 1024;

/// Handshakes that an endpoint has under way before it drops new ones.
pub(crate) const HALF_OPEN: usize = 16_384;

/// Of those, handshakes with one address (one /64 network of IPv6) before it is asked for a token.
pub(crate) const HALF_OPEN_OF_ADDRESS_BEFORE_RETRY: usize = 256;

/// Handshakes under way with one address before new ones are dropped.
pub(crate) const HALF_OPEN_OF_ADDRESS: usize = 2048;

/// Datagrams kept for a client whose ClientHello isn't complete.
pub(crate) const INCOMING_DATAGRAMS: usize = 10;

/// Bytes of those datagrams together.
pub(crate) const INCOMING_BYTES: usize = 16 << 10;

/// Replies of an endpoint that belong to no connection and wait to be sent.
pub(crate) const STATELESS_REPLIES: usize = 64;

/// Replies of an endpoint that belong to no connection, in a second; so many may be sent at once after silence.
pub(crate) const STATELESS_REPLIES_PER_SECOND: u32 = 5000;

/// A stateless reset is sent at most this often.
pub(crate) const RESET_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// Connections that one address (one /64 network of IPv6) may have.
pub(crate) const CONNECTIONS_OF_ADDRESS: usize = 16_384;

/// Bytes that the connections of an endpoint may make it hold.
pub(crate) const ENDPOINT_MEMORY: u64 = 1 << 30;

/// An endpoint tells others what it holds in steps that, for all of them together, are this part of the budget.
pub(crate) const MEMORY_STEPS: u64 = 64;

/// What a connection counts as at least, streams and their windows apart.
pub(crate) const CONNECTION_MEMORY: u64 = 32 << 10;

/// What the traces of a connection count as that its peer has closed, connection IDs apart.
pub(crate) const TRACES_MEMORY: u64 = 256;

/// What each connection ID among them counts as.
pub(crate) const TRACED_CID_MEMORY: u64 = 96;

/// A receive window that nobody fills counts for this fraction of it.
pub(crate) const WINDOW_SHARE: u64 = 4;

/// Bytes of a ClientHello, RFC 8446's handshake header included.
pub(crate) const CLIENT_HELLO: u64 = 16 * 1024;

/// How long a client may take to complete its ClientHello.
pub(crate) const HALF_OPEN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Tokens of the server that a client keeps; the oldest one goes.
pub(crate) const TOKENS: usize = 8;

/// Bytes of datagrams for other threads that wait to be carried there; further ones are dropped.
pub(crate) const FOREIGN_BYTES: u64 = 4 << 20;
/// Servers that a client remembers; the one seen longest ago goes.
pub(crate) const REMEMBERED_SERVERS: usize = 256;

/// TLS sessions that a client keeps of one server; the oldest one goes.
pub(crate) const TICKETS: usize = 8;

/// Bytes of a server's settings that are kept for the application beside a session, at either end.
pub(crate) const REMEMBERED_SETTINGS: usize = 1024;

/// TLS sessions that a server keeps for its clients; the oldest one goes.
pub(crate) const SERVER_SESSIONS: usize = 8192;

/// Datagrams with 0-RTT packets, of all clients, that wait for the Initial that should have come before.
pub(crate) const EARLY_DATAGRAMS: usize = 64;

/// The largest of them, in bytes.
pub(crate) const EARLY_DATAGRAM_SIZE: usize = 1500;

/// Secrets of a server at a time: the one in use, and older ones that are still understood.
pub(crate) const SERVER_SECRETS: usize = 4;

/// Tokens of NEW_TOKEN that are remembered as used.
pub(crate) const USED_TOKENS: usize = 16_384;
