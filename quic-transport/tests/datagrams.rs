//! Datagrams between two ends, and what a peer may not do with them (RFC 9221).

use std::time::{Duration, Instant};

use quic_transport::{
    Application, Config, Connection, DatagramError, DatagramEvent, DatagramId, DatagramSettings,
    DatagramStats, Direction, Event, StreamEvent, WhenFull,
};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::scripted::parameters::MAX_DATAGRAM_FRAME_SIZE;
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenFrame, frames};

const PROTOCOL: u64 = 10;

/// Receives datagrams as they come, and reads streams.
#[derive(Debug, Default)]
struct Collector {
    datagrams: Vec<Vec<u8>>,
    stream_bytes: usize,
    events: Vec<DatagramEvent>,
}

impl Application for Collector {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Datagram(DatagramEvent::Readable) => {
                    while let Some(data) = connection.receive_datagram() {
                        self.datagrams.push(data.to_vec());
                    }
                }
                Event::Datagram(event) => self.events.push(event),
                Event::Stream(StreamEvent::Readable(id)) => {
                    let mut buffer = [0; 4096];
                    while let Ok(read) = connection.stream_read(id, &mut buffer)
                        && read.length > 0
                    {
                        self.stream_bytes += read.length;
                    }
                }
                Event::Connected | Event::Stream(_) | Event::Closed(_) | _ => {}
            }
        }
    }
}

type Collectors = Pair<Client<Collector>, Server<Collector>>;
type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

fn taking(datagrams: DatagramSettings) -> Config {
    Config {
        datagrams,
        ..Config::default()
    }
}

fn settings(datagrams: DatagramSettings) -> Settings {
    Settings {
        client: taking(datagrams),
        server: taking(datagrams),
        ..Settings::default()
    }
}

const ANY: DatagramSettings = DatagramSettings {
    max_frame_size: 65_535,
    receive_buffer: 1 << 20,
    send_buffer: 1 << 20,
    when_full: WhenFull::Refuse,
    outcomes: true,
};

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn narrow(bits: u64) -> Link {
    Link {
        bandwidth: Some(bits),
        queue: 20_000,
        ..link()
    }
}

fn pair(datagrams: DatagramSettings, link: Link) -> Collectors {
    let mut pair = Collectors::new(&settings(datagrams), link);
    pair.handshake();
    pair
}

fn counts(connection: &Connection) -> DatagramStats {
    connection.stats().datagram_frames
}

/// Numbered, so that each is told apart.
fn numbered(number: u32, length: usize) -> Vec<u8> {
    let mut data = number.to_be_bytes().to_vec();
    data.resize(length.max(4), 0xda);
    data
}

#[test]
fn both_ends_send_and_receive() {
    let mut pair = pair(ANY, link());
    let client = &mut pair.client.connection;
    assert_eq!(client.send_datagram(b"from the client"), Ok(DatagramId(0)));
    assert_eq!(client.send_datagram(b""), Ok(DatagramId(1)));
    let (server, _) = pair.server.connection(0).unwrap();
    server.send_datagram(b"from the server").unwrap();
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.application.datagrams, [b"from the server"]);
    let (_, server) = pair.server.connection(0).unwrap();
    assert_eq!(server.datagrams, [&b"from the client"[..], b""]);
    let told = [0, 1].map(|id| DatagramEvent::Acked(DatagramId(id)));
    assert_eq!(pair.client.application.events, told);
    let stats = counts(&pair.client.connection);
    assert_eq!((stats.sent, stats.acked, stats.received), (2, 2, 1));
}

/// RFC 9221, 3: no DATAGRAM frame is sent before the peer's transport parameter, nor if it has none.
#[test]
fn nothing_is_sent_to_a_peer_that_takes_none() {
    let mut pair = Collectors::new(
        &Settings {
            server: taking(ANY),
            ..Settings::default()
        },
        link(),
    );
    let early = pair.client.connection.send_datagram(b"early");
    assert_eq!(early, Err(DatagramError::Unsupported));
    assert_eq!(pair.client.connection.max_datagram_length(), None);
    pair.handshake();
    // The server takes what the client sends, and not the other way round.
    assert!(pair.client.connection.send_datagram(b"x").is_ok());
    let (server, _) = pair.server.connection(0).unwrap();
    assert_eq!(server.send_datagram(b"x"), Err(DatagramError::Unsupported));
    assert_eq!(server.max_datagram_length(), None);
    pair.client.connection.close(0, b"");
    let late = pair.client.connection.send_datagram(b"x");
    assert_eq!(late, Err(DatagramError::Closed));
}

