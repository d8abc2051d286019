//! An authentic packet's frames, each to the component that it is for.

use std::time::Instant;

use quic_common::Ecn;

use super::{Connection, life::Progress, space::SpaceOf as _, unprotect::Packet};
use crate::{
    ack::Frequency,
    cid::NewConnectionId,
    error::Error,
    observe::{Observation, ObservedPacket},
    tls::Phase,
    transmit::Space,
    wire::{AllowedFrames, ConnectionId, Encode as _, Frame, Frames, Level, TransportErrorCode},
};

/// Bytes of frames in two packets of the usual size.
pub(super) const LARGE_PACKET: usize = 2 * 1452;

/// What all frames of a packet have in common.
#[derive(Clone, Copy, Debug)]
struct Carrier<'c> {
    level: Level,
    space: Space,
    allowed: AllowedFrames,
    phase: Phase,
    dcid: &'c ConnectionId,
    now: Instant,
}

impl Packet<'_> {
    /// Whether all frames serve to probe a path, so that the peer doesn't mean to use it yet (RFC 9000, 9.1).
    pub(super) fn is_probing(&self) -> bool {
        let mut frames = Frames::new(self.payload).into_iter().flatten();
        frames.all(|frame| frame.is_ok_and(|frame| frame.is_probing()))
    }

    /// Whether one of the frames is a CONNECTION_CLOSE.
    pub(super) fn has_connection_close(&self) -> bool {
        Frames::new(self.payload)
            .into_iter()
            .flatten()
            .any(|frame| matches!(frame, Ok(Frame::ConnectionClose(_))))
    }
}

impl Connection {
    /// Processes an authentic packet that is no duplicate.
    ///
    /// # Errors
    ///
    /// The first rule that the peer broke; the packet isn't acknowledged then, as the connection ends.
    #[inline]
    pub(super) fn on_packet(
        &mut self,
        packet: &Packet<'_>,
        dcid: &ConnectionId,
        ecn: Ecn,
        now: Instant,
    ) -> Result<(), Error> {
        let carrier = Carrier {
            level: packet.level,
            space: packet.level.space(),
            allowed: AllowedFrames::new(packet.level, self.side.peer()),
            phase: packet.phase,
            dcid,
            now,
        };
        if self.tap.is_some() {
            self.tell_received(packet, dcid, ecn, now);
        }
        let mut is_ack_eliciting = false;
        let mut is_streaming = false;
        let mut frames = Frames::new(packet.payload)?;
        while !frames.is_empty() {
            if let Some(frame) = frames.next_stream() {
                let frame = frame?;
                if !carrier.allowed.has_streams() {
                    return Err(not_permitted(&frame.into()));
                }
                is_ack_eliciting = true;
                is_streaming = true;
                self.streams
                    .on_stream(frame.id, frame.offset, frame.data, frame.fin)?;
            } else {
                is_streaming = false;
                is_ack_eliciting |= self.on_other_frame(&mut frames, &carrier)?;
            }
        }
        if let Some(space) = self.spaces.get_mut(carrier.space) {
            space
                .received
                .on_packet(packet.number, is_ack_eliciting, ecn, now);
            // RFC 9000, 13.2.2 counts packets; one that holds as much as several is as good a reason.
            if is_ack_eliciting && packet.payload.len() >= LARGE_PACKET {
                space.received.on_large();
            }
        }
        self.idle.on_received(now);
        self.streaming = is_streaming.then_some(*dcid);
        Ok(())
    }

    #[cold]
    fn tell_received(&mut self, packet: &Packet<'_>, dcid: &ConnectionId, ecn: Ecn, now: Instant) {
        let scid = (packet.level != Level::OneRtt).then(|| self.remote_cids.current());
        let seen = ObservedPacket {
            kind: packet.level.into(),
            version: self.version,
            number: Some(packet.number),
            dcid: *dcid,
            scid,
            size: packet.payload.len(),
            frames: packet.payload,
            ecn,
            is_mtu_probe: false,
        };
        if let Some(tap) = &mut self.tap {
            tap.tell(&Observation::PacketReceived(seen), now);
        }
    }

    /// Takes the next frame, which isn't most of the traffic; returns whether it is to be acknowledged.
    #[inline(never)] // What runs for each packet needs the registers.
    fn on_other_frame(
        &mut self,
        frames: &mut Frames<'_>,
        carrier: &Carrier<'_>,
    ) -> Result<bool, Error> {
        let Some(frame) = frames.next() else {
            return Ok(false);
        };
        let frame = frame?;
        if !carrier.allowed.contains(frame.frame_type()) {
            return Err(not_permitted(&frame));
        }
        self.on_frame(&frame, carrier)?;
        Ok(frame.is_ack_eliciting())
    }

