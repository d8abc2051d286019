//! All streams of a connection, and what they share: flow control of the connection, the pool of buffers, the lists
//! of streams that wait for something.

use std::time::{Duration, Instant};

use super::events::{News, news};
use super::lanes::Lanes;
use super::output::owed;
use super::priority::{Demand, LANES, NEW_LANES};
use super::receive::ReceiveStream;
use super::send::SendStream;
use super::table::{Slot, Stream, Table};
use crate::buffer::ChunkPool;
use crate::flow::{LocalStreams, PeerStreams, ReceiveWindow, SendCredit, WindowSize};
use crate::limits;
use crate::wire::{Direction, Side, StreamId};

/// What we let the peer do, and how much we hold for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamSettings {
    /// Bidirectional streams of the peer at once.
    pub(crate) bidirectional: u64,
    /// Unidirectional streams of the peer at once.
    pub(crate) unidirectional: u64,
    /// The receive window of each stream.
    pub(crate) stream_window: WindowSize,
    /// The receive window of all streams together.
    pub(crate) connection_window: WindowSize,
    /// Bytes that each stream takes from the application ahead of sending them.
    pub(crate) backlog: u64,
    /// Bytes that all streams hold until they are acknowledged.
    pub(crate) held: u64,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            bidirectional: limits::STREAMS,
            unidirectional: limits::STREAMS,
            stream_window: WindowSize {
                initial: limits::STREAM_WINDOW,
                most: limits::STREAM_WINDOW_MOST,
            },
            connection_window: WindowSize {
                initial: limits::CONNECTION_WINDOW,
                most: limits::CONNECTION_WINDOW_MOST,
            },
            backlog: limits::SEND_BACKLOG,
            held: limits::SEND_HELD,
        }
    }
}

/// What the peer's transport parameters let us do. "Local" and "remote" are meant as the peer means them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerLimits {
    /// initial_max_data.
    pub(crate) data: u64,
    /// initial_max_stream_data_bidi_local: for bidirectional streams that the peer opens.
    pub(crate) stream_local: u64,
    /// initial_max_stream_data_bidi_remote: for bidirectional streams that we open.
    pub(crate) stream_remote: u64,
    /// initial_max_stream_data_uni.
    pub(crate) stream_unidirectional: u64,
    /// initial_max_streams_bidi.
    pub(crate) bidirectional: u64,
    /// initial_max_streams_uni.
    pub(crate) unidirectional: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(super) side: Side,
    pub(super) settings: StreamSettings,
    pub(super) peer: PeerLimits,
    pub(super) table: Table,
    pub(super) pool: ChunkPool,
    /// Our streams, bidirectional and unidirectional.
    pub(super) local: [LocalStreams; 2],
    /// The peer's.
    pub(super) remote: [PeerStreams; 2],
    /// What the peer lets us send on all streams.
    pub(super) credit: SendCredit,
    /// What we let the peer send on all streams.
    pub(super) window: ReceiveWindow,
    /// The sum of the ends of what has arrived on each stream.
    pub(super) received: u64,
    pub(super) max_data_owed: bool,
    /// Bytes written by the application and not acknowledged.
    pub(super) held: u64,
    /// Those of them that were sent.
    pub(super) in_flight: u64,
    /// Who has data to send, by priority.
    pub(super) scheduled: Lanes<LANES>,
    /// Who owes another frame.
    pub(super) owing: Lanes<1>,
    /// Who has news for the application.
    pub(super) told: Lanes<1>,
    /// The stream of the last event, if it had no other news.
    pub(super) ending: Option<Slot>,
    /// Who has been read enough to consider new credit.
    pub(super) tuning: Lanes<1>,
    /// Who was refused bytes because all streams together hold too many.
    pub(super) waiting: Lanes<1>,
    /// Who has told the peer that its limit stops it; some may have got credit since.
    pub(super) stopped: Lanes<1>,
    /// Whether the peer has let us open more streams, bidirectional and unidirectional.
    pub(super) available: [bool; 2],
    /// Some streams of ours were opened under a limit that holds no longer, see [`Self::restart`].
    pub(super) has_barred: bool,
}

