use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use quic_common::{BatchBuffer, BatchHead, Ecn};
use quic_udp::{Datagrams, Fault, IcmpError, Socket};

use super::{EventLoop, Output, Protocol, SocketChange, SocketId};

/// A protocol that a test fills in with closures' worth of state.
#[derive(Default)]
struct Probe {
    turns: u64,
    received: u64,
    per_turn: u64,
    most_per_turn: u64,
    to_send: Vec<BatchHead>,
    changes: Vec<SocketChange>,
    waits: u32,
    wait: Option<Duration>,
    faults: Vec<Fault>,
    icmp_errors: Vec<IcmpError>,
    stop: Arc<AtomicBool>,
    stop_after: u64,
    stop_at: Option<Instant>,
}

impl Protocol for Probe {
    fn input(&mut self, _: SocketId, datagrams: Datagrams<'_>, _: Instant) {
        let count = u64::try_from(datagrams.count()).unwrap();
        self.received += count;
        self.per_turn += count;
    }

    fn process(&mut self, now: Instant) {
        self.turns += 1;
        self.most_per_turn = self.most_per_turn.max(self.per_turn);
        self.per_turn = 0;
        if self.stop_at.is_some_and(|at| now >= at) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn output(&mut self, _: Instant, buffer: &mut BatchBuffer) -> Output {
        if let Some(head) = self.to_send.pop() {
            buffer.bytes_mut()[..head.length].fill(7);
            return Output::Batch(head);
        }
        match self.wait {
            Some(wait) if self.waits > 0 => {
                self.waits -= 1;
                Output::Wait(wait)
            }
            _ if self.wait.is_some() => {
                self.stop.store(true, Ordering::Relaxed);
                Output::Idle
            }
            _ => Output::Idle,
        }
    }

    fn take_socket(&mut self) -> Option<SocketChange> {
        self.changes.pop()
    }

    fn is_done(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.stop_after > 0 && self.received >= self.stop_after
    }

    fn on_fault(&mut self, _: SocketId, _: BatchHead, fault: Fault) {
        self.faults.push(fault);
    }

    fn on_icmp_error(&mut self, _: SocketId, error: IcmpError) {
        self.icmp_errors.push(error);
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_address();
    (socket, address)
}

fn looping() -> (EventLoop, SocketAddr) {
    let (socket, address) = bound();
    let mut looping = EventLoop::new().unwrap();
    looping.add(socket).unwrap();
    (looping, address)
}

fn head(remote: SocketAddr) -> BatchHead {
    BatchHead {
        remote,
        local: None,
        ecn: Ecn::NotEct,
        length: 2500,
        segment: 1000,
    }
}

#[test]
fn what_is_sent_on_one_socket_arrives_on_another() {
    let (mut looping, _) = looping();
    let (second, address) = bound();
    looping.add(second).unwrap();
    let mut probe = Probe {
        to_send: vec![head(address); 40],
        stop_after: 120,
        ..Probe::default()
    };
    looping.run(&mut probe).unwrap();
    assert_eq!(probe.received, 120);
    let sent = looping.socket(0).unwrap().counters().sent_datagrams;
    assert_eq!(
        sent + looping.socket(1).unwrap().counters().sent_datagrams,
        120
    );
}

/// One who has several sockets says by the local address which of them a batch is for.
#[test]
fn batches_leave_by_the_socket_that_they_are_from() {
    let (mut looping, first) = looping();
    let (second, address) = bound();
    looping.add(second).unwrap();
    let any = SocketAddr::from(([0, 0, 0, 0], address.port()));
    let from = |local| BatchHead {
        local,
        ..head(first)
    };
    let mut probe = Probe {
        to_send: vec![from(Some(address)), from(Some(any)), from(None)],
        stop_after: 9,
        ..Probe::default()
    };
    looping.run(&mut probe).unwrap();
    let sent = |id| looping.socket(id).unwrap().counters().sent_datagrams;
    assert_eq!((sent(0), sent(1)), (3, 6));
}

/// What arrives at a socket that was taken later is read like the rest.
#[test]
fn sockets_are_added_and_replaced_on_the_way() {
    let (mut looping, old) = looping();
    let (added, added_address) = bound();
    let (replacing, new) = bound();
    let mut probe = Probe {
        changes: vec![
            SocketChange::Replace(0, replacing),
            SocketChange::Add(added),
        ],
        to_send: vec![head(new), head(added_address)],
        stop_after: 6,
        ..Probe::default()
    };
    looping.run(&mut probe).unwrap();
    assert_eq!(looping.socket(0).unwrap().local_address(), new);
    assert_eq!(looping.socket(1).unwrap().local_address(), added_address);
    assert!(UdpSocket::bind(old).is_ok(), "the old one is closed");
}

#[test]
fn without_work_the_loop_sleeps() {
    let (mut looping, _) = looping();
    let stop = Arc::new(AtomicBool::new(false));
    let mut probe = Probe {
        stop: Arc::clone(&stop),
        ..Probe::default()
    };
    let waker = looping.waker();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
        waker.wake().unwrap();
    });
    looping.run(&mut probe).unwrap();
    stopper.join().unwrap();
    assert!(probe.turns <= 4, "{} turns", probe.turns);
}

#[test]
fn a_flood_leaves_room_for_timers() {
    let (mut looping, address) = looping();
    let stop = Arc::new(AtomicBool::new(false));
    let mut probe = Probe {
        stop: Arc::clone(&stop),
        stop_at: Some(Instant::now() + Duration::from_millis(100)),
        ..Probe::default()
    };
    let flood = thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        while !stop.load(Ordering::Relaxed) {
            // An error means that the receiver is gone.
            if socket.send_to(&[], address).is_err() {
                break;
            }
        }
    });
    looping.run(&mut probe).unwrap();
    flood.join().unwrap();
    assert!(probe.received > 100);
    let bound = crate::limits::READS_PER_TURN * quic_udp::MAX_SLOTS;
    assert!(probe.most_per_turn <= u64::try_from(bound).unwrap());
}