    fn on_frame(&mut self, frame: &Frame<'_>, carrier: &Carrier<'_>) -> Result<(), Error> {
        match frame {
            Frame::Ack(ack) => self.on_ack(ack, carrier.space, carrier.phase, carrier.now),
            // Data has been seen to.
            Frame::Padding { .. } | Frame::Ping | Frame::Stream { .. } => Ok(()),
            Frame::Crypto { offset, data } => {
                self.on_crypto(*offset, data, carrier.level, carrier.now)
            }
            Frame::ConnectionClose(close) => {
                self.on_connection_close(close, carrier.now);
                Ok(())
            }
            Frame::ResetStream {
                id,
                code,
                final_size,
            } => self.streams.on_reset_stream(*id, *code, *final_size),
            Frame::ResetStreamAt {
                id,
                code,
                final_size,
                reliable_size,
            } => self
                .streams
                .on_reset_stream_at(*id, *code, *final_size, *reliable_size),
            Frame::StopSending { id, code } => self.streams.on_stop_sending(*id, *code),
            Frame::MaxData { limit } => {
                self.streams.on_max_data(*limit);
                Ok(())
            }
            Frame::MaxStreamData { id, limit } => self.streams.on_max_stream_data(*id, *limit),
            Frame::MaxStreams { direction, limit } => {
                self.streams.on_max_streams(*direction, *limit);
                Ok(())
            }
            Frame::StreamDataBlocked { id, limit } => {
                self.streams.on_stream_data_blocked(*id, *limit)
            }
            Frame::HandshakeDone => self.on_handshake_done(carrier.now),
            Frame::NewConnectionId { .. }
            | Frame::RetireConnectionId { .. }
            | Frame::PathChallenge { .. }
            | Frame::PathResponse { .. }
            | Frame::NewToken { .. }
            | Frame::DataBlocked { .. }
            | Frame::StreamsBlocked { .. } => self.on_rare_frame(frame, carrier),
            Frame::Datagram { data } => {
                self.datagrams
                    .incoming
                    .on_datagram(frame.frame_type(), frame.size(), data)
            }
            Frame::ImmediateAck | Frame::AckFrequency { .. } => self.on_ack_request(frame),
        }
    }

    /// Frames about addresses. What the peer lacks, and says so, comes with the data that it lacks it for.
    fn on_rare_frame(&mut self, frame: &Frame<'_>, carrier: &Carrier<'_>) -> Result<(), Error> {
        if let Frame::NewConnectionId {
            sequence,
            retire_prior_to,
            cid,
            reset_token,
        } = *frame
        {
            let before = self.remote_cids.current_sequence();
            self.remote_cids.on_new(&NewConnectionId {
                sequence,
                retire_prior_to,
                cid,
                token: reset_token,
            })?;
            if self.remote_cids.current_sequence() != before {
                self.first_byte.on_new_cid(&mut self.random);
            }
        }
        if let Frame::RetireConnectionId { sequence } = *frame {
            self.local_cids.on_retire(sequence, carrier.dcid)?;
            self.local_cids
                .replenish(self.peer.cid_limit, &mut self.random);
        }
        if let Frame::NewToken { token } = *frame {
            self.keep_token(token);
        }
        if let Frame::PathChallenge { data } = *frame {
            self.on_path_challenge(data);
        }
        if let Frame::PathResponse { data } = *frame {
            self.on_path_response(data, carrier.now);
        }
        Ok(())
    }

    /// The peer asks for more or fewer acknowledgments, if it has been told that it can.
    fn on_ack_request(&mut self, frame: &Frame<'_>) -> Result<(), Error> {
        let Some(least) = self.config.least_ack_delay() else {
            let code = TransportErrorCode::FRAME_ENCODING_ERROR;
            let reason = "the frame type is unknown";
            return Err(Error::new(code, frame.frame_type(), reason));
        };
        let received = &mut self.spaces.application.received;
        match Frequency::read(frame, least)? {
            Some(frequency) => received.on_frequency(frequency),
            None => received.request(),
        }
        self.stats.ack_requests_received += 1;
        Ok(())
    }

    fn on_handshake_done(&mut self, now: Instant) -> Result<(), Error> {
        if self.progress == Progress::Handshaking {
            return Err(Error::protocol(
                0x1e,
                "sent before the handshake was complete",
            ));
        }
        self.confirm();
        self.seek_preferred(now);
        Ok(())
    }
}

#[cold]
const fn not_permitted(frame: &Frame<'_>) -> Error {
    Error::protocol(frame.frame_type(), "not permitted in this packet type")
}
