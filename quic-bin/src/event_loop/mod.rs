//! Joins sockets to a protocol that does no I/O: who may read, who may send, and when to wake up.
//!
//! A turn is: read what has arrived, let the protocol work, send what it has, and wait if there is nothing left to do.
//! Reading and sending both end after a bounded number of calls, so that a flood on one socket starves neither the
//! timers, nor sending, nor the other sockets. The poller reports edges; a socket whose reading was cut short stays on
//! the ready list (its flag in the port), and the next wait is none. Without work and deadlines the loop sleeps.

mod port;
mod timer;

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use mio::{Events, Poll, Token, Waker};
use quic_common::{BatchBuffer, BatchHead};
use quic_udp::{Datagrams, Fault, IcmpError, ReceiveBuffer, Sent, Socket};

use self::{port::Port, timer::Timer};
use crate::limits::{BATCHES_PER_TURN, READS_PER_TURN};

const TIMER: Token = Token(usize::MAX - 1);
const WAKER: Token = Token(usize::MAX - 2);

/// One of the loop's sockets, in the order in which they were added.
pub type SocketId = usize;

/// A socket that a protocol has made for itself.
#[derive(Debug)]
pub enum SocketChange {
    /// One more.
    Add(Socket),
    /// In the place of another, which is closed.
    Replace(SocketId, Socket),
}

/// What a protocol wants after it has been asked for output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Output {
    /// To send the batch that it wrote at the start of the buffer, and to be asked again.
    Batch(BatchHead),
    /// To be asked again after this time, if nothing happens before.
    Wait(Duration),
    /// Nothing, until something happens.
    Idle,
}

