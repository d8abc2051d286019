//! Datagrams of the application until they are sent, and what is told of them.

use std::collections::VecDeque;

use quic_common::MAX_VARINT;

use super::queue::Queue;
use super::settings::{DatagramSettings, WhenFull};
use crate::error::DatagramError;
use crate::limits::DATAGRAM_OUTCOMES;
use crate::transmit::{PacketWriter, SentFrame};
use crate::wire::DatagramHeader;

/// A datagram that was sent or is to be: those of a connection are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramId(pub u64);

/// Something about datagrams that the application may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatagramEvent {
    /// There is something to receive.
    Readable,
    /// There is room again, after a datagram was refused.
    Writable,
    /// The packet with the datagram was acknowledged; whether the peer's application has it isn't said.
    Acked(DatagramId),
    /// The packet with the datagram was lost; it isn't sent again. It may have arrived nevertheless, or still arrive.
    Lost(DatagramId),
    /// The datagram was never sent: newer ones took its place, or the path came to carry only smaller ones, or the
    /// server takes only smaller ones than when the session began that early data belongs to.
    Dropped(DatagramId),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct OutgoingDatagrams {
    queue: Queue,
    when_full: WhenFull,
    /// The largest frame that the peer takes; 0 for none, or when it has not been heard.
    peer_frame_size: u64,
    /// The number that the next datagram gets.
    next: u64,
    /// One was refused.
    is_waiting: bool,
    outcomes: Option<VecDeque<DatagramEvent>>,
    /// The last packet that streams wanted too was for datagrams first.
    had_turn: bool,
    sent: u64,
    acked: u64,
    lost: u64,
    dropped: u64,
}

