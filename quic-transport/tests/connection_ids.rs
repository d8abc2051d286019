//! Connection IDs given out and retired, in any order, by either end.

use std::time::Duration;

use quic_common::Random;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames, parameters,
};
use test_fixture::{CLIENT, CountingAllocator, Pair, held_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

const SECOND: Duration = Duration::from_secs(1);
const PROTOCOL: u64 = 10;

fn link() -> Link {
    Link::delayed(Duration::from_millis(5))
}

fn to_server(limit: u64) -> ToServer {
    let mut parameters = Parameters::generous();
    parameters.set(parameters::ACTIVE_CID_LIMIT, limit);
    let mut pair = ToServer::scripted_client(&Settings::default(), parameters, link());
    pair.handshake();
    pair.run(SECOND);
    pair
}

fn to_client() -> ToClient {
    let mut parameters = Parameters::generous();
    parameters.set(parameters::ACTIVE_CID_LIMIT, 8);
    let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
    pair.handshake();
    pair
}

/// The connection IDs that NEW_CONNECTION_ID frames have brought, by sequence number.
fn given(peer: &ScriptedPeer) -> Vec<(u64, Vec<u8>)> {
    let frames = peer.frames(Level::OneRtt);
    let mut given: Vec<_> = frames
        .filter_map(|frame| {
            if let SeenFrame::NewConnectionId { sequence, cid, .. } = frame {
                Some((*sequence, cid.clone()))
            } else {
                None
            }
        })
        .collect();
    given.sort();
    given.dedup();
    given
}

/// Whether a PING to this connection ID is acknowledged.
fn is_known(pair: &mut ToServer, cid: &[u8]) -> bool {
    let mut draft = Draft::new(Level::OneRtt, &[1]);
    draft.destination = Some(cid);
    let number = pair.client.next_number(Level::OneRtt);
    let packet = pair.client.seal(&draft);
    pair.client.send_datagram(packet);
    pair.run(SECOND);
    pair.client.frames(Level::OneRtt).any(|frame| {
        matches!(frame, SeenFrame::Ack { ranges, .. } if ranges.iter().any(|range| range.contains(&number)))
    })
}

/// RFC 9000, 5.1.1: two beside the one in use, enough for a move; once the peer has moved, as many as it stores, and no
/// more than 8. Each of them works at once.
#[test]
fn as_many_are_given_as_the_peer_stores() {
    for (limit, at_first, at_last) in [(2, 1, 1), (5, 2, 4), (8, 2, 7), (1000, 2, 7)] {
        let mut pair = to_server(limit);
        let numbers = |peer: &ScriptedPeer| -> Vec<_> {
            let given = given(peer);
            given.iter().map(|(sequence, _)| *sequence).collect()
        };
        assert_eq!(numbers(&pair.client), (1..=at_first).collect::<Vec<_>>());
        let home = pair.network.address(CLIENT);
        for address in [([203, 0, 113, 1], 1000).into(), home] {
            pair.network.rebind(CLIENT, address);
            pair.client.send(Level::OneRtt, &[1]);
            pair.run(SECOND / 50);
        }
        pair.run(SECOND);
        assert_eq!(numbers(&pair.client), (1..=at_last).collect::<Vec<_>>());
        for (_, cid) in given(&pair.client) {
            assert_eq!(cid.len(), 8);
            assert!(is_known(&mut pair, &cid));
        }
    }
}

/// RFC 9000, 5.1.1: who can no longer be heard can't be given any, so a connection that is still in use after a second has
/// them all; one that isn't gets no packet for that.
#[test]
fn a_connection_that_lasts_gets_all() {
    let mut pair = to_server(8);
    let arrived = pair.client.packets().len();
    pair.run(SECOND * 5);
    assert_eq!(
        (given(&pair.client).len(), pair.client.packets().len()),
        (2, arrived)
    );
    pair.client.send(Level::OneRtt, &[1]);
    pair.run(SECOND * 3);
    assert_eq!(given(&pair.client).len(), 7);
}

/// RFC 9000, 5.1.2: each that is retired is replaced, in whatever order; those that are retired lead nowhere.
#[test]
fn retired_ones_are_replaced_in_any_order() {
    for seed in 0..10 {
        let mut random = Random::from_seed([seed; 32]);
        let mut pair = to_server(3);
        let first = pair.client.remote_cid().to_vec();
        let mut active = given(&pair.client);
        active.push((0, first));
        for round in 0..12 {
            let place = usize::try_from(random.below(active.len().try_into().unwrap())).unwrap();
            let (sequence, retired) = active.swap_remove(place);
            let (_, used) = active.first().unwrap().clone();
            pair.client.set_remote_cid(&used);
            let known = given(&pair.client).len();
            // Twice: the second time it means nothing.
            for _ in 0..2 {
                pair.client
                    .send(Level::OneRtt, &frames::retire_connection_id(sequence));
            }
            pair.run(SECOND);
            let all = given(&pair.client);
            assert_eq!(all.len(), known + 1, "round {round} of {seed}");
            active.push(all.last().unwrap().clone());
            assert!(!is_known(&mut pair, &retired));
            for (_, cid) in &active {
                assert!(is_known(&mut pair, cid));
            }
        }
        assert_eq!(pair.client.close_code(), None);
    }
}

/// RFC 9000, 19.16: not one that was never given, and not the one that carries the frame.
#[test]
fn what_cannot_be_retired_is_an_error() {
    for sequence in [0, 8, 1000, (1 << 62) - 1] {
        let mut pair = to_server(8);
        pair.client
            .send(Level::OneRtt, &frames::retire_connection_id(sequence));
        pair.run(SECOND);
        assert_eq!(pair.client.close_code(), Some(PROTOCOL), "{sequence}");
    }
}

/// Retiring without end costs the peer a packet each time, and neither end any memory.
#[test]
fn retiring_without_end_makes_nothing_grow() {
    let mut pair = to_client();
    let mut next = 1;
    let mut churn = |pair: &mut ToClient, rounds: u64| {
        for _ in 0..rounds {
            pair.server
                .send(Level::OneRtt, &frames::retire_connection_id(next));
            next += 1;
            pair.run(Duration::from_millis(20));
        }
        pair.server.forget();
    };
    churn(&mut pair, 2000);
    let start = held_bytes();
    churn(&mut pair, 4000);
    let more = held_bytes() - start;
    assert!(!pair.client.connection.is_closing());
    // The scripted peer remembers the numbers of packets, at some 20 bytes each.
    assert!(more < 320_000, "{more}");
}

/// RFC 9000, 5.1.2: a peer may replace all of its connection IDs again and again, if it acknowledges that we
/// have retired the old ones.
#[test]
fn connection_ids_of_the_peer_may_change_for_ever() {
    let mut pair = to_client();
    for sequence in 1..200_u64 {
        let cid = sequence.to_be_bytes();
        let frame = frames::new_connection_id(sequence, sequence, &cid, [9; 16]);
        pair.server.send(Level::OneRtt, &frame);
        pair.run(SECOND / 5);
    }
    assert_eq!(pair.server.close_code(), None);
    let retired = pair
        .server
        .frames(Level::OneRtt)
        .filter(|frame| matches!(frame, SeenFrame::RetireConnectionId { .. }));
    assert_eq!(retired.count(), 199);
}

/// RFC 9000, 5.1.2: without acknowledgments only so many may wait.
#[test]
fn retirements_that_nobody_acknowledges_have_a_bound() {
    const CID_LIMIT: u64 = 9;
    for (changes, expected) in [(16, None), (17, Some(CID_LIMIT))] {
        let mut pair = to_client();
        pair.server.acknowledges = false;
        for sequence in 1..=changes {
            let cid = u64::to_be_bytes(sequence);
            let frame = frames::new_connection_id(sequence, sequence, &cid, [9; 16]);
            pair.server.send(Level::OneRtt, &frame);
        }
        pair.run(SECOND);
        assert_eq!(pair.server.close_code(), expected, "{changes}");
    }
}

/// RFC 9000, 19.15: a length of 0 or over 20, a number below `Retire Prior To`.
#[test]
fn malformed_ones_are_an_error() {
    const FRAME_ENCODING: u64 = 7;
    for frame in [
        frames::new_connection_id(1, 0, b"", [9; 16]),
        frames::new_connection_id(1, 0, &[1; 21], [9; 16]),
        frames::new_connection_id(1, 2, &[1; 8], [9; 16]),
    ] {
        let mut pair = to_client();
        pair.server.send(Level::OneRtt, &frame);
        pair.run(SECOND);
        assert_eq!(pair.server.close_code(), Some(FRAME_ENCODING));
    }
}
