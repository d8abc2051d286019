//! Two made-up parties on links of every kind.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, BatchHead, Datagram, Ecn};

use super::{Arrivals, Chance, Link, Network, Party, Route, Transmit, Verdict};

const A: usize = 0;
const B: usize = 1;
const MILLISECOND: Duration = Duration::from_millis(1);

fn address(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

fn network(link: Link) -> Network {
    let mut network = Network::new(7, &[address(1), address(2)]);
    network.set_links(link);
    network
}

/// Sends what it is told to, and keeps what it gets.
#[derive(Default)]
struct Node {
    to_send: Vec<(usize, usize)>,
    local: Option<SocketAddr>,
    ecn: Ecn,
    received: Vec<(Instant, SocketAddr, Ecn, Vec<u8>)>,
    callback: Option<Duration>,
}

impl Node {
    fn sending(segments: usize, size: usize) -> Self {
        Self {
            to_send: vec![(segments, size)],
            ecn: Ecn::Ect0,
            ..Self::default()
        }
    }

    fn numbers(&self) -> Vec<u8> {
        self.received.iter().map(|(.., bytes)| bytes[0]).collect()
    }

    fn delays(&self, network_start: Instant) -> Vec<Duration> {
        let delay = |(at, ..): &(Instant, _, _, _)| *at - network_start;
        self.received.iter().map(delay).collect()
    }
}

impl Party for Node {
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant) {
        for Datagram {
            remote,
            ecn,
            payload,
            ..
        } in datagrams
        {
            self.received.push((now, remote, ecn, payload.to_vec()));
        }
    }

    fn transmit(&mut self, _: Instant, buffer: &mut BatchBuffer) -> Transmit {
        let Some((segments, size)) = self.to_send.pop() else {
            return self.callback.map_or(Transmit::Nothing, Transmit::Callback);
        };
        for (number, segment) in buffer.bytes_mut()[..segments * size]
            .chunks_mut(size)
            .enumerate()
        {
            segment.fill(u8::try_from(number).unwrap());
        }
        Transmit::Batch(BatchHead {
            remote: address(2),
            local: self.local,
            ecn: self.ecn,
            length: segments * size,
            segment: size,
        })
    }
}

fn transfer(network: &mut Network, segments: usize, size: usize) -> Node {
    let mut sender = Node::sending(segments, size);
    let mut receiver = Node::default();
    network.run(&mut [&mut sender, &mut receiver], Duration::from_mins(1));
    receiver
}

#[test]
fn a_perfect_link_hands_a_batch_over_at_once() {
    let mut network = network(Link::default());
    let start = network.now();
    let receiver = transfer(&mut network, 3, 1000);
    assert_eq!(receiver.numbers(), [0, 1, 2]);
    assert_eq!(receiver.delays(start), [Duration::ZERO; 3]);
    assert_eq!(receiver.received[0].1, address(1));
    assert_eq!(network.passed(A, B).sent_bytes, 3000);
}

#[test]
fn delay_moves_the_clock() {
    let mut network = network(Link::delayed(20 * MILLISECOND));
    let start = network.now();
    let receiver = transfer(&mut network, 2, 1000);
    assert_eq!(receiver.delays(start), [20 * MILLISECOND; 2]);
}

#[test]
fn bandwidth_spaces_datagrams_and_a_full_queue_drops_the_tail() {
    // 1028 bytes on the wire take one millisecond.
    let mut network = network(Link {
        bandwidth: Some(1028 * 8 * 1000),
        queue: 3000,
        ..Link::default()
    });
    let start = network.now();
    let receiver = transfer(&mut network, 10, 1000);
    assert_eq!(receiver.numbers(), [0, 1, 2]);
    let expected = [MILLISECOND, 2 * MILLISECOND, 3 * MILLISECOND];
    assert_eq!(receiver.delays(start), expected);
    assert_eq!(network.passed(A, B).overflowed, 7);
}

#[test]
fn loss_duplication_and_corruption_happen_as_often_as_they_should() {
    let mut network = network(Link {
        loss: Chance::percent(20),
        duplicate: Chance::percent(10),
        corrupt: Chance::percent(10),
        ..Link::default()
    });
    let mut arrived = 0;
    let mut wrong = 0;
    for _ in 0..50 {
        let receiver = transfer(&mut network, 20, 100);
        arrived += receiver.received.len();
        let is_whole = |bytes: &[u8]| bytes.iter().all(|byte| *byte == bytes[0]);
        let bytes = receiver.received.iter().map(|(.., bytes)| bytes);
        wrong += bytes.filter(|bytes| !is_whole(bytes)).count();
    }
    let passed = network.passed(A, B);
    let counted = passed.sent - passed.lost + passed.duplicated;
    assert_eq!(u64::try_from(arrived), Ok(counted));
    assert_eq!(u64::try_from(wrong), Ok(passed.corrupted));
    assert!((150..250).contains(&passed.lost), "{passed:?}");
    assert!((50..110).contains(&passed.duplicated), "{passed:?}");
    assert!((50..110).contains(&passed.corrupted), "{passed:?}");
}

