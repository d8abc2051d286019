//! Settings of a connection, validated once when the connection is made.

use std::{
    net::{SocketAddr, SocketAddrV4, SocketAddrV6},
    time::Duration,
};

use quic_common::MAX_VARINT;

use crate::{
    ack::MIN_ACK_DELAY,
    congestion::CongestionControl,
    datagram::DatagramSettings,
    flow::WindowSize,
    limits::SEND_BACKLOG,
    path::PathSettings,
    stream::StreamSettings,
    wire::{MAX_CID_LENGTH, Version, Versions},
};

/// The smallest UDP payload that every QUIC path carries, RFC 9000, 14.
pub const MIN_DATAGRAM: u16 = 1200;

/// The largest UDP payload over IPv4.
pub const MAX_DATAGRAM: u16 = 65_507;

/// Settings of a connection.
///
/// Start from [`Config::default`] and change what matters; a value out of range is refused when the connection is
/// made, never silently bent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub struct Config {
    /// The QUIC versions that a client speaks, most wanted first. A server's are those of its endpoint.
    pub versions: Versions,
    /// The version of a client's first packets, one of `versions`; a server that knows another one that is wanted more
    /// may answer in that, at no cost (RFC 9368). `None`: one in which a session can be resumed, else version 1 if it is among
    /// them, since most servers know it.
    pub first_version: Option<Version>,
    /// Silence after which the connection is given up; zero means never. The smaller of both ends' values holds.
    /// RFC 9000, 10.1.
    pub idle_timeout: Duration,
    /// After so long a silence a PING is sent, so that neither end, nor a router between them, gives the connection up.
    /// Choose less than half of the idle timeout. `None` sends none.
    pub keep_alive: Option<Duration>,
    /// Whether the steps of TLS in the handshake are lent out, so that any thread can work them out:
    /// [`Event::HandshakeJob`](crate::Event::HandshakeJob) says when there is one.
    pub lends_handshake: bool,
    /// How long the handshake may take.
    pub handshake_timeout: Duration,
    /// Bytes that the peer may send on one stream before we have read any, at the start.
    pub stream_window: u64,
    /// The most that a stream's window grows to when the application reads fast.
    pub max_stream_window: u64,
    /// Bytes that the peer may send on all streams together, at the start.
    pub connection_window: u64,
    /// The most that the connection's window grows to.
    pub max_connection_window: u64,
    /// Bytes that all streams together hold until they are acknowledged.
    pub send_buffer: u64,
    /// Bidirectional streams that the peer may have open at a time; at most 2^60.
    pub max_streams_bidirectional: u64,
    /// Unidirectional streams that the peer may have open at a time; at most 2^60.
    pub max_streams_unidirectional: u64,
    /// The longest that an acknowledgement is held back, as the peer is told; under 2^14 ms. The deadline is set
    /// 1 ms earlier: an embedder whose timers are no later than that keeps what was said (RFC 9000, 18.2). For a delay of up
    /// to 10 ms, such as a peer may ask for, it is a 32nd earlier.
    pub max_ack_delay: Duration,
    /// Whether acknowledgments are asked for less often where the peer can be asked, and the peer may ask us
    /// (draft-ietf-quic-ack-frequency-14).
    pub ack_frequency: bool,
    /// Whether bits and parameters that mean nothing are set at random, so that nobody comes to rely on them, and the peer
    /// may do the same (RFC 9287).
    pub grease: bool,
    /// Whether the network may see the round-trip time in the spin bit (RFC 9000, 17.4); on one in 16 connections it can't
    /// anyway.
    pub spin_bit: bool,
    /// Whether a client's ClientHello is cut in the middle of the server's name and sent the wrong way round, so that only
    /// who puts it together can read the name.
    pub split_client_hello: bool,
    /// The path MTU that is probed for, in bytes of UDP payload, 1200 to 65507.
    pub max_datagram: u16,
    /// The round-trip time that is assumed before one is measured.
    pub initial_rtt: Duration,
    /// The congestion control algorithm.
    pub congestion: CongestionControl,
    /// Whether packets are spread over the round-trip time.
    pub pacing: bool,
    /// Whether packets are marked as ECN-capable, as long as the marks arrive (RFC 9000, 13.4).
    pub ecn: bool,
    /// Datagrams: what we take, and how many wait.
    pub datagrams: DatagramSettings,
    /// Bytes of the connection IDs that a client gives out, 0 to 20; a server's are made by its endpoint.
    pub cid_length: usize,
    /// Asks the client not to move to another address, as a server does that datagrams from there wouldn't reach. One
    /// that seems to have moved, as behind a NAT, is followed all the same.
    pub disable_active_migration: bool,
    /// Where a server would rather be reached over IPv4 once the handshake is done (RFC 9000, 9.6). Datagrams that arrive
    /// there have to reach the same endpoint.
    pub preferred_v4: Option<SocketAddrV4>,
    /// The same over IPv6.
    pub preferred_v6: Option<SocketAddrV6>,
    /// Whether a client moves to the address that its server prefers.
    pub follows_preferred_address: bool,
    /// At a client: whether data is sent at once, in 0-RTT packets, when a session is resumed that allows it. At a
    /// server: whether such data is accepted, as long as sessions are kept in a store (not in tickets). Whoever records
    /// it may be able to make the server read it twice, at least if the store forgets what was used.
    pub early_data: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            versions: Versions::DEFAULT,
            first_version: None,
            idle_timeout: Duration::from_secs(30),
            keep_alive: None,
            lends_handshake: false,
            handshake_timeout: Duration::from_secs(30),
            stream_window: 1 << 20,
            max_stream_window: 16 << 20,
            connection_window: 3 << 19,
            max_connection_window: 24 << 20,
            send_buffer: 16 << 20,
            max_streams_bidirectional: 100,
            max_streams_unidirectional: 100,
            max_ack_delay: Duration::from_millis(25),
            ack_frequency: true,
            grease: true,
            spin_bit: true,
            split_client_hello: false,
            max_datagram: 1452,
            initial_rtt: Duration::from_millis(333),
            congestion: CongestionControl::Cubic,
            pacing: true,
            ecn: true,
            datagrams: DatagramSettings::default(),
            cid_length: 8,
            disable_active_migration: false,
            preferred_v4: None,
            preferred_v6: None,
            follows_preferred_address: true,
            early_data: false,
        }
    }
}

