//! What became of our frames ([RFC 9000, section 13.3](https://www.rfc-editor.org/rfc/rfc9000#section-13.3)): data is
//! kept until it has arrived, everything else is sent again as it is then, if it is of use at all.

use super::events::news;
use super::output::owed;
use super::streams::{Streams, place};
use crate::transmit::SentFrame;
use crate::wire::StreamId;

impl Streams {
    /// A packet with this frame was acknowledged; frames of others are ignored.
    #[inline]
    pub(crate) fn on_acked(&mut self, frame: SentFrame) {
        if let SentFrame::Stream {
            id,
            offset,
            length,
            fin,
        } = frame
        {
            self.on_data_acked(id, offset, length, fin);
        } else if let SentFrame::ResetStreamAt { id, reliable_size } = frame
            && let Some(slot) = self.table.find(id)
        {
            let send = self.table.get_mut(slot).and_then(|s| s.send.as_mut());
            if send.is_some_and(|send| send.on_reset_at_acked(reliable_size, &mut self.pool)) {
                self.tell(slot, news::SENT);
            }
        } else if let SentFrame::ResetStream(id) = frame
            && let Some(slot) = self.table.find(id)
            && let Some(send) = self.table.get_mut(slot).and_then(|s| s.send.as_mut())
            && send.reset_frame().is_some()
        {
            send.on_reset_acked();
            self.tell(slot, news::SENT);
        }
    }

    /// A packet with this frame was lost; frames of others are ignored.
    pub(crate) fn on_lost(&mut self, frame: SentFrame) {
        match frame {
            SentFrame::Stream {
                id,
                offset,
                length,
                fin,
            } => {
                if let Some(slot) = self.table.find(id) {
                    if let Some(send) = self.table.get_mut(slot).and_then(|s| s.send.as_mut()) {
                        send.on_lost(offset, length, fin);
                    }
                    self.schedule(slot);
                }
            }
            SentFrame::ResetStream(id) => self.owe_again(id, owed::RESET_STREAM),
            SentFrame::ResetStreamAt { id, reliable_size } => {
                if let Some(slot) = self.table.find(id)
                    && let Some(stream) = self.table.get_mut(slot)
                {
                    if let Some(send) = stream.send.as_mut() {
                        send.on_reset_at_lost(reliable_size);
                    }
                    if stream.owes_reset_at() {
                        self.owe(slot, owed::RESET_STREAM_AT);
                    }
                }
            }
            SentFrame::StopSending(id) => self.owe_again(id, owed::STOP_SENDING),
            SentFrame::MaxStreamData(id) => self.owe_again(id, owed::MAX_STREAM_DATA),
            SentFrame::StreamDataBlocked { id, at } => {
                if let Some(slot) = self.table.find(id)
                    && let Some(send) = self.table.get_mut(slot).and_then(|s| s.send.as_mut())
                    && send.credit.on_blocked_lost(at)
                {
                    self.owe(slot, owed::STREAM_DATA_BLOCKED);
                }
            }
            SentFrame::MaxData => self.max_data_owed = true,
            SentFrame::MaxStreams(direction) => {
                if let Some(remote) = self.remote.get_mut(place(direction)) {
                    remote.on_lost();
                }
            }
            SentFrame::DataBlocked { at } => {
                self.credit.on_blocked_lost(at);
            }
            SentFrame::StreamsBlocked { direction, at } => {
                if let Some(local) = self.local.get_mut(place(direction)) {
                    local.credit().on_blocked_lost(at);
                }
            }
            SentFrame::Ack { .. }
            | SentFrame::Crypto { .. }
            | SentFrame::NewConnectionId { .. }
            | SentFrame::RetireConnectionId { .. }
            | SentFrame::NewToken
            | SentFrame::PathChallenge
            | SentFrame::PathResponse
            | SentFrame::HandshakeDone
            | SentFrame::AckFrequency { .. }
            | SentFrame::Datagram { .. }
            | SentFrame::Ping
            | SentFrame::MtuProbe => {}
        }
    }

    #[inline]
    fn on_data_acked(&mut self, id: StreamId, offset: u64, length: u32, fin: bool) {
        let Some(slot) = self.table.find(id) else {
            return;
        };
        let Some(send) = self.table.get_mut(slot).and_then(|s| s.send.as_mut()) else {
            return;
        };
        let was_over = send.is_over();
        let fresh = send.on_acked(offset, length, fin, &mut self.pool);
        let is_over = send.is_over() && !was_over;
        // Data that was thought lost has arrived, or a sliver of credit may be used now that nothing is in flight.
        let changed =
            send.demand().map(|demand| send.priority.lane(demand)) != self.scheduled.lane_of(slot);
        self.on_released(fresh, fresh);
        if changed {
            self.schedule(slot);
        }
        if is_over {
            self.tell(slot, news::SENT);
        }
    }

    fn owe_again(&mut self, id: StreamId, frame: u8) {
        if let Some(slot) = self.table.find(id) {
            self.owe(slot, frame);
        }
    }
}