/// A protocol without I/O, and the application on top of it.
pub trait Protocol {
    /// Takes datagrams in. Called several times in one turn.
    fn input(&mut self, socket: SocketId, datagrams: Datagrams<'_>, now: Instant);

    /// Works on what has come in, and on deadlines that have passed. Called once in each turn.
    fn process(&mut self, now: Instant);

    /// Writes the next batch to the start of `buffer`, or says until when there is none. It goes out by the socket with its
    /// local address, or by the first. Not called while a socket is full.
    fn output(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Output;

    /// A socket that the loop is to take from now on. Asked for after each [`Protocol::process`], until there is none.
    fn take_socket(&mut self) -> Option<SocketChange> {
        None
    }

    /// Whether the loop is to end, once everything in this turn has been sent.
    fn is_done(&self) -> bool;

    /// Datagrams of this batch weren't sent.
    fn on_fault(&mut self, socket: SocketId, head: BatchHead, fault: Fault) {
        let _ = (socket, head, fault);
    }

    /// An ICMP error came in. Only for sockets that had them enabled.
    fn on_icmp_error(&mut self, socket: SocketId, error: IcmpError) {
        let _ = (socket, error);
    }
}

/// The loop, and its sockets.
#[derive(Debug)]
pub struct EventLoop {
    poll: Poll,
    events: Events,
    timer: Timer,
    waker: Arc<Waker>,
    ports: Vec<Port>,
    received: ReceiveBuffer,
    /// A buffer to build in. A full socket keeps the one with its parked batch.
    spare: Vec<BatchBuffer>,
}

impl EventLoop {
    /// A loop without sockets.
    ///
    /// # Errors
    ///
    /// When the system has no poller for us.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let timer = Timer::new(poll.registry(), TIMER)?;
        Ok(Self {
            poll,
            events: Events::with_capacity(64),
            timer,
            waker,
            ports: Vec::new(),
            received: ReceiveBuffer::new(),
            spare: vec![BatchBuffer::new()],
        })
    }

    /// Adds a socket.
    ///
    /// # Errors
    ///
    /// When it can't be registered with the poller.
    pub fn add(&mut self, socket: Socket) -> io::Result<SocketId> {
        let id = self.ports.len();
        self.ports
            .push(Port::new(socket, self.poll.registry(), Token(id))?);
        Ok(id)
    }

    /// A socket, for its counters and address.
    #[must_use]
    pub fn socket(&self, id: SocketId) -> Option<&Socket> {
        self.ports.get(id).map(|port| &port.socket)
    }

    /// Lets another thread start a turn, say to have the protocol see that it is to end.
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Runs until the protocol is done.
    ///
    /// # Errors
    ///
    /// When a socket or the poller is of no further use; what peers or the network do is never an error.
    pub fn run(&mut self, protocol: &mut impl Protocol) -> io::Result<()> {
        loop {
            let now = Instant::now();
            protocol.process(now);
            while let Some(change) = protocol.take_socket() {
                self.change(change)?;
            }
            let wait = self.send(protocol, now)?;
            if protocol.is_done() {
                return Ok(());
            }
            self.wait(wait)?;
            self.receive(protocol)?;
        }
    }

    fn change(&mut self, change: SocketChange) -> io::Result<()> {
        match change {
            SocketChange::Add(socket) => self.add(socket).map(|_id| ()),
            SocketChange::Replace(id, socket) => {
                let registry = self.poll.registry();
                if let Some(port) = self.ports.get_mut(id) {
                    *port = Port::new(socket, registry, Token(id))?;
                }
                Ok(())
            }
        }
    }

    /// Sends what there is, within the budget; returns how long nothing more has to be done, `None` for ever.
    fn send(&mut self, protocol: &mut impl Protocol, now: Instant) -> io::Result<Option<Duration>> {
        for (id, port) in self.ports.iter_mut().enumerate() {
            send_parked(id, port, &mut self.spare, protocol);
        }
        let mut wait = self.send_new(protocol, now);
        for port in &mut self.ports {
            port.watch(self.poll.registry())?;
            if port.is_ready {
                wait = Some(Duration::ZERO);
            }
        }
        Ok(wait)
    }

    /// Sends what the protocol has to send; returns how long it has nothing more to do, `None` for ever.
    fn send_new(&mut self, protocol: &mut impl Protocol, now: Instant) -> Option<Duration> {
        if self.ports.iter().any(Port::is_blocked) {
            return None;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        let mut wait = Some(Duration::ZERO);
        for _ in 0..BATCHES_PER_TURN {
            let head = match protocol.output(now, &mut buffer) {
                Output::Batch(head) => head,
                Output::Wait(time) => {
                    wait = Some(time);
                    break;
                }
                Output::Idle => {
                    wait = None;
                    break;
                }
            };
            let id = self.socket_for(head.local);
            let Some(port) = self.ports.get_mut(id) else {
                break;
            };
            match port.socket.send_or_park(&mut buffer, head) {
                Sent::All => {}
                Sent::Blocked { .. } => {
                    port.park(buffer);
                    return None;
                }
                Sent::Lost(fault) => protocol.on_fault(id, head, fault),
            }
        }
        self.spare.push(buffer);
        wait
    }

    /// The socket of a batch: the one that it says it is from, else the first.
    fn socket_for(&self, local: Option<SocketAddr>) -> SocketId {
        let Some(local) = local.filter(|_| self.ports.len() > 1) else {
            return 0;
        };
        let is_meant = |port: &Port| {
            let own = port.socket.local_address();
            let is_open = own.ip().is_unspecified() || local.ip().is_unspecified();
            own == local || (is_open && own.port() == local.port())
        };
        self.ports.iter().position(is_meant).unwrap_or(0)
    }

    fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        let timeout = self.timer.arm(wait);
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            if event.token() == TIMER {
                self.timer.on_expired();
            } else if let Some(port) = self.ports.get_mut(event.token().0) {
                port.on_event(event);
            }
        }
        Ok(())
    }

    fn receive(&mut self, protocol: &mut impl Protocol) -> io::Result<()> {
        for (id, port) in self.ports.iter_mut().enumerate() {
            for _ in 0..READS_PER_TURN {
                if !port.is_ready {
                    break;
                }
                match port.socket.receive(&mut self.received) {
                    Ok(datagrams) => protocol.input(id, datagrams, Instant::now()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        port.on_empty(self.poll.registry())?;
                    }
                    Err(error) => return Err(error),
                }
            }
            while let Some(error) = port.icmp_error() {
                protocol.on_icmp_error(id, error);
            }
        }
        Ok(())
    }
}

/// Sends what a socket had no room for, once it may have.
fn send_parked(
    id: SocketId,
    port: &mut Port,
    spare: &mut Vec<BatchBuffer>,
    protocol: &mut impl Protocol,
) {
    let Some(mut buffer) = port.take_parked() else {
        return;
    };
    let head = buffer.parked().map(|batch| batch.head());
    match (port.socket.send_parked(&mut buffer), head) {
        (Sent::Blocked { .. }, _) => return port.park(buffer),
        (Sent::Lost(fault), Some(head)) => protocol.on_fault(id, head, fault),
        (Sent::All | Sent::Lost(_), _) => {}
    }
    spare.push(buffer);
}

#[cfg(test)]
mod tests;