/// A setting is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field of [`Config`].
    pub setting: &'static str,
    /// What it has to be.
    pub expected: &'static str,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} must be {}", self.setting, self.expected)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// What a path needs to know.
    pub(crate) const fn path(&self) -> PathSettings {
        PathSettings {
            congestion_control: self.congestion,
            is_paced: self.pacing,
            is_ecn_tried: self.ecn,
            maximum_mtu: self.max_datagram,
            initial_rtt: self.initial_rtt,
        }
    }

    /// The version that a client begins with.
    pub(crate) fn begins_with(&self) -> Version {
        let usual = if self.versions.contains(Version::V1) {
            Some(Version::V1)
        } else {
            self.versions.iter().next()
        };
        self.first_version.or(usual).unwrap_or(Version::V1)
    }

    /// The shortest delay of acknowledgments that the peer can ask for, if it can.
    pub(crate) fn least_ack_delay(&self) -> Option<Duration> {
        let least = if self.max_ack_delay < MIN_ACK_DELAY {
            Duration::ZERO
        } else {
            MIN_ACK_DELAY
        };
        self.ack_frequency.then_some(least)
    }

    /// What the streams need to know.
    pub(crate) const fn streams(&self) -> StreamSettings {
        StreamSettings {
            bidirectional: self.max_streams_bidirectional,
            unidirectional: self.max_streams_unidirectional,
            stream_window: WindowSize {
                initial: self.stream_window,
                most: self.max_stream_window,
            },
            connection_window: WindowSize {
                initial: self.connection_window,
                most: self.max_connection_window,
            },
            backlog: SEND_BACKLOG,
            held: self.send_buffer,
        }
    }

    /// Whether the preferred addresses, if there are any, can be named (RFC 9000, 18.2).
    fn can_prefer_addresses(&self) -> bool {
        let v4 = self.preferred_v4.map(SocketAddr::from);
        let v6 = self.preferred_v6.map(SocketAddr::from);
        [v4, v6]
            .into_iter()
            .flatten()
            .all(|at| self.cid_length > 0 && at.port() != 0 && !at.ip().is_unspecified())
    }

    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let streams = self
            .max_streams_bidirectional
            .max(self.max_streams_unidirectional);
        let windows = [
            self.stream_window,
            self.max_stream_window,
            self.connection_window,
            self.max_connection_window,
        ];
        let rules = [
            (
                self.first_version
                    .is_none_or(|version| self.versions.contains(version)),
                "first_version",
                "one of versions",
            ),
            (
                self.can_prefer_addresses(),
                "preferred address",
                "an address and a port, beside connection IDs",
            ),
            (streams <= 1 << 60, "max_streams", "at most 2^60"),
            (
                windows.iter().all(|w| *w <= MAX_VARINT),
                "windows",
                "at most 2^62 - 1",
            ),
            (
                self.stream_window <= self.max_stream_window
                    && self.connection_window <= self.max_connection_window,
                "windows",
                "no larger than their maximum",
            ),
            (
                self.max_ack_delay < Duration::from_millis(1 << 14),
                "max_ack_delay",
                "under 2^14 ms",
            ),
            (
                (MIN_DATAGRAM..=MAX_DATAGRAM).contains(&self.max_datagram),
                "max_datagram",
                "1200 to 65507",
            ),
            (
                !self.initial_rtt.is_zero() && self.initial_rtt <= Duration::from_mins(1),
                "initial_rtt",
                "over zero, and at most a minute",
            ),
            (
                !self.handshake_timeout.is_zero(),
                "handshake_timeout",
                "over zero",
            ),
            (
                self.keep_alive.is_none_or(|after| !after.is_zero()),
                "keep_alive",
                "over zero",
            ),
            (self.send_buffer > 0, "send_buffer", "over zero"),
            (
                self.cid_length <= MAX_CID_LENGTH,
                "cid_length",
                "at most 20",
            ),
        ];
        rules
            .into_iter()
            .find(|(holds, ..)| !holds)
            .map_or(Ok(()), |(_, setting, expected)| {
                Err(ConfigError { setting, expected })
            })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Config, MAX_DATAGRAM, MIN_DATAGRAM, Version, Versions};

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    /// draft-ietf-quic-ack-frequency-14, 3: min_ack_delay MUST NOT be greater than max_ack_delay.
    #[test]
    fn the_least_ack_delay_is_within_the_most() {
        let mut config = Config::default();
        assert_eq!(config.least_ack_delay(), Some(Duration::from_millis(1)));
        config.max_ack_delay = Duration::from_micros(200);
        // Told in milliseconds, that is none.
        assert_eq!(config.least_ack_delay(), Some(Duration::ZERO));
        config.ack_frequency = false;
        assert_eq!(config.least_ack_delay(), None);
    }

    #[test]
    fn a_client_begins_with_version_1_if_it_may() {
        let with = |versions: &[Version], first_version| Config {
            versions: Versions::new(versions).unwrap(),
            first_version,
            ..Config::default()
        };
        let both = [Version::V2, Version::V1];
        assert_eq!(with(&both, None).begins_with(), Version::V1);
        assert_eq!(with(&both, Some(Version::V2)).begins_with(), Version::V2);
        assert_eq!(with(&[Version::V2], None).begins_with(), Version::V2);
    }

    #[test]
    fn each_bound_is_named() {
        type Break = fn(&mut Config);
        let broken: [(&str, Break); 12] = [
            ("first_version", |c| c.first_version = Some(Version(7))),
            ("preferred address", |c| {
                c.preferred_v4 = Some("192.0.2.1:0".parse().unwrap());
            }),
            ("preferred address", |c| {
                c.preferred_v6 = Some("[::]:443".parse().unwrap());
            }),
            ("preferred address", |c| {
                c.preferred_v4 = Some("192.0.2.1:443".parse().unwrap());
                c.cid_length = 0;
            }),
            ("max_streams", |c| {
                c.max_streams_unidirectional = (1 << 60) + 1;
            }),
            ("windows", |c| c.max_stream_window = 1 << 62),
            ("windows", |c| {
                c.connection_window = c.max_connection_window + 1;
            }),
            ("max_ack_delay", |c| {
                c.max_ack_delay = Duration::from_millis(1 << 14);
            }),
            ("max_datagram", |c| c.max_datagram = MIN_DATAGRAM - 1),
            ("max_datagram", |c| c.max_datagram = MAX_DATAGRAM + 1),
            ("keep_alive", |c| c.keep_alive = Some(Duration::ZERO)),
            ("cid_length", |c| c.cid_length = 21),
        ];
        for (setting, breaks) in broken {
            let mut config = Config::default();
            breaks(&mut config);
            assert_eq!(config.validate().unwrap_err().setting, setting);
        }
    }
}