/// Answers what comes on one of its sockets, and counts what comes on the other.
#[derive(Default)]
struct Echo {
    /// The socket that it answers on.
    local: Option<SocketAddr>,
    turn: u64,
    /// The turn in which something came that is still to be answered, and where from.
    asked: Option<(u64, SocketAddr)>,
    answers: u64,
    slowest: u64,
    flood: u64,
    stop: Arc<AtomicBool>,
}

impl Protocol for Echo {
    fn input(&mut self, socket: SocketId, datagrams: Datagrams<'_>, _: Instant) {
        for datagram in datagrams {
            if socket == 0 {
                self.flood += 1;
            } else {
                self.asked = Some((self.turn, datagram.remote));
            }
        }
    }

    fn process(&mut self, _: Instant) {
        self.turn += 1;
    }

    fn output(&mut self, _: Instant, buffer: &mut BatchBuffer) -> Output {
        let Some((turn, remote)) = self.asked.take() else {
            return Output::Idle;
        };
        self.answers += 1;
        self.slowest = self.slowest.max(self.turn - turn);
        if self.answers == 50 {
            self.stop.store(true, Ordering::Relaxed);
        }
        buffer.bytes_mut()[..5].fill(7);
        Output::Batch(BatchHead {
            remote,
            local: self.local,
            ecn: Ecn::NotEct,
            length: 5,
            segment: 5,
        })
    }

    fn is_done(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A socket that is flooded takes neither the turn of another socket nor the time to send: what is asked there is
/// answered in the turn after it was read.
#[test]
fn a_flood_leaves_room_for_other_sockets() {
    let (mut looping, flooded) = looping();
    let (quiet, address) = bound();
    looping.add(quiet).unwrap();
    let mut echo = Echo {
        local: Some(address),
        ..Echo::default()
    };
    let stop = Arc::clone(&echo.stop);
    let flood = thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let datagram = [0x41; 1200];
        while !stop.load(Ordering::Relaxed) && socket.send_to(&datagram, flooded).is_ok() {}
    });
    let client = thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        for _ in 0..50 {
            socket.send_to(b"hello", address).unwrap();
            assert_eq!(socket.recv(&mut [0; 10]).unwrap(), 5);
        }
    });
    looping.run(&mut echo).unwrap();
    client.join().unwrap();
    flood.join().unwrap();
    assert_eq!((echo.answers, echo.slowest), (50, 1));
    assert!(echo.flood > 50, "{} datagrams of the flood", echo.flood);
}

/// A socket that is flooded still sends: each turn has its reads and then its batches, whatever more has arrived.
#[test]
fn a_flood_leaves_room_to_send_on_the_same_socket() {
    let (mut looping, address) = looping();
    let sink = bound();
    let stop = Arc::new(AtomicBool::new(false));
    let flood = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let datagram = [0x41; 1200];
            while !stop.load(Ordering::Relaxed) && socket.send_to(&datagram, address).is_ok() {}
        }
    });
    let turns = 50;
    let batches = usize::try_from(turns).unwrap() * crate::limits::BATCHES_PER_TURN;
    let mut probe = Probe {
        to_send: vec![head(sink.1); batches],
        stop: Arc::clone(&stop),
        // The turn after the last batch finds nothing more to send.
        wait: Some(Duration::ZERO),
        ..Probe::default()
    };
    looping.run(&mut probe).unwrap();
    flood.join().unwrap();
    assert_eq!(probe.turns, turns + 1);
    let sent = looping.socket(0).unwrap().counters().sent_datagrams;
    assert_eq!(sent, 3 * u64::try_from(batches).unwrap());
    let bound = crate::limits::READS_PER_TURN * quic_udp::MAX_SLOTS * 64;
    assert!(probe.most_per_turn <= u64::try_from(bound).unwrap());
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn short_waits_are_short() {
    let (mut looping, _) = looping();
    let mut probe = Probe {
        wait: Some(Duration::from_micros(100)),
        waits: 100,
        ..Probe::default()
    };
    let start = Instant::now();
    looping.run(&mut probe).unwrap();
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_millis(9), "{elapsed:?}");
    // The poller's own timeout would take a millisecond or more for each.
    assert!(elapsed < Duration::from_millis(95), "{elapsed:?}");
}

#[test]
fn long_waits_end() {
    let (mut looping, _) = looping();
    let mut probe = Probe {
        wait: Some(Duration::from_millis(101)),
        waits: 1,
        ..Probe::default()
    };
    let start = Instant::now();
    looping.run(&mut probe).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(101));
}

#[test]
fn faults_reach_the_protocol_and_end_nothing() {
    let (mut looping, _) = looping();
    let mut probe = Probe {
        to_send: vec![head("[::1]:9".parse().unwrap()); 3],
        stop_at: Some(Instant::now()),
        ..Probe::default()
    };
    looping.run(&mut probe).unwrap();
    assert_eq!(probe.faults, [Fault::Unreachable; 3]);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_closed_port_is_reported_without_waiting() {
    let closed = bound().1;
    let (mut socket, _) = bound();
    socket.enable_icmp_errors().unwrap();
    let mut looping = EventLoop::new().unwrap();
    looping.add(socket).unwrap();
    let mut probe = Probe {
        to_send: vec![head(closed)],
        ..Probe::default()
    };
    looping.run(&mut probe).unwrap();
    assert!(!probe.icmp_errors.is_empty());
}