impl OutgoingDatagrams {
    pub(crate) fn new(settings: &DatagramSettings) -> Self {
        Self {
            queue: Queue::new(settings.send_buffer),
            when_full: settings.when_full,
            peer_frame_size: 0,
            next: 0,
            is_waiting: false,
            outcomes: settings.outcomes.then(VecDeque::new),
            had_turn: false,
            sent: 0,
            acked: 0,
            lost: 0,
            dropped: 0,
        }
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.queue.rest();
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.shrink_to_fit();
        }
    }

    /// The peer takes frames of up to `size` bytes.
    pub(crate) const fn set_peer_limit(&mut self, size: u64) {
        self.peer_frame_size = size;
    }

    /// Whether any wait to be sent.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The largest datagram that can be sent now, when a packet holds frames of `room` bytes; `None` when the peer
    /// takes none.
    pub(crate) fn most(&self, room: usize) -> Option<usize> {
        // A type, a length that we always may add, and the data.
        let lengths = [(1, 63), (2, 16_383), (4, (1 << 30) - 1), (8, MAX_VARINT)];
        let by_peer = lengths
            .into_iter()
            .filter_map(|(size, most)| {
                let data = self.peer_frame_size.checked_sub(1 + size)?;
                Some(data.min(most))
            })
            .max()?;
        let by_path = room.checked_sub(1)?.min(self.queue.most()?);
        Some(usize::try_from(by_peer).map_or(by_path, |by_peer| by_path.min(by_peer)))
    }

    /// Takes a datagram to be sent in a packet that holds frames of `room` bytes.
    ///
    /// # Errors
    ///
    /// When the peer takes none, none so large, or too many wait.
    pub(crate) fn send(&mut self, data: &[u8], room: usize) -> Result<DatagramId, DatagramError> {
        let most = self.most(room).ok_or(DatagramError::Unsupported)?;
        if data.len() > most {
            return Err(DatagramError::TooLarge { most });
        }
        while !self.queue.has_room(data.len()) {
            if self.when_full == WhenFull::Refuse {
                self.is_waiting = true;
                return Err(DatagramError::Full);
            }
            self.drop_oldest();
        }
        self.queue.push(data);
        let id = DatagramId(self.next);
        self.next += 1;
        Ok(id)
    }

    /// Whether it is their turn to be first in a packet, when `others` have something for it too: then they take turns,
    /// so that neither starves the other.
    pub(crate) const fn take_turn(&mut self, others: bool) -> bool {
        self.had_turn = others && !self.had_turn;
        !others || self.had_turn
    }

    /// Writes what fits into a packet that holds frames of `room` bytes when it is empty.
    pub(crate) fn write(&mut self, packet: &mut PacketWriter<'_>, room: usize) {
        while let Some(length) = self.queue.front_length() {
            if self.most(room).is_none_or(|most| length > most) {
                // The path has come to carry less, or a server takes less than it did when 0-RTT data relied on it.
                self.drop_oldest();
                continue;
            }
            let Some((header, padding)) = DatagramHeader::fit(packet.remaining(), length) else {
                return;
            };
            packet.padding(padding);
            let record = SentFrame::Datagram { id: self.front().0 };
            let (Some(space), Some((first, second))) = (
                packet.data_frame(&header, length, record),
                self.queue.front(),
            ) else {
                debug_assert!(false, "a frame that was fitted does not fit");
                return;
            };
            let (one, two) = space.split_at_mut(first.len().min(length));
            one.copy_from_slice(first);
            two.copy_from_slice(second);
            self.queue.pop();
            self.sent += 1;
        }
    }

    /// The packet with the datagram was acknowledged.
    pub(crate) fn on_acked(&mut self, id: u64) {
        self.acked += 1;
        self.tell(DatagramEvent::Acked(DatagramId(id)));
    }

    /// The packet with the datagram was lost.
    pub(crate) fn on_lost(&mut self, id: u64) {
        self.lost += 1;
        self.tell(DatagramEvent::Lost(DatagramId(id)));
    }

    /// The next thing to tell.
    pub(crate) fn next_event(&mut self) -> Option<DatagramEvent> {
        if self.is_writable_again() {
            self.is_waiting = false;
            return Some(DatagramEvent::Writable);
        }
        self.outcomes.as_mut()?.pop_front()
    }

    pub(crate) fn has_event(&self) -> bool {
        self.is_writable_again() || self.outcomes.as_ref().is_some_and(|told| !told.is_empty())
    }

    /// Bytes that wait.
    pub(crate) fn size(&self) -> usize {
        self.queue.size()
    }

    /// How many were sent, acknowledged, lost, and dropped before they were sent.
    pub(crate) const fn counts(&self) -> [u64; 4] {
        [self.sent, self.acked, self.lost, self.dropped]
    }

    /// Whether there is room for more than a trickle, after one was refused.
    fn is_writable_again(&self) -> bool {
        self.is_waiting && self.queue.is_half_empty()
    }

    /// The number of the oldest that waits.
    fn front(&self) -> DatagramId {
        let waiting = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        DatagramId(self.next.saturating_sub(waiting))
    }

    fn drop_oldest(&mut self) {
        let id = self.front();
        self.queue.pop();
        self.dropped += 1;
        self.tell(DatagramEvent::Dropped(id));
    }

    /// An application that doesn't ask loses the oldest outcomes.
    fn tell(&mut self, outcome: DatagramEvent) {
        if let Some(outcomes) = &mut self.outcomes {
            if outcomes.len() >= DATAGRAM_OUTCOMES {
                outcomes.pop_front();
            }
            outcomes.push_back(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DatagramError, DatagramEvent, DatagramId, DatagramSettings, OutgoingDatagrams};
    use crate::datagram::queue::OVERHEAD;
    use crate::datagram::settings::WhenFull;
    use crate::limits::DATAGRAM_OUTCOMES;
    use crate::transmit::{FrameLog, PacketWriter, SentFrame};
    use crate::wire::{Frame, Frames};

    fn outgoing(peer: u64, send_buffer: usize, when_full: WhenFull) -> OutgoingDatagrams {
        let mut datagrams = OutgoingDatagrams::new(&DatagramSettings {
            send_buffer,
            when_full,
            outcomes: true,
            ..DatagramSettings::default()
        });
        datagrams.set_peer_limit(peer);
        datagrams
    }

    /// What a packet of `room` bytes of frames has.
    fn packet(datagrams: &mut OutgoingDatagrams, room: usize) -> Vec<Vec<u8>> {
        let (mut payload, mut log) = (vec![0xff; room], FrameLog::new());
        let mut writer = PacketWriter::new(&mut payload, &mut log);
        datagrams.write(&mut writer, room);
        let length = writer.finish().length;
        let Ok(frames) = Frames::new(&payload[..length]) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for frame in frames {
            let frame = frame.unwrap();
            if let Frame::Datagram { data } = frame {
                found.push(data.to_vec());
            } else {
                assert!(matches!(frame, Frame::Padding { .. }), "{frame:?}");
            }
        }
        found
    }

    fn events(datagrams: &mut OutgoingDatagrams) -> Vec<DatagramEvent> {
        std::iter::from_fn(|| datagrams.next_event()).collect()
    }

    /// RFC 9221, 3: no frame leaves before the peer has permitted some, nor one that is larger.
    #[test]
    fn the_peers_limit_counts_the_whole_frame() {
        let mut none = outgoing(0, 10_000, WhenFull::Refuse);
        assert_eq!(none.send(b"", 1000), Err(DatagramError::Unsupported));
        for peer in 2..20_000 {
            let datagrams = outgoing(peer, 100_000, WhenFull::Refuse);
            let most = datagrams.most(50_000).unwrap();
            let size = |length: usize| {
                let length_size = match length {
                    0..64 => 1,
                    64..16_384 => 2,
                    _ => 4,
                };
                u64::try_from(1 + length_size + length).unwrap()
            };
            assert!(size(most) <= peer && size(most + 1) > peer, "{peer} {most}");
        }
        let unlimited = outgoing(quic_common::MAX_VARINT, 100_000, WhenFull::Refuse);
        assert_eq!(unlimited.most(1000), Some(999));
    }

    #[test]
    fn the_largest_datagram_fits_into_an_empty_packet() {
        for room in [2, 60, 63, 64, 65, 66, 67, 68, 1000, 1200] {
            let mut datagrams = outgoing(65_535, 10_000, WhenFull::Refuse);
            let most = datagrams.most(room).unwrap();
            let too_large = vec![1; most + 1];
            assert_eq!(
                datagrams.send(&too_large, room),
                Err(DatagramError::TooLarge { most })
            );
            assert_eq!(datagrams.send(&too_large[1..], room), Ok(DatagramId(0)));
            assert_eq!(packet(&mut datagrams, room), [&too_large[1..]]);
        }
    }

    #[test]
    fn a_full_queue_refuses_and_says_when_there_is_room() {
        let mut datagrams = outgoing(65_535, 4 * (OVERHEAD + 100), WhenFull::Refuse);
        for id in 0..4 {
            assert_eq!(datagrams.send(&[7; 100], 1000), Ok(DatagramId(id)));
        }
        assert_eq!(datagrams.send(&[7; 100], 1000), Err(DatagramError::Full));
        assert!(!datagrams.has_event());
        packet(&mut datagrams, 250);
        assert!(datagrams.has_event());
        assert_eq!(events(&mut datagrams), [DatagramEvent::Writable]);
        assert_eq!(datagrams.send(&[7; 100], 1000), Ok(DatagramId(4)));
        assert!(events(&mut datagrams).is_empty(), "told once");
    }

    #[test]
    fn the_oldest_make_room_if_asked_to() {
        let mut datagrams = outgoing(65_535, 2 * (OVERHEAD + 10), WhenFull::DropOldest);
        for data in [b"a", b"b", b"c"] {
            datagrams.send(&data.repeat(10), 1000).unwrap();
        }
        let dropped = DatagramEvent::Dropped(DatagramId(0));
        assert_eq!(events(&mut datagrams), [dropped]);
        assert_eq!(
            packet(&mut datagrams, 1000),
            [b"b".repeat(10), b"c".repeat(10)]
        );
        assert_eq!(datagrams.counts(), [2, 0, 0, 1]);
    }

    #[test]
    fn what_the_path_no_longer_carries_is_dropped() {
        let mut datagrams = outgoing(65_535, 10_000, WhenFull::Refuse);
        datagrams.send(&[1; 900], 1000).unwrap();
        datagrams.send(&[2; 400], 1000).unwrap();
        assert_eq!(packet(&mut datagrams, 500), [vec![2; 400]]);
        let dropped = DatagramEvent::Dropped(DatagramId(0));
        assert_eq!(events(&mut datagrams), [dropped]);
    }

    #[test]
    fn a_packet_takes_as_many_as_fit_and_remembers_them() {
        let mut datagrams = outgoing(65_535, 10_000, WhenFull::Refuse);
        for _ in 0..5 {
            datagrams.send(&[3; 100], 1000).unwrap();
        }
        let (mut payload, mut log) = ([0; 350], FrameLog::new());
        let mut writer = PacketWriter::new(&mut payload, &mut log);
        datagrams.write(&mut writer, 350);
        assert!(writer.is_ack_eliciting());
        let records: Vec<_> = log.range(0..9).collect();
        assert_eq!(records, [0, 1, 2].map(|id| SentFrame::Datagram { id }));
        datagrams.on_acked(1);
        datagrams.on_lost(0);
        let told = [
            DatagramEvent::Acked(DatagramId(1)),
            DatagramEvent::Lost(DatagramId(0)),
        ];
        assert_eq!(events(&mut datagrams), told);
    }

    #[test]
    fn turns_are_taken_only_when_others_wait() {
        let mut datagrams = outgoing(65_535, 10_000, WhenFull::Refuse);
        let turns = [true, true, true, true].map(|others| datagrams.take_turn(others));
        assert_eq!(turns, [true, false, true, false]);
        let alone = [false, false].map(|others| datagrams.take_turn(others));
        assert_eq!(alone, [true, true]);
    }

    #[test]
    fn outcomes_that_nobody_fetches_are_bounded() {
        let mut datagrams = outgoing(65_535, 10_000, WhenFull::Refuse);
        let cap = u64::try_from(DATAGRAM_OUTCOMES).unwrap();
        for id in 0..cap {
            datagrams.on_acked(id);
        }
        assert_eq!(
            datagrams.outcomes.as_ref().unwrap().len(),
            DATAGRAM_OUTCOMES
        );
        datagrams.on_acked(cap);
        let told = events(&mut datagrams);
        assert_eq!(told.len(), DATAGRAM_OUTCOMES);
        assert_eq!(told[0], DatagramEvent::Acked(DatagramId(1)));
    }
}
