//! An observer that writes qlog: one JSON text sequence for each connection, as it goes.
//!
//! The format is that of [draft-ietf-quic-qlog-main-schema](https://datatracker.ietf.org/doc/draft-ietf-quic-qlog-main-schema/)
//! in the records of [RFC 7464](https://www.rfc-editor.org/rfc/rfc7464).
//!
//! Packets, losses and keys are written as they are shown; how things stand is compared with what was written last, and
//! only changes are written. What can't be written is lost: a full disk closes no connection.

mod frames;
mod parameters;
mod standing;
mod values;

use std::{
    fmt,
    io::Write,
    time::{Instant, SystemTime},
};

use qlog::{
    CommonFields, ReferenceTime, TimeFormat, TraceSeq, VantagePoint, VantagePointType,
    events::{
        EventData, EventImportance, RawInfo,
        quic::{
            ConnectionClosed, ConnectionStarted, KeyUpdateOrRetiredTrigger, KeyUpdated,
            PacketBuffered, PacketBufferedTrigger, PacketDropped, PacketLost, PacketReceived,
            PacketSent,
        },
    },
    streamer::{EventTimePrecision, QlogStreamer},
};

use self::standing::Written;
use crate::{
    observe::{Observation, ObservedPacket, Observer, Start},
    wire::Side,
};

/// The events that the files hold.
const SCHEMA: &str = "urn:ietf:params:qlog:events:quic-12";

/// Writes the qlog of one connection.
pub struct Qlog {
    title: String,
    wall_clock: SystemTime,
    state: State,
}

enum State {
    /// The connection isn't known yet.
    New(Box<dyn Write + Send + Sync>),
    Open(Box<Open>),
    /// What can be written has been.
    Over,
}

struct Open {
    side: Side,
    log: QlogStreamer,
    written: Written,
}

impl Qlog {
    /// Writes to `writer`. The log begins at `wall_clock`, and says of itself that it is `title`'s.
    #[must_use]
    pub fn new(writer: Box<dyn Write + Send + Sync>, title: &str, wall_clock: SystemTime) -> Self {
        Self {
            title: title.to_owned(),
            wall_clock,
            state: State::New(writer),
        }
    }

    fn start(&mut self, start: &Start, now: Instant) {
        let State::New(writer) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let vantage_point = VantagePoint {
            name: Some(self.title.clone()),
            ty: match start.side {
                Side::Client => VantagePointType::Client,
                Side::Server => VantagePointType::Server,
            },
            flow: None,
        };
        let common_fields = CommonFields {
            tuple: None,
            group_id: Some(values::hex(start.original_dcid.as_slice())),
            protocol_types: Some(vec!["QUIC".to_owned()]),
            reference_time: ReferenceTime::new_monotonic(Some(self.wall_clock)),
            time_format: Some(TimeFormat::RelativeToEpoch),
        };
        let trace = TraceSeq::new(
            None,
            None,
            Some(common_fields),
            Some(vantage_point),
            vec![SCHEMA.to_owned()],
        );
        let mut log = QlogStreamer::new(
            Some(self.title.clone()),
            None,
            now,
            trace,
            EventImportance::Extra,
            EventTimePrecision::MicroSeconds,
            writer,
        );
        if log.start_log().is_err() {
            return;
        }
        let mut open = Open {
            side: start.side,
            log,
            written: Written::default(),
        };
        let started = ConnectionStarted {
            local: values::endpoint(None, Some(start.local_cid)),
            remote: values::endpoint(Some(start.remote), None),
        };
        open.write(EventData::QuicConnectionStarted(started), now);
        self.state = State::Open(Box::new(open));
    }
}

impl Observer for Qlog {
    fn observe(&mut self, observation: &Observation<'_>, now: Instant) {
        if let Observation::Started(start) = observation {
            return self.start(start, now);
        }
        if let State::Open(open) = &mut self.state {
            open.observe(observation, now);
        }
    }
}

impl Open {
    fn observe(&mut self, observation: &Observation<'_>, now: Instant) {
        let event = match observation {
            Observation::Started(_) => return,
            Observation::Standing(standing) => {
                for event in self.written.changes(standing, now) {
                    self.write(event, now);
                }
                return;
            }
            Observation::Parameters { of, bytes } => match parameters::set(self.side, *of, bytes) {
                Some(set) => EventData::QuicParametersSet(Box::new(set)),
                None => return,
            },
            Observation::PacketSent(packet) => EventData::QuicPacketSent(PacketSent {
                header: values::header(packet),
                raw: Some(raw(packet)),
                is_mtu_probe_packet: packet.is_mtu_probe.then_some(true),
                frames: Some(frames::all(packet.frames)),
                ..PacketSent::default()
            }),
            Observation::PacketReceived(packet) => EventData::QuicPacketReceived(PacketReceived {
                header: values::header(packet),
                raw: Some(raw(packet)),
                frames: Some(frames::all(packet.frames)),
                ..PacketReceived::default()
            }),
            Observation::PacketDropped { size, why } => {
                EventData::QuicPacketDropped(PacketDropped {
                    raw: Some(values::raw(*size)),
                    details: values::details(*why).map(str::to_owned),
                    trigger: Some(values::drop_trigger(*why)),
                    ..PacketDropped::default()
                })
            }
            Observation::PacketBuffered { kind, size } => {
                EventData::QuicPacketBuffered(PacketBuffered {
                    header: Some(values::bare_header(*kind, None)),
                    raw: Some(values::raw(*size)),
                    datagram_id: None,
                    trigger: Some(PacketBufferedTrigger::KeysUnavailable),
                })
            }
            Observation::PacketLost {
                kind,
                number,
                is_mtu_probe,
            } => EventData::QuicPacketLost(PacketLost {
                header: Some(values::bare_header(*kind, Some(*number))),
                is_mtu_probe_packet: is_mtu_probe.then_some(true),
                ..PacketLost::default()
            }),
            Observation::KeysUpdated { by, generation } => EventData::QuicKeyUpdated(KeyUpdated {
                key_type: values::one_rtt_key(*by),
                key_phase: Some(*generation),
                trigger: Some(if *by == self.side {
                    KeyUpdateOrRetiredTrigger::LocalUpdate
                } else {
                    KeyUpdateOrRetiredTrigger::RemoteUpdate
                }),
                ..KeyUpdated::default()
            }),
            Observation::Closed(reason) => {
                let closed: ConnectionClosed = values::closed(reason);
                EventData::QuicConnectionClosed(closed)
            }
        };
        self.write(event, now);
    }

    fn write(&mut self, event: EventData, now: Instant) {
        // Nobody can be told that the disk is full.
        drop(self.log.add_event_data_with_instant(event, now));
    }
}

fn raw(packet: &ObservedPacket<'_>) -> RawInfo {
    RawInfo {
        payload_length: u64::try_from(packet.frames.len()).ok(),
        ..values::raw(packet.size)
    }
}

impl fmt::Debug for Qlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qlog")
            .field("title", &self.title)
            .finish_non_exhaustive()
    }
}