#[test]
fn the_same_seed_repeats() {
    let run = || {
        let mut network = network(Link {
            loss: Chance::percent(30),
            reorder: Chance::percent(30),
            reorder_delay: MILLISECOND,
            ..Link::delayed(MILLISECOND)
        });
        transfer(&mut network, 60, 100).numbers()
    };
    assert_eq!(run(), run());
    assert!(!run().is_sorted());
}

#[test]
fn ecn_is_marked_and_bleached() {
    let mut marking = network(Link {
        mark: Chance::ALWAYS,
        ..Link::default()
    });
    let receiver = transfer(&mut marking, 1, 100);
    assert_eq!(receiver.received[0].2, Ecn::Ce);
    assert_eq!(marking.passed(A, B).marked, 1);

    let mut bleaching = network(Link {
        bleach: true,
        ..Link::default()
    });
    let receiver = transfer(&mut bleaching, 1, 100);
    assert_eq!(receiver.received[0].2, Ecn::NotEct);
}

#[test]
fn a_datagram_larger_than_the_link_takes_vanishes() {
    let mut network = network(Link {
        largest: 1200,
        ..Link::default()
    });
    assert_eq!(transfer(&mut network, 1, 1200).received.len(), 1);
    assert_eq!(transfer(&mut network, 1, 1201).received.len(), 0);
    assert_eq!(network.passed(A, B).oversized, 1);
}

#[test]
fn a_rebound_node_is_seen_at_its_new_address_only() {
    let mut network = network(Link::delayed(MILLISECOND));
    network.rebind(A, address(9));
    assert_eq!(transfer(&mut network, 1, 100).received[0].1, address(9));

    let mut sender = Node::sending(1, 100);
    let mut receiver = Node::default();
    network.step(&mut [&mut sender, &mut receiver]);
    network.rebind(B, address(3));
    network.run(&mut [&mut sender, &mut receiver], MILLISECOND * 5);
    assert_eq!(receiver.received.len(), 0);
    assert_eq!(network.unroutable(), 1);
}

#[test]
fn a_node_with_several_addresses_chooses_one() {
    let any = |port| SocketAddr::from(([0, 0, 0, 0], port));
    for (local, seen) in [
        (None, 1),
        (Some(address(5)), 5),
        (Some(any(5)), 5),
        (Some(address(6)), 1),
    ] {
        let mut network = network(Link::delayed(MILLISECOND));
        network.add_address(A, address(5));
        network.add_address(A, address(6));
        network.remove_address(A, address(6));
        let mut sender = Node::sending(1, 100);
        sender.local = local;
        let mut receiver = Node::default();
        network.run(&mut [&mut sender, &mut receiver], MILLISECOND * 5);
        assert_eq!(receiver.received[0].1, address(seen));
    }
}

#[test]
fn a_filter_sees_each_datagram_and_decides() {
    let mut network = network(Link::default());
    let filter = |bytes: &mut Vec<u8>, number| match number {
        1 => Verdict::Drop,
        2 => Verdict::Hold(MILLISECOND),
        _ => {
            bytes[0] += 100;
            Verdict::Pass
        }
    };
    network.set_filter(A, B, Box::new(filter));
    assert_eq!(transfer(&mut network, 4, 100).numbers(), [100, 103, 2]);
    network.clear_filter(A, B);
    assert_eq!(transfer(&mut network, 2, 100).numbers(), [0, 1]);
}

#[test]
fn an_injected_datagram_has_the_address_that_it_claims() {
    let mut network = network(Link::default());
    let route = Route {
        source: address(77),
        destination: address(2),
    };
    network.inject(route, Ecn::NotEct, b"x");
    let mut sender = Node::default();
    let mut receiver = Node::default();
    network.run(&mut [&mut sender, &mut receiver], MILLISECOND);
    assert_eq!(receiver.received[0].1, address(77));
}

#[test]
#[should_panic(expected = "a party spins")]
fn a_party_that_spins_is_found() {
    let mut network = network(Link::default());
    let mut spinning = Node {
        callback: Some(Duration::ZERO),
        ..Node::default()
    };
    network.run(&mut [&mut spinning, &mut Node::default()], MILLISECOND);
}
