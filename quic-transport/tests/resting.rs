//! Connections that fall silent give back what they need only to be fast, and take it again whatever ends the silence.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::{Application, Connection, Direction, Event, StreamEvent, StreamId};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, frames};
use test_fixture::{Bulk, Pair};

const SECOND: Duration = Duration::from_secs(1);

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

/// Two ends that have said all there is to say, a while ago.
fn at_rest() -> Pair<Client<Log>, Server<Log>> {
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&Settings::default(), link());
    pair.handshake();
    pair.run(SECOND * 3);
    assert!(rests(&mut pair) == (true, true));
    pair
}

fn rests<A: Application + Default>(pair: &mut Pair<Client<A>, Server<A>>) -> (bool, bool) {
    let server = pair.server.connection(0).unwrap().0.is_at_rest();
    (pair.client.connection.is_at_rest(), server)
}

fn server<C, A: Application + Default>(pair: &mut Pair<C, Server<A>>) -> &mut Connection {
    pair.server.connection(0).unwrap().0
}

fn received(connection: &mut Connection, id: StreamId) -> Vec<u8> {
    let mut buffer = [0; 100];
    let read = connection.stream_read(id, &mut buffer).unwrap();
    buffer.get(..read.length).unwrap().to_vec()
}

/// Each end takes a turn or two for it, beside those that end the handshake, and is then left alone.
#[test]
fn a_silence_costs_a_few_turns() {
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&Settings::default(), link());
    pair.handshake();
    pair.run(SECOND / 2);
    assert_eq!(rests(&mut pair), (false, false));
    let (client, server) = pair.turns(SECOND * 2);
    assert!(client <= 6 && server <= 6, "{client} {server}");
    assert_eq!(rests(&mut pair), (true, true));
    for _ in 0..10 {
        assert_eq!(pair.turns(SECOND), (1, 1));
        assert_eq!(rests(&mut pair), (true, true));
    }
}

/// A connection goes on from either end as if there had been no silence, again and again, and key updates go with it.
#[test]
fn whoever_speaks_first_is_heard() {
    let mut pair = at_rest();
    for round in 0..6_u64 {
        let id = pair
            .client
            .connection
            .open(Direction::Unidirectional)
            .unwrap();
        pair.client.connection.stream_send(id, b"a").unwrap();
        pair.run(SECOND / 10);
        assert_eq!(received(server(&mut pair), id), b"a");
        assert_eq!(rests(&mut pair), (false, false));
        pair.run(SECOND * 3);
        assert_eq!(rests(&mut pair), (true, true));

        let id = server(&mut pair).open(Direction::Unidirectional).unwrap();
        server(&mut pair).stream_send(id, b"b").unwrap();
        pair.run(SECOND / 10);
        assert_eq!(received(&mut pair.client.connection, id), b"b");
        pair.run(SECOND * 3);
        assert_eq!(rests(&mut pair), (true, true));

        pair.client.connection.update_keys().unwrap();
        let id = pair
            .client
            .connection
            .open(Direction::Unidirectional)
            .unwrap();
        pair.client.connection.stream_send(id, b"c").unwrap();
        pair.run(SECOND / 10);
        assert_eq!(received(server(&mut pair), id), b"c");
        assert_eq!(server(&mut pair).key_updates(), round + 1);
        pair.run(SECOND * 3);
        assert_eq!(rests(&mut pair), (true, true));
        assert_eq!(pair.client.connection.key_updates(), round + 1);
    }
    assert_eq!(pair.client.connection.stats().packets_lost, 0);
}

/// Streams that were open before the silence are there after it, with all that they owe.
#[test]
fn streams_outlive_the_silence() {
    let mut pair = at_rest();
    let ids: Vec<_> = (0..20)
        .map(|number| {
            let direction = if number % 2 == 0 {
                Direction::Bidirectional
            } else {
                Direction::Unidirectional
            };
            let id = pair.client.connection.open(direction).unwrap();
            pair.client.connection.stream_send(id, b"before").unwrap();
            id
        })
        .collect();
    pair.run(SECOND * 3);
    assert_eq!(rests(&mut pair), (true, true));
    for id in ids.iter().take(10) {
        pair.client
            .connection
            .stream_send(*id, b" and after")
            .unwrap();
        pair.client.connection.finish(*id).unwrap();
    }
    pair.run(SECOND / 2);
    for (place, id) in ids.iter().enumerate() {
        let expected = if place < 10 {
            "before and after"
        } else {
            "before"
        };
        assert_eq!(received(server(&mut pair), *id), expected.as_bytes());
    }
    pair.run(SECOND * 3);
    assert_eq!(rests(&mut pair), (true, true));
    let (_, log) = pair.server.connection(0).unwrap();
    let opened = |event: &&Event| matches!(event, Event::Stream(StreamEvent::Opened(_)));
    assert_eq!(log.events.iter().filter(opened).count(), ids.len());
}

