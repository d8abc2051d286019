//! Streams that are reset, but for their beginning (draft-ietf-quic-reliable-stream-reset-10), between two ends and with a
//! scripted peer.
#![expect(clippy::panic, reason = "test code")]

use std::time::{Duration, Instant};

use quic_transport::{
    Application, Connection, Direction, Event, StreamError, StreamEvent, StreamId,
};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::scripted::parameters::RESET_STREAM_AT;
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenFrame, frames};

const FLOW_CONTROL: u64 = 3;
const STREAM_LIMIT: u64 = 4;
const STREAM_STATE: u64 = 5;
const FINAL_SIZE: u64 = 6;
const FRAME_ENCODING: u64 = 7;

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

/// Reads streams, and notes how many bytes each had before it was reset.
#[derive(Debug, Default)]
struct Reader {
    read: usize,
    resets: Vec<(usize, u64)>,
}

impl Reader {
    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let mut buffer = [0; 10_000];
        loop {
            match connection.stream_read(id, &mut buffer) {
                Ok(read) if read.length == 0 => return,
                Ok(read) => {
                    assert!(!read.fin, "a reset is no end");
                    self.read += read.length;
                }
                // Who hears of it in this way gets no event.
                Err(StreamError::Reset { code }) => return self.on_reset(code),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn on_reset(&mut self, code: u64) {
        self.resets.push((std::mem::take(&mut self.read), code));
    }
}

impl Application for Reader {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Stream(StreamEvent::Readable(id)) => self.read(connection, id),
                Event::Stream(StreamEvent::Reset { code, .. }) => self.on_reset(code),
                Event::Connected | Event::Stream(_) | Event::Datagram(_) | Event::Closed(_) | _ => {
                }
            }
        }
    }
}

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

/// The promised bytes arrive before the reset is told, over any link; and everything is forgotten then.
#[test]
fn the_promise_is_kept_over_a_bad_link() {
    let lossy = Link {
        loss: Chance::percent(10),
        reorder: Chance::percent(10),
        reorder_delay: Duration::from_millis(15),
        ..link()
    };
    let mut pair = Pair::<Client<Reader>, Server<Reader>>::new(&Settings::default(), lossy);
    pair.handshake();
    let promises = [1, 500, 5000, 50_000, 100_000];
    for (code, promise) in (0..).zip(promises) {
        let client = &mut pair.client.connection;
        let id = client.open(Direction::Unidirectional).unwrap();
        assert_eq!(client.stream_send(id, &vec![7; 100_000]), Ok(100_000));
        pair.run(Duration::from_millis(15));
        pair.client.connection.reset_at(id, code, promise).unwrap();
        let after = pair.client.connection.stream_send(id, b"x");
        assert_eq!(after, Err(StreamError::Finished));
        pair.run(Duration::from_secs(20));
    }
    let (_, server) = pair.server.connection(0).unwrap();
    let told: Vec<_> = server.resets.iter().map(|(_, code)| *code).collect();
    assert_eq!(told, [0, 1, 2, 3, 4]);
    for ((read, _), promise) in server.resets.iter().zip(promises) {
        assert!(u64::try_from(*read).unwrap() >= promise, "{read} {promise}");
    }
}

/// 3: only a peer that has said that it knows the frame gets one; without a promise RESET_STREAM does.
#[test]
fn who_does_not_know_the_frame_gets_none() {
    for knows in [false, true] {
        let mut parameters = Parameters::generous();
        if knows {
            parameters.set_bytes(RESET_STREAM_AT, &[]);
        }
        let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
        pair.handshake();
        let client = &mut pair.client.connection;
        let id = client.open(Direction::Unidirectional).unwrap();
        client.stream_send(id, &[7; 100]).unwrap();
        let at = client.reset_at(id, 5, 40);
        if !knows {
            assert_eq!(at, Err(StreamError::Unsupported));
            client.reset_at(id, 5, 0).unwrap();
        }
        pair.run(Duration::from_secs(1));
        let expected = if knows {
            SeenFrame::ResetStreamAt {
                id: id.value(),
                code: 5,
                final_size: 40,
                reliable_size: 40,
            }
        } else {
            SeenFrame::ResetStream {
                id: id.value(),
                code: 5,
                final_size: 0,
            }
        };
        let mut seen = pair.server.frames(Level::OneRtt);
        assert!(seen.any(|frame| *frame == expected));
    }
}

/// 3: both numbers of the parameter are offered.
#[test]
fn the_frame_is_offered_under_both_numbers() {
    let mut pair = ToClient::scripted_server(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    let offered = pair.server.remote_parameters().unwrap();
    for id in [RESET_STREAM_AT, 0x17_f758_6d2c_b571] {
        let entry = [frames::varint(id), vec![0]].concat();
        assert!(offered.windows(entry.len()).any(|window| window == entry));
    }
}

/// 4 and 5.2: what a peer may not say.
#[test]
fn frames_that_contradict_are_errors() {
    let says = |packets: &[Vec<u8>]| {
        let mut pair =
            ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
        pair.handshake();
        for frames in packets {
            pair.client.send(Level::OneRtt, frames);
        }
        pair.run(Duration::from_secs(1));
        pair.client.close_code()
    };
    let at = frames::reset_stream_at;
    let stream = frames::stream;
    assert_eq!(says(&[at(2, 5, 100, 100)]), None);
    assert_eq!(says(&[at(2, 5, 100, 0)]), None);
    assert_eq!(says(&[at(2, 5, 100, 50), at(2, 5, 100, 80)]), None);
    assert_eq!(says(&[at(2, 5, 100, 101)]), Some(FRAME_ENCODING));
    for code in [
        vec![at(2, 5, 100, 50), at(2, 6, 100, 40)],
        vec![at(2, 5, 100, 50), frames::reset_stream(2, 6, 100)],
        vec![frames::reset_stream(2, 5, 100), at(2, 6, 100, 40)],
        // Streams that a client doesn't send on.
        vec![at(3, 5, 100, 40)],
        vec![at(1, 5, 100, 40)],
    ] {
        assert_eq!(says(&code), Some(STREAM_STATE), "{code:?}");
    }
    for size in [
        vec![at(2, 5, 100, 50), at(2, 5, 99, 50)],
        vec![at(2, 5, 100, 50), frames::reset_stream(2, 5, 101)],
        vec![at(2, 5, 100, 50), stream(2, 100, b"x", false)],
        vec![at(2, 5, 100, 50), stream(2, 0, b"x", true)],
        vec![stream(2, 0, &[7; 100], false), at(2, 5, 99, 50)],
    ] {
        assert_eq!(says(&size), Some(FINAL_SIZE), "{size:?}");
    }
    let beyond = at(2, 5, (1 << 20) + 1, 1);
    assert_eq!(says(&[beyond]), Some(FLOW_CONTROL));
    assert_eq!(says(&[at(2 + 4 * 100, 5, 100, 1)]), Some(STREAM_LIMIT));
}