/// RFC 9221, 3: the peer's limit counts the whole frame.
#[test]
fn the_largest_datagram_is_told_and_fits() {
    let mut parameters = Parameters::generous();
    parameters.set(MAX_DATAGRAM_FRAME_SIZE, 100);
    let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
    pair.handshake();
    let client = &mut pair.client.connection;
    assert_eq!(client.max_datagram_length(), Some(97));
    assert_eq!(
        client.send_datagram(&[7; 98]),
        Err(DatagramError::TooLarge { most: 97 })
    );
    client.send_datagram(&[7; 97]).unwrap();
    pair.run(Duration::from_secs(1));
    let seen = SeenFrame::Datagram { data: vec![7; 97] };
    assert!(
        pair.server
            .frames(Level::OneRtt)
            .any(|frame| *frame == seen)
    );
}

/// What can be sent follows the path's MTU, and the largest datagram fills a packet.
#[test]
fn the_largest_datagram_grows_with_the_path() {
    let mut pair = pair(ANY, link());
    // The server's connection ID has 8 bytes: 1 + 8 + 4 for the header, 16 for the tag, 1 for the frame's type.
    let overhead = 30;
    let mut sizes = Vec::new();
    for _ in 0..100 {
        let client = &mut pair.client.connection;
        let most = client.max_datagram_length().unwrap();
        assert_eq!(most, usize::from(client.stats().path_mtu) - overhead);
        if sizes.last() != Some(&most) {
            sizes.push(most);
        }
        client.send_datagram(&vec![1; most]).unwrap();
        assert_eq!(
            client.send_datagram(&vec![1; most + 1]),
            Err(DatagramError::TooLarge { most })
        );
        pair.run(Duration::from_millis(50));
    }
    assert_eq!(sizes, [1200 - overhead, 1452 - overhead]);
    let (_, server) = pair.server.connection(0).unwrap();
    assert_eq!(server.datagrams.len(), 100);
}

/// RFC 9221, 5: a lost datagram isn't sent again; its sender is told.
#[test]
fn what_is_lost_stays_lost_and_is_told() {
    let lossy = Link {
        loss: Chance::percent(20),
        ..link()
    };
    let mut pair = pair(ANY, lossy);
    for number in 0..500 {
        let client = &mut pair.client.connection;
        client.send_datagram(&numbered(number, 100)).unwrap();
        pair.run(Duration::from_millis(3));
    }
    pair.run(Duration::from_secs(10));
    let stats = counts(&pair.client.connection);
    assert_eq!(stats.sent, 500);
    assert!(stats.lost > 50 && stats.acked > 300, "{stats:?}");
    assert_eq!(stats.lost + stats.acked, 500, "each has one fate");
    let events = &pair.client.application.events;
    assert_eq!(events.len(), 500);
    let (_, server) = pair.server.connection(0).unwrap();
    let mut numbers: Vec<_> = server
        .datagrams
        .iter()
        .map(|data| data[..4].to_vec())
        .collect();
    let received = numbers.len();
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), received, "none came twice");
    let acked = |number: u64| events.contains(&DatagramEvent::Acked(DatagramId(number)));
    let acked = (0..500).filter(|number| acked(*number)).count();
    assert!(acked <= received, "what was acknowledged has arrived");
}

/// RFC 9221, 5: a probe asks for an acknowledgment; it doesn't send the datagram again.
#[test]
fn a_probe_does_not_repeat_a_datagram() {
    let mut pair = ToClient::scripted_server(
        &settings(ANY),
        {
            let mut parameters = Parameters::generous();
            parameters.set(MAX_DATAGRAM_FRAME_SIZE, 1000);
            parameters
        },
        link(),
    );
    pair.handshake();
    pair.server.acknowledges = false;
    pair.server.forget();
    pair.client.connection.send_datagram(b"once").unwrap();
    pair.run(Duration::from_secs(3));
    let packets = pair.server.packets();
    assert!(packets.len() > 3, "there were probes");
    let datagrams = pair
        .server
        .frames(Level::OneRtt)
        .filter(|frame| matches!(frame, SeenFrame::Datagram { .. }));
    assert_eq!(datagrams.count(), 1);
    assert_eq!(counts(&pair.client.connection).lost, 0);
}

