//! What has changed since it was last written.

use std::time::{Duration, Instant};

use qlog::events::{
    EventData,
    quic::{
        AlpnIdentifier, AlpnInformation, CongestionStateUpdated, ConnectionState,
        ConnectionStateUpdated, EcnState as Ecn, EcnStateUpdated, KeyDiscarded, KeyType,
        KeyUpdateOrRetiredTrigger, KeyUpdated, MtuUpdated, ParametersSet, QuicVersionInformation,
        RecoveryMetricsUpdated, TimerEventType, TimerType, TimerUpdated, TransportInitiator,
    },
};

use super::values;
use crate::{
    observe::{CongestionState, EcnState, HandshakeState, LossTimerKind, RoundTrip, Standing},
    wire::Version,
};

/// The keys of both ends, in the order of [`Standing::has_keys`].
const KEYS: [[KeyType; 2]; 3] = [
    [KeyType::ClientInitialSecret, KeyType::ServerInitialSecret],
    [
        KeyType::ClientHandshakeSecret,
        KeyType::ServerHandshakeSecret,
    ],
    [KeyType::Client1RttSecret, KeyType::Server1RttSecret],
];

/// What was written last.
#[derive(Debug, Default)]
pub(super) struct Written {
    version: Option<Version>,
    has_alpn: bool,
    has_cipher: bool,
    handshake: Option<HandshakeState>,
    has_keys: [bool; 3],
    metrics: Option<Metrics>,
    congestion: Option<CongestionState>,
    mtu: Option<u16>,
    ecn: Option<EcnState>,
    loss_timer: Option<(Instant, LossTimerKind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Metrics {
    rtt: Option<RoundTrip>,
    probe_timeouts: u32,
    congestion_window: u64,
    bytes_in_flight: u64,
    slow_start_threshold: Option<u64>,
}

impl Written {
    /// What is to be written now.
    pub(super) fn changes(&mut self, standing: &Standing<'_>, now: Instant) -> Vec<EventData> {
        let mut events = Vec::new();
        self.version(standing, &mut events);
        self.keys(standing, &mut events);
        self.handshake(standing, &mut events);
        self.path(standing, &mut events);
        self.recovery(standing, &mut events);
        self.timer(standing, now, &mut events);
        events
    }

    fn version(&mut self, standing: &Standing<'_>, events: &mut Vec<EventData>) {
        if self.version.replace(standing.version) != Some(standing.version) {
            events.push(EventData::QuicVersionInformation(QuicVersionInformation {
                chosen_version: Some(values::version(standing.version)),
                ..QuicVersionInformation::default()
            }));
        }
    }

    fn keys(&mut self, standing: &Standing<'_>, events: &mut Vec<EventData>) {
        let before = std::mem::replace(&mut self.has_keys, standing.has_keys);
        for ((had, has), both) in before.into_iter().zip(standing.has_keys).zip(KEYS) {
            for key_type in both.into_iter().filter(|_| had != has) {
                let trigger = Some(KeyUpdateOrRetiredTrigger::Tls);
                events.push(if has {
                    EventData::QuicKeyUpdated(KeyUpdated {
                        key_type,
                        trigger,
                        ..KeyUpdated::default()
                    })
                } else {
                    EventData::QuicKeyDiscarded(KeyDiscarded {
                        key_type,
                        key: None,
                        key_phase: None,
                        trigger,
                    })
                });
            }
        }
    }

    fn handshake(&mut self, standing: &Standing<'_>, events: &mut Vec<EventData>) {
        if !self.has_alpn
            && let Some(alpn) = standing.alpn
        {
            self.has_alpn = true;
            events.push(EventData::QuicAlpnInformation(AlpnInformation {
                chosen_alpn: Some(AlpnIdentifier {
                    byte_value: Some(values::hex(alpn)),
                    string_value: Some(String::from_utf8_lossy(alpn).into_owned()),
                }),
                ..AlpnInformation::default()
            }));
        }
        let is_done = standing.handshake != HandshakeState::Started;
        if is_done && !self.has_cipher && !standing.cipher_suite.is_empty() {
            self.has_cipher = true;
            events.push(EventData::QuicParametersSet(Box::new(ParametersSet {
                initiator: Some(TransportInitiator::Local),
                tls_cipher: Some(standing.cipher_suite.to_owned()),
                resumption_allowed: Some(standing.is_resumed),
                ..ParametersSet::default()
            })));
        }
        let old = self.handshake.replace(standing.handshake);
        if old != Some(standing.handshake) {
            events.push(EventData::QuicConnectionStateUpdated(
                ConnectionStateUpdated {
                    old: old.map(connection_state),
                    new: connection_state(standing.handshake),
                },
            ));
        }
    }

    fn path(&mut self, standing: &Standing<'_>, events: &mut Vec<EventData>) {
        let old = self.mtu.replace(standing.mtu);
        if old != Some(standing.mtu) {
            events.push(EventData::QuicMtuUpdated(MtuUpdated {
                old: old.map(u32::from),
                new: standing.mtu.into(),
                done: None,
            }));
        }
        let old = self.ecn.replace(standing.ecn);
        if old != Some(standing.ecn) {
            events.push(EventData::QuicEcnStateUpdated(EcnStateUpdated {
                old: old.map(ecn_state),
                new: ecn_state(standing.ecn),
            }));
        }
    }

    fn recovery(&mut self, standing: &Standing<'_>, events: &mut Vec<EventData>) {
        let metrics = Metrics {
            rtt: standing.rtt,
            probe_timeouts: standing.probe_timeouts,
            congestion_window: standing.congestion_window,
            bytes_in_flight: standing.bytes_in_flight,
            slow_start_threshold: standing.slow_start_threshold,
        };
        if self.metrics.replace(metrics) != Some(metrics) {
            events.push(EventData::QuicMetricsUpdated(RecoveryMetricsUpdated {
                min_rtt: metrics.rtt.map(|rtt| milliseconds(rtt.min)),
                smoothed_rtt: metrics.rtt.map(|rtt| milliseconds(rtt.smoothed)),
                latest_rtt: metrics.rtt.map(|rtt| milliseconds(rtt.latest)),
                rtt_variance: metrics.rtt.map(|rtt| milliseconds(rtt.variation)),
                pto_count: u16::try_from(metrics.probe_timeouts).ok(),
                congestion_window: Some(metrics.congestion_window),
                bytes_in_flight: Some(metrics.bytes_in_flight),
                ssthresh: metrics.slow_start_threshold,
                ..RecoveryMetricsUpdated::default()
            }));
        }
        let old = self.congestion.replace(standing.congestion);
        if old != Some(standing.congestion) {
            events.push(EventData::QuicCongestionStateUpdated(
                CongestionStateUpdated {
                    old: old.map(|state| congestion_state(state).to_owned()),
                    new: congestion_state(standing.congestion).to_owned(),
                    trigger: None,
                },
            ));
        }
    }

    /// A deadline that has passed when it changes has expired.
    fn timer(&mut self, standing: &Standing<'_>, now: Instant, events: &mut Vec<EventData>) {
        let old = std::mem::replace(&mut self.loss_timer, standing.loss_timer);
        if old == standing.loss_timer {
            return;
        }
        let event = |kind, event_type, delta| {
            EventData::QuicTimerUpdated(TimerUpdated {
                timer_type: Some(match kind {
                    LossTimerKind::Loss => TimerType::LossTimeout,
                    LossTimerKind::Probe => TimerType::Pto,
                }),
                timer_id: None,
                packet_number_space: None,
                event_type,
                delta,
            })
        };
        match (old, standing.loss_timer) {
            (Some((at, kind)), _) if at <= now => {
                events.push(event(kind, TimerEventType::Expired, None));
            }
            (Some((_, kind)), None) => events.push(event(kind, TimerEventType::Cancelled, None)),
            (Some(_) | None, _) => {}
        }
        if let Some((at, kind)) = standing.loss_timer {
            let delta = milliseconds(at.saturating_duration_since(now));
            events.push(event(kind, TimerEventType::Set, Some(delta)));
        }
    }
}

const fn milliseconds(time: Duration) -> f32 {
    time.as_secs_f32() * 1000.0
}

const fn connection_state(state: HandshakeState) -> ConnectionState {
    match state {
        HandshakeState::Started => ConnectionState::HandshakeStarted,
        HandshakeState::Completed => ConnectionState::HandshakeCompleted,
        HandshakeState::Confirmed => ConnectionState::HandshakeConfirmed,
    }
}

const fn ecn_state(state: EcnState) -> Ecn {
    match state {
        EcnState::Testing => Ecn::Testing,
        EcnState::Unknown => Ecn::Unknown,
        EcnState::Capable => Ecn::Capable,
        EcnState::Failed => Ecn::Failed,
    }
}

const fn congestion_state(state: CongestionState) -> &'static str {
    match state {
        CongestionState::SlowStart => "slow_start",
        CongestionState::Avoidance => "congestion_avoidance",
    }
}
