//! A download as the event loop drives it.

use std::{
    io,
    time::{Duration, Instant},
};

use quic_common::{BatchBuffer, BatchHead};
use quic_http3::Code;
use quic_udp::{Datagrams, Fault, IcmpError, IcmpKind};

use super::{Download, State};
use crate::{
    event_loop::{Output, Protocol, SocketChange, SocketId},
    exchange::Exchange,
    failure::Failure,
};

impl<E: Exchange> Protocol for Download<E> {
    fn input(&mut self, _: SocketId, datagrams: Datagrams<'_>, now: Instant) {
        self.connection.process_multiple_input(datagrams, now);
    }

    fn process(&mut self, now: Instant) {
        self.connection.settle(now);
        if self.termination.is_requested() {
            self.fail(Failure::new("interrupted"));
        }
        if let Err(failure) = self.resume(now) {
            self.fail(failure);
        }
        while let Some(event) = self.connection.next_event() {
            self.on_connection_event(event, now);
        }
        while let Some(event) = self.session.next_event(&mut self.connection, now) {
            if let Err(failure) = self.on_http_event(event, now) {
                self.fail(failure);
            }
        }
        if matches!(self.state, State::Connecting) && self.connection.is_sending_early_data() {
            self.start(now);
        }
        if !matches!(self.state, State::Running) {
            return;
        }
        if self.wants_key_update {
            self.wants_key_update = self.connection.update_keys().is_err();
        }
        if let Err(failure) = self.roaming.process(&mut self.connection, now) {
            self.fail(failure);
        }
        if let Some(Err(failure)) =
            (self.volley.as_mut()).map(|volley| volley.process(&mut self.connection, now))
        {
            self.fail(failure);
        }
        self.request();
        let knows_all = self
            .volley
            .as_ref()
            .is_none_or(|volley| volley.is_over(now));
        let is_answered =
            self.waiting.is_empty() && self.running.is_empty() && self.too_early.is_empty();
        if is_answered && knows_all {
            self.state = State::Done;
            self.connection.close(Code::NO_ERROR.value(), b"");
        }
    }

    fn output(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Output {
        // The last batch has made room: filled before the next one, so that it is whole.
        if self.connection.has_events() && !self.is_done() {
            self.process(now);
        }
        let output = self.connection.process_output(now, buffer).into();
        // Its deadlines pass in there: without another turn nobody would hear that the time is up.
        if !matches!(output, Output::Batch(_)) && self.connection.has_events() && !self.is_done() {
            return Output::Wait(Duration::ZERO);
        }
        let volley = self.volley.as_ref().and_then(|volley| volley.wait(now));
        let own = self.roaming.wait(now).into_iter().chain(volley).min();
        match (output, own) {
            (Output::Wait(one), Some(other)) => Output::Wait(one.min(other)),
            (Output::Idle, Some(wait)) => Output::Wait(wait),
            (other, _) => other,
        }
    }

    fn take_socket(&mut self) -> Option<SocketChange> {
        self.roaming.take_change()
    }

    fn is_done(&self) -> bool {
        matches!(self.state, State::Done | State::Failed(_))
    }

    /// A way that doesn't exist needs no waiting for, while another address may be tried.
    fn on_fault(&mut self, _: SocketId, head: BatchHead, fault: Fault) {
        if fault == Fault::TooLarge {
            self.connection.on_batch_refused(&head);
        }
        let is_final = match fault {
            Fault::Unreachable | Fault::NotPermitted => true,
            Fault::TooLarge | Fault::NoBuffers | Fault::Other(_) | _ => false,
        };
        if is_final && matches!(self.state, State::Connecting) {
            self.fail(Failure::new(format!("{}: {fault}", self.remote)));
        }
    }

    /// Before the handshake is complete, an ICMP error spares the user the wait. Later anyone may have sent it.
    fn on_icmp_error(&mut self, _: SocketId, error: IcmpError) {
        if !matches!(self.state, State::Connecting) || error.kind != IcmpKind::Unreachable {
            return;
        }
        let cause = io::Error::from_raw_os_error(error.code);
        let line = if cause.kind() == io::ErrorKind::ConnectionRefused {
            format!("{}: nobody listens there (ICMP)", self.remote)
        } else {
            format!("{}: unreachable: {cause} (ICMP)", self.remote)
        };
        self.fail(Failure::new(line));
    }
}