/// RFC 9221, 5.2 lets an ACK of datagrams be delayed as others are, and so it is.
#[test]
fn an_acknowledgment_of_a_datagram_may_wait() {
    let mut pair = ToServer::scripted_client(&settings(ANY), Parameters::generous(), link());
    pair.handshake();
    pair.run(Duration::from_secs(1));
    pair.client.forget();
    pair.client.send(Level::OneRtt, &frames::datagram(b"one"));
    pair.run(Duration::from_millis(30));
    assert!(pair.client.packets().is_empty(), "not at once");
    pair.run(Duration::from_millis(30));
    assert_eq!(pair.client.packets().len(), 1);
}

/// RFC 9221, 3: a frame that wasn't permitted, or is too large, MUST be a PROTOCOL_VIOLATION.
#[test]
fn a_frame_beyond_what_was_permitted_is_an_error() {
    let says = |max_frame_size, frames: &[u8]| {
        let settings = settings(DatagramSettings {
            max_frame_size,
            ..ANY
        });
        let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
        pair.handshake();
        pair.client.send(Level::OneRtt, frames);
        pair.run(Duration::from_secs(1));
        let server = pair.client.close_code();

        let mut pair = ToClient::scripted_server(&settings, Parameters::generous(), link());
        pair.handshake();
        pair.server.send(Level::OneRtt, frames);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.server.close_code(), server);
        server
    };
    let datagram = frames::datagram(&[7; 100]);
    assert_eq!(datagram.len(), 103);
    assert_eq!(says(103, &datagram), None);
    assert_eq!(says(102, &datagram), Some(PROTOCOL));
    assert_eq!(says(0, &datagram), Some(PROTOCOL));
    assert_eq!(says(0, &frames::datagram(b"")), Some(PROTOCOL));
}

/// RFC 9221, 5.3 lets a receiver drop what it can't hold: a flood costs no more than the buffer.
#[test]
fn a_flood_that_nobody_reads_is_dropped() {
    let small = DatagramSettings {
        receive_buffer: 20_000,
        ..ANY
    };
    let mut pair = ToServer::scripted_client(&settings(small), Parameters::generous(), link());
    pair.handshake();
    for number in 0..1000 {
        let frame = frames::datagram(&numbered(number, 968));
        pair.client.send(Level::OneRtt, &frame);
    }
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), None);
    let (server, log) = pair.server.connection(0).unwrap();
    let stats = counts(server);
    assert_eq!((stats.received, stats.unread), (1000, 980));
    let readable = Event::Datagram(DatagramEvent::Readable);
    assert!(log.events.contains(&readable));
    let newest: Vec<_> = (980..1000).map(|number| numbered(number, 968)).collect();
    let mut kept = Vec::new();
    while let Some(data) = server.receive_datagram() {
        kept.push(data.to_vec());
    }
    assert_eq!(kept, newest, "the newest are there, in order");
}

/// The queue is bounded, and says when there is room; nothing is lost on a perfect link.
#[test]
fn back_pressure_holds_the_application_up() {
    let small = DatagramSettings {
        send_buffer: 100_000,
        ..ANY
    };
    let mut pair = pair(small, narrow(10_000_000));
    let (mut number, mut refusals) = (0, 0);
    while number < 3000 {
        match pair
            .client
            .connection
            .send_datagram(&numbered(number, 1000))
        {
            Ok(id) => {
                assert_eq!(id, DatagramId(number.into()));
                number += 1;
            }
            Err(DatagramError::Full) => {
                refusals += 1;
                let events = &mut pair.client.application.events;
                events.clear();
                pair.run_until(|pair| {
                    let events = &pair.client.application.events;
                    events.contains(&DatagramEvent::Writable)
                });
            }
            Err(error) => panic!("{error}"),
        }
    }
    pair.run(Duration::from_secs(5));
    assert!(refusals > 10, "{refusals}");
    let stats = counts(&pair.client.connection);
    assert_eq!((stats.sent, stats.dropped), (3000, 0));
    assert_eq!(stats.lost + stats.acked, 3000);
}