/// A close from either end, and a silence that lasts too long.
#[test]
fn the_end_comes_as_it_would_have() {
    let mut pair = at_rest();
    server(&mut pair).close(7, b"over");
    pair.run(SECOND / 10);
    assert!(pair.client.connection.is_closing());
    let mut pair = at_rest();
    pair.client.connection.close(7, b"over");
    pair.run(SECOND);
    assert!(pair.server.connection(0).is_none());
    let mut pair = at_rest();
    pair.run(SECOND * 40);
    assert!(pair.client.connection.is_closed() && pair.server.connection(0).is_none());
}

/// A PING that keeps the connection alive ends the rest for as long as it takes.
#[test]
fn keep_alives_are_sent_from_rest() {
    let mut settings = Settings::default();
    settings.client.keep_alive = Some(SECOND * 10);
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings, link());
    pair.handshake();
    pair.run(SECOND * 100);
    assert!(!pair.client.connection.is_closing());
    pair.run(SECOND * 5);
    assert_eq!(rests(&mut pair), (true, true));
}

/// RFC 9001, 6.3 and 9.5: keys are made before the packet is looked at, whatever it turns out to be; what is forged can
/// make them be made once in each time of silence, and changes nothing else.
#[test]
fn forged_packets_wake_and_change_nothing() {
    let mut pair = Pair::<ScriptedPeer, Server<Log>>::scripted_client(
        &Settings::default(),
        Parameters::generous(),
        link(),
    );
    pair.handshake();
    pair.run(SECOND * 3);
    assert!(server(&mut pair).is_at_rest());
    let updates = server(&mut pair).key_updates();
    for byte in [0x00, 0x04, 0x03] {
        let mut packet = pair
            .client
            .seal(&Draft::new(Level::OneRtt, &frames::ping()));
        let last = packet.len() - 1;
        *packet.first_mut().unwrap() ^= byte;
        *packet.get_mut(last).unwrap() ^= 1;
        pair.client.send_datagram(packet);
        pair.run(SECOND / 2);
        assert!(!server(&mut pair).is_at_rest(), "{byte:#x}");
        pair.run(SECOND * 2);
        assert!(server(&mut pair).is_at_rest(), "{byte:#x}");
    }
    assert_eq!(server(&mut pair).key_updates(), updates);
    pair.client.update_keys();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND / 2);
    assert_eq!(server(&mut pair).key_updates(), updates + 1);
}

/// RFC 9001, 4.1.3 and 6: a server whose TLS session is gone refuses what a client's TLS says after the handshake.
#[test]
fn a_server_refuses_tls_messages_after_the_handshake() {
    for rest in [SECOND / 10, SECOND * 3] {
        for message in [&[24, 0, 0, 1, 0][..], &[4], &[11, 0, 0, 4]] {
            let mut pair = Pair::<ScriptedPeer, Server<Log>>::scripted_client(
                &Settings::default(),
                Parameters::generous(),
                link(),
            );
            pair.handshake();
            pair.run(rest);
            pair.client.send(Level::OneRtt, &frames::crypto(0, message));
            pair.run(SECOND / 2);
            assert_eq!(pair.client.close_code(), Some(0x10a));
        }
    }
}

/// A transfer in the middle of which the application pauses.
#[test]
fn a_pause_in_a_transfer_changes_nothing() {
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&Settings::default(), link());
    pair.handshake();
    for complete in 1..4 {
        pair.client.request(300_000, 300_000).unwrap();
        pair.run_until(|pair| pair.client.application.complete == complete);
        pair.run(SECOND * 5);
        assert_eq!(rests(&mut pair), (true, true));
    }
}