/// The place of a direction in an array of two.
#[inline]
pub(super) const fn place(direction: Direction) -> usize {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

impl Streams {
    /// No streams yet, and no credit before [`Self::set_peer_limits`].
    pub(crate) fn new(side: Side, settings: StreamSettings) -> Self {
        Self {
            side,
            settings,
            peer: PeerLimits::default(),
            table: Table::default(),
            pool: ChunkPool::default(),
            local: [LocalStreams::default(); 2],
            remote: [
                PeerStreams::new(settings.bidirectional),
                PeerStreams::new(settings.unidirectional),
            ],
            credit: SendCredit::default(),
            window: ReceiveWindow::new(settings.connection_window.initial),
            received: 0,
            max_data_owed: false,
            held: 0,
            in_flight: 0,
            scheduled: Lanes::default(),
            owing: Lanes::default(),
            told: Lanes::default(),
            ending: None,
            tuning: Lanes::default(),
            waiting: Lanes::default(),
            stopped: Lanes::default(),
            available: [false; 2],
            has_barred: false,
        }
    }

    /// Applies the peer's transport parameters, remembered ones first and then the real ones; limits only grow.
    pub(crate) fn set_peer_limits(&mut self, limits: PeerLimits) {
        self.peer = limits;
        self.on_max_data(limits.data);
        self.on_max_streams(Direction::Bidirectional, limits.bidirectional);
        self.on_max_streams(Direction::Unidirectional, limits.unidirectional);
        for slot in self.table.slots() {
            let Some(stream) = self.table.get_mut(slot) else {
                continue;
            };
            let limit = limits.for_stream(stream.id, self.side);
            if let Some(send) = stream.send.as_mut()
                && send.credit.on_limit(limit)
            {
                self.on_credit(slot);
            }
        }
    }

    /// Whether [`Self::write`] would write anything.
    #[inline]
    pub(crate) fn has_pending_frames(&self) -> bool {
        self.sendable_lanes() != 0 || self.has_pending_control()
    }

    /// Bytes written by the application that are not yet acknowledged.
    #[cfg(test)]
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    /// Bytes of what is [`held`](Self::held) that never were sent.
    pub(crate) const fn unsent(&self) -> u64 {
        self.held.saturating_sub(self.in_flight)
    }

    /// Bytes that were never sent and that the peer's limits let go, or nearly so many: what some streams may not send
    /// isn't told apart once others may.
    pub(crate) const fn new_data(&self) -> u64 {
        if self.sendable_lanes() & NEW_LANES == 0 {
            return 0;
        }
        let (unsent, credit) = (self.unsent(), self.new_data_credit());
        if unsent < credit { unsent } else { credit }
    }

    /// Bytes that streams hold in both directions, and spare ones; at least a share of what the peer may still send counts as
    /// received.
    pub(crate) fn memory(&self) -> u64 {
        let received = self.received.saturating_sub(self.window.used());
        let share = self.window.window() / limits::WINDOW_SHARE;
        let received = if received > share { received } else { share };
        received
            .saturating_add(self.held)
            .saturating_add(self.pool.spare())
    }

    /// How many streams there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.table.len()
    }

    /// Gives back what isn't needed in a silence.
    pub(crate) fn rest(&mut self) {
        self.pool.trim();
        let lanes = [
            &mut self.owing,
            &mut self.told,
            &mut self.tuning,
            &mut self.waiting,
            &mut self.stopped,
        ];
        // A stream that waits for something is known by its slot.
        let is_free = lanes.iter().all(|lanes| lanes.is_empty());
        if is_free && self.scheduled.is_empty() {
            self.table.rest();
            self.scheduled.rest();
            lanes.into_iter().for_each(Lanes::rest);
        }
    }

    /// Decides, once for all datagrams of a wake-up, on new credit for what has been read.
    ///
    /// Windows stay as they are when they may not `grow`, because memory is short.
    pub(crate) fn settle(&mut self, now: Instant, rtt: Duration, grow: bool) {
        self.pool.settle(now);
        self.end_told();
        while let Some(slot) = self.tuning.pop_front(0) {
            let Some(stream) = self.table.get_mut(slot) else {
                continue;
            };
            let Some(receive) = stream.receive.as_mut().filter(|r| r.wants_credit()) else {
                continue;
            };
            let most = if grow {
                self.settings.stream_window.most
            } else {
                0
            };
            if receive.window.settle(now, rtt, most) {
                let window = receive.window.window();
                let window = window.saturating_add(window / 2);
                self.window
                    .raise(window.min(self.settings.connection_window.most));
            }
            if receive.window.is_due() {
                self.owe(slot, owed::MAX_STREAM_DATA);
            }
        }
        if self.window.is_due() {
            let most = if grow {
                self.settings.connection_window.most
            } else {
                0
            };
            self.window.settle(now, rtt, most);
            self.max_data_owed = true;
        }
    }

    /// Makes the stream that a first frame of either side names.
    pub(super) fn create(&mut self, id: StreamId) -> Option<Slot> {
        let ours = id.initiator() == self.side;
        let both = id.direction().is_bidirectional();
        let send = (both || ours).then(|| SendStream::new(self.peer.for_stream(id, self.side)));
        let window = self.settings.stream_window.initial;
        let receive = (both || !ours).then(|| ReceiveStream::new(window));
        let slot = self.table.insert(Stream {
            id,
            send,
            receive,
            owed: super::flags::Flags::default(),
            news: super::flags::Flags::default(),
        })?;
        if !ours {
            self.tell(slot, news::OPENED);
        }
        Some(slot)
    }

    /// Puts the stream where the scheduler finds it, or takes it away, as what it has to send now asks for.
    pub(super) fn schedule(&mut self, slot: Slot) {
        if self.has_barred && self.is_barred(slot) {
            return;
        }
        let Some(stream) = self.table.get_mut(slot) else {
            return;
        };
        let Some(send) = stream.send.as_mut() else {
            return;
        };
        let (id, priority, demand) = (stream.id, send.priority, send.demand());
        if send.is_blocked() && send.credit.on_blocked() {
            self.owe(slot, owed::STREAM_DATA_BLOCKED);
        }
        if demand.is_none() && self.table.get(slot).is_some_and(Stream::owes_reset_at) {
            self.owe(slot, owed::RESET_STREAM_AT);
        }
        let lane = demand.map(|demand| priority.lane(demand));
        if lane != self.scheduled.lane_of(slot) {
            self.scheduled.remove(slot);
            if let Some(lane) = lane {
                // In one lane, lost data goes first, and streams that don't share go in their order.
                let ahead = demand == Some(Demand::Again)
                    || (!priority.is_incremental()
                        && self
                            .scheduled
                            .first(lane)
                            .and_then(|first| self.table.get(first))
                            .is_some_and(|first| first.id > id));
                if ahead {
                    self.scheduled.push_front(slot, lane);
                } else {
                    self.scheduled.push_back(slot, lane);
                }
            }
        }
        if demand == Some(Demand::New) && self.credit.available() == 0 {
            self.credit.on_blocked();
        }
    }

    /// The stream may send more than before.
    pub(super) fn on_credit(&mut self, slot: Slot) {
        self.schedule(slot);
        self.tell_room(slot);
    }

    /// The lanes of which something can be sent now.
    #[inline]
    pub(super) const fn sendable_lanes(&self) -> u32 {
        let occupied = self.scheduled.occupied();
        if self.new_data_credit() > 0 {
            occupied
        } else {
            occupied & !NEW_LANES
        }
    }

    /// Bytes of new data that may be sent on all streams; none when it is only a sliver and more is to be expected.
    #[inline]
    pub(super) const fn new_data_credit(&self) -> u64 {
        let available = self.credit.available();
        if available < limits::LEAST_FRAGMENT && available < self.unsent() && self.in_flight > 0 {
            return 0;
        }
        available
    }

    /// The stream owes a frame.
    #[inline]
    pub(super) fn owe(&mut self, slot: Slot, frame: u8) {
        if let Some(stream) = self.table.get_mut(slot) {
            stream.owed.insert(frame);
            if !(self.has_barred && self.is_barred(slot)) {
                self.owing.push_back(slot, 0);
            }
        }
    }

    /// The application is to hear of something.
    #[inline]
    pub(super) fn tell(&mut self, slot: Slot, news: News) {
        if let Some(stream) = self.table.get_mut(slot)
            && stream.news.insert(news)
        {
            self.told.push_back(slot, 0);
        }
    }

    /// Wakes the application if it waits for room and there is enough, in the stream and in all of them together.
    #[inline]
    pub(super) fn tell_room(&mut self, slot: Slot) {
        let spare = self.settings.held.saturating_sub(self.held);
        if let Some(stream) = self.table.get_mut(slot)
            && let Some(send) = stream.send.as_mut()
            && send.waiting
            && let Some(enough) = send.enough_room(self.settings.backlog)
        {
            if spare < enough.min(self.settings.held / 2).max(1) {
                self.waiting.push_back(slot, 0);
                return;
            }
            send.waiting = false;
            self.tell(slot, news::WRITABLE);
        }
    }

    /// Bytes were acknowledged or given up.
    #[inline]
    pub(super) fn on_released(&mut self, held: u64, in_flight: u64) {
        self.held = self.held.saturating_sub(held);
        self.in_flight = self.in_flight.saturating_sub(in_flight);
        if !self.waiting.is_empty() && self.held <= self.settings.held / 2 {
            while let Some(slot) = self.waiting.pop_front(0) {
                self.tell_room(slot);
            }
        }
    }

    /// The application has read, or will never read, `bytes`.
    #[inline]
    pub(super) const fn on_used(&mut self, bytes: u64) {
        self.window.on_used(bytes);
    }

    /// Forgets the stream if both its parts are over and the application knows.
    pub(super) fn end_if_over(&mut self, slot: Slot) {
        if !self.table.get(slot).is_some_and(Stream::is_over) {
            return;
        }
        self.scheduled.remove(slot);
        self.owing.remove(slot);
        self.told.remove(slot);
        self.tuning.remove(slot);
        self.waiting.remove(slot);
        self.stopped.remove(slot);
        let Some(mut stream) = self.table.remove(slot) else {
            return;
        };
        if let Some(send) = &mut stream.send {
            send.buffer.discard(&mut self.pool);
        }
        if let Some(receive) = &mut stream.receive {
            receive.buffer.discard(&mut self.pool);
        }
        if stream.id.initiator() != self.side
            && let Some(remote) = self.remote.get_mut(place(stream.id.direction()))
        {
            remote.on_ended();
        }
    }
}

impl PeerLimits {
    /// What the peer lets us send at first on a stream.
    pub(super) const fn for_stream(&self, id: StreamId, side: Side) -> u64 {
        match (id.direction(), id.initiator(), side) {
            (Direction::Unidirectional, _, _) => self.stream_unidirectional,
            (Direction::Bidirectional, Side::Client, Side::Client)
            | (Direction::Bidirectional, Side::Server, Side::Server) => self.stream_remote,
            (Direction::Bidirectional, _, _) => self.stream_local,
        }
    }
}