/// When the newest matter most, the oldest make room and are told to be gone.
#[test]
fn the_oldest_give_way_when_asked_to() {
    let fresh = DatagramSettings {
        send_buffer: 10 * 1032,
        when_full: WhenFull::DropOldest,
        ..ANY
    };
    let mut pair = pair(fresh, link());
    for number in 0..25 {
        pair.client
            .connection
            .send_datagram(&numbered(number, 1000))
            .unwrap();
    }
    pair.run(Duration::from_secs(1));
    let (_, server) = pair.server.connection(0).unwrap();
    let newest: Vec<_> = (15..25).map(|number| numbered(number, 1000)).collect();
    assert_eq!(server.datagrams, newest);
    let dropped = (0..15).map(|id| DatagramEvent::Dropped(DatagramId(id)));
    assert!(
        pair.client
            .application
            .events
            .iter()
            .copied()
            .take(15)
            .eq(dropped)
    );
    assert_eq!(counts(&pair.client.connection).dropped, 15);
}

/// RFC 9221, 5.4: the congestion window holds datagrams back; and neither they nor streams starve the others.
#[test]
fn datagrams_and_streams_share_a_narrow_link() {
    let mut pair = pair(ANY, narrow(8_000_000));
    let id = pair
        .client
        .connection
        .open(Direction::Unidirectional)
        .unwrap();
    let mut number = 0;
    let end = pair.network.elapsed() + Duration::from_secs(5);
    while pair.network.elapsed() < end {
        let client = &mut pair.client.connection;
        let _taken = client.stream_send(id, &vec![5; 100_000]).unwrap();
        while client.send_datagram(&numbered(number, 1100)).is_ok() {
            number += 1;
        }
        pair.run(Duration::from_millis(5));
    }
    let stats = pair.client.connection.stats();
    assert!(stats.packets_lost * 20 < stats.packets_sent, "{stats:?}");
    let (_, server) = pair.server.connection(0).unwrap();
    let datagrams: usize = server.datagrams.iter().map(Vec::len).sum();
    let both = datagrams + server.stream_bytes;
    // The link carries 5 MB in this time.
    assert!(both > 4_000_000, "{both}");
    let share = datagrams * 100 / both;
    assert!((30..70).contains(&share), "datagrams have {share} %");
}

/// Datagrams alone fill a link, too.
#[test]
fn datagrams_alone_use_the_link() {
    let mut pair = pair(ANY, narrow(8_000_000));
    let end = pair.network.elapsed() + Duration::from_secs(5);
    while pair.network.elapsed() < end {
        while pair.client.connection.send_datagram(&[1; 1100]).is_ok() {}
        pair.run(Duration::from_millis(5));
    }
    let (_, server) = pair.server.connection(0).unwrap();
    let bytes: usize = server.datagrams.iter().map(Vec::len).sum();
    assert!(bytes > 4_000_000, "{bytes}");
}

/// A path that comes to carry less: what no longer fits is dropped, and the rest goes on.
#[test]
fn a_smaller_path_drops_what_is_too_large() {
    let mut pair = pair(ANY, link());
    for _ in 0..20 {
        pair.client.connection.send_datagram(&[1; 1000]).unwrap();
        pair.run(Duration::from_millis(50));
    }
    assert_eq!(pair.client.connection.stats().path_mtu, 1452);
    pair.network.set_links(Link {
        largest: 1200,
        ..link()
    });
    let before = counts(&pair.client.connection);
    for number in 0..400 {
        let client = &mut pair.client.connection;
        let most = client.max_datagram_length().unwrap();
        client.send_datagram(&numbered(number, most)).unwrap();
        pair.run(Duration::from_millis(20));
    }
    assert_eq!(pair.client.connection.stats().path_mtu, 1200);
    let (_, server) = pair.server.connection(0).unwrap();
    assert_eq!(server.datagrams.last(), Some(&numbered(399, 1170)));
    let after = counts(&pair.client.connection);
    assert!(after.acked > before.acked + 100, "{after:?}");
}
