//! Batches out: each connection that was touched runs its application, then sends a batch in its turn.

use std::time::Instant;

use quic_common::{BatchBuffer, BatchHead};

use super::{Application, Endpoint, Handle, departed::Traces, stateless::ReplyPath};
#[cfg(doc)]
use crate::connection::Connection;
use crate::connection::{Output, Step};

/// Outdated deadlines that aren't worth a sweep.
const SPARE_DEADLINES: usize = 64;

impl<A: Application> Endpoint<A> {
    /// The next batch to send, or how long to wait for the next datagram.
    ///
    /// Connections with much to send take turns, a batch each. After [`Output::Datagrams`] call again, until the
    /// answer is another.
    pub fn process_output<'b>(&mut self, now: Instant, buffer: &'b mut BatchBuffer) -> Output<'b> {
        match self.step(now, buffer.bytes_mut()) {
            Step::Send(head) => Output::Datagrams(buffer.batch(head)),
            Step::Wait(Some(at)) => Output::Callback(at.saturating_duration_since(now)),
            Step::Wait(None) => Output::None,
        }
    }

    /// Tells that the system would not send the last batch, because its datagrams are larger than the MTU: see
    /// [`Connection::on_batch_refused`]. What is told of an earlier batch is left to loss recovery.
    pub fn on_batch_refused(&mut self, head: &BatchHead) {
        if let Some(handle) = self.last
            && let Some(entry) = self.router.get_mut(handle)
        {
            entry.connection.on_batch_refused(head);
            self.enqueue(handle);
        }
    }

    fn step(&mut self, now: Instant, buffer: &mut [u8]) -> Step {
        self.last = None;
        self.replies.refill(now);
        if let Some(head) = self.replies.take(buffer) {
            return Step::Send(head);
        }
        self.wake_due(now);
        self.forget_departed(now);
        while let Some(handle) = self.queue.pop_front() {
            if let Some(head) = self.serve(handle, now, buffer) {
                return Step::Send(head);
            }
        }
        let knocking = self.knocking.expire(now, &self.config.admission);
        self.tell_memory();
        let router = &self.router;
        let next = self.deadlines.next(|at, handle| {
            router
                .get(handle)
                .is_some_and(|entry| entry.scheduled == Some(at))
        });
        let all = [next, knocking, self.departed.deadline()];
        Step::Wait(all.into_iter().flatten().min())
    }

    /// Queues the connections whose time has come.
    fn wake_due(&mut self, now: Instant) {
        while let Some((at, handle)) = self.deadlines.take_due(now) {
            let Some(entry) = self.router.get_mut(handle) else {
                continue;
            };
            if entry.scheduled == Some(at) {
                entry.scheduled = None;
                self.enqueue(handle);
            }
        }
    }

    /// Runs the application of one connection and asks it for a batch.
    fn serve(&mut self, handle: Handle, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        let may_grow = self.has_spare_memory();
        let entry = self.router.get_mut(handle)?;
        entry.is_queued = false;
        entry.connection.let_windows_grow(may_grow);
        entry.connection.settle(now);
        if entry.connection.has_events() {
            entry.application.process(&mut entry.connection, now);
        }
        self.follow_cids(handle);
        let entry = self.router.get_mut(handle)?;
        let was_told = !entry.connection.has_events();
        let step = entry.connection.step(now, buffer);
        // What the step itself brought about, such as a timeout: the application may have an answer to it.
        let has_more = was_told && entry.connection.has_events();
        if !entry.connection.is_handshaking() && std::mem::take(&mut entry.is_half_open) {
            self.config.admission.complete(entry.address);
        }
        let is_at_rest = entry.connection.is_at_rest();
        if std::mem::replace(&mut entry.is_at_rest, is_at_rest) != is_at_rest && is_at_rest {
            entry.application.rest();
        }
        let wants_token = entry.connection.wants_token();
        let before = std::mem::replace(&mut entry.memory, entry.connection.memory());
        self.memory = self
            .memory
            .saturating_sub(before)
            .saturating_add(entry.memory);
        let token = entry.connection.reset_token();
        if token != entry.reset_token {
            let before = std::mem::replace(&mut entry.reset_token, token);
            self.router.change_reset_token(before, token, handle);
        }
        if wants_token {
            self.renew_token(handle);
        }
        self.follow_cids(handle);
        if has_more {
            self.enqueue(handle);
        }
        match step {
            Step::Send(head) => {
                self.last = Some(handle);
                self.enqueue(handle);
                Some(head)
            }
            Step::Wait(Some(at)) => {
                if let Some(entry) = self.router.get_mut(handle) {
                    let is_gone = entry.connection.is_draining() && !entry.connection.has_events();
                    if is_gone && !entry.application.outlives_its_peer() {
                        self.depart(handle, at);
                        return None;
                    }
                    self.deadlines.schedule(handle, at, &mut entry.scheduled);
                }
                self.sweep_deadlines();
                None
            }
            Step::Wait(None) if has_more => None,
            Step::Wait(None) => {
                self.remove_if_closed(handle);
                None
            }
        }
    }

    /// A client that has moved gets a token for its new address (RFC 9000, 9.3).
    #[cold]
    fn renew_token(&mut self, handle: Handle) {
        let Some(entry) = self.router.get(handle) else {
            return;
        };
        let path = ReplyPath {
            remote: entry.connection.remote(),
            local: None,
        };
        let token = self.new_token(path, entry.connection.version());
        if let Some(entry) = self.router.get_mut(handle) {
            entry.connection.give_token(token);
        }
        self.enqueue(handle);
    }

    /// Sweeps the deadlines once most of them are outdated, so that each costs a constant share of a sweep.
    fn sweep_deadlines(&mut self) {
        if self.deadlines.len() > 2 * self.router.len() + SPARE_DEADLINES {
            let router = &self.router;
            self.deadlines.retain(|at, handle| {
                router
                    .get(handle)
                    .is_some_and(|entry| entry.scheduled == Some(at))
            });
        }
    }

    fn remove_if_closed(&mut self, handle: Handle) {
        if self
            .router
            .get(handle)
            .is_none_or(|entry| !entry.connection.is_closed())
        {
            return;
        }
        let Some(entry) = self.router.remove(handle) else {
            return;
        };
        self.memory = self.memory.saturating_sub(entry.memory);
        self.forget(handle, &entry.into_traces());
    }

    /// The peer has closed: the connection goes, and what it was known by stays until no packet can be late any more.
    fn depart(&mut self, handle: Handle, until: Instant) {
        let Some(entry) = self.router.remove(handle) else {
            return;
        };
        let (memory, traces) = (entry.memory, entry.into_traces());
        self.memory = self
            .memory
            .saturating_sub(memory)
            .saturating_add(traces.memory());
        self.departed.insert(until, handle, traces);
    }

    /// No packet of these connections can be late any more.
    fn forget_departed(&mut self, now: Instant) {
        while let Some((handle, traces)) = self.departed.take_due(now) {
            self.memory = self.memory.saturating_sub(traces.memory());
            self.forget(handle, &traces);
        }
    }

    /// What has led to a connection leads nowhere.
    fn forget(&mut self, handle: Handle, traces: &Traces) {
        self.config
            .admission
            .release(traces.address, traces.is_half_open);
        self.router
            .change_reset_token(traces.reset_token, None, handle);
        for cid in &traces.cids {
            self.router.remove_cid(cid, handle);
        }
    }
}
