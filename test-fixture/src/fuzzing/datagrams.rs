//! Datagrams from someone on the path, who sees and changes everything but has no keys.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quic_common::{Ecn, Reader};
use quic_transport::Direction;

use crate::ends::{Client, Log, Server, Settings};
use crate::network::{Link, Route, Verdict};
use crate::pair::{CLIENT, Pair, SERVER};

/// Datagrams that are remembered, the latest.
const REMEMBERED: usize = 64;

/// How much time passes before the end, less than the idle timeout.
const QUIET: Duration = Duration::from_secs(14);

type Ends = Pair<Client<Log>, Server<Log>>;

/// Sends bytes as they are, and datagrams that were seen before, changed, cut, joined or from elsewhere; loses others.
///
/// Nobody spins, all state is freed in the end, and a connection that was established stays so and carries data.
pub fn datagrams(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Ok(first) = input.u8() else {
        return;
    };
    let mut pair = Ends::new(
        &Settings::default(),
        Link::delayed(Duration::from_millis(1)),
    );
    let watched = watch(&mut pair);
    let is_established = first % 2 == 0;
    if is_established {
        pair.handshake();
        pair.run(Duration::from_millis(50));
    } else {
        for _ in 0..first / 2 % 16 {
            pair.step();
        }
    }
    while step(&mut input, &mut pair, &watched).is_some() {}
    watched.lock().unwrap().losses = 0;
    if is_established {
        transfers(&mut pair);
    }
    // Three probe timeouts may be longer than the idle timeout, after round trips of seconds (RFC 9000, 10.1).
    pair.run(Duration::from_mins(10));
    assert!(pair.client.connection.is_closed());
    assert!(pair.server.endpoint.is_empty(), "the state is freed");
}

/// What has been seen on the path, and how many datagrams will be lost next.
#[derive(Debug, Default)]
struct Watched {
    datagrams: Vec<Vec<u8>>,
    losses: u8,
}

impl Watched {
    fn on_datagram(&mut self, datagram: &[u8]) -> Verdict {
        if self.datagrams.len() == REMEMBERED {
            self.datagrams.remove(0);
        }
        self.datagrams.push(datagram.to_vec());
        if self.losses > 0 {
            self.losses -= 1;
            return Verdict::Drop;
        }
        Verdict::Pass
    }
}

fn watch(pair: &mut Ends) -> Arc<Mutex<Watched>> {
    let watched = Arc::new(Mutex::new(Watched::default()));
    for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
        let watched = Arc::clone(&watched);
        let filter =
            move |datagram: &mut Vec<u8>, _: u64| watched.lock().unwrap().on_datagram(datagram);
        pair.network.set_filter(from, to, Box::new(filter));
    }
    watched
}

fn step(input: &mut Reader<'_>, pair: &mut Ends, watched: &Mutex<Watched>) -> Option<()> {
    let operation = input.u8().ok()?;
    let datagram = match operation % 8 {
        0 => literal(input)?,
        1..=3 => {
            let mut datagram = seen(input, watched)?;
            for _ in 0..operation % 8 {
                let place = usize::from(input.u16().ok()?);
                let flip = input.u8().ok()?;
                if let Some(length) = datagram.len().checked_sub(1) {
                    datagram[place.min(length)] ^= flip;
                }
            }
            datagram
        }
        4 => {
            let mut datagram = seen(input, watched)?;
            let cut = usize::from(input.u16().ok()?);
            datagram.truncate(cut);
            let more = if operation & 128 == 0 {
                literal(input)?
            } else {
                seen(input, watched)?
            };
            datagram.extend(more);
            datagram
        }
        5 => {
            watched.lock().unwrap().losses = operation / 32;
            return Some(());
        }
        6 => {
            send(pair, operation & 16 != 0);
            return Some(());
        }
        _ => {
            let time = [1, 5, 25, 4000][usize::from(operation / 64)];
            // The connection must not end for want of anything to say.
            let time =
                Duration::from_millis(time).min(QUIET.saturating_sub(pair.network.elapsed()));
            let (client, server) = pair.turns(time);
            assert!(client < 1000 && server < 1000, "{client} {server}");
            return Some(());
        }
    };
    let to = [CLIENT, SERVER][usize::from(operation & 8 != 0)];
    let mut source = pair.network.address(CLIENT + SERVER - to);
    if operation & 16 != 0 {
        source.set_port(source.port() ^ 1);
    }
    let destination = pair.network.address(to);
    let route = Route {
        source,
        destination,
    };
    if !datagram.is_empty() {
        let ecn = Ecn::from_bits(operation >> 5);
        pair.network.inject(route, ecn, &datagram);
    }
    // Often more follows at the same time.
    if operation & 64 != 0 {
        pair.run(Duration::ZERO);
    }
    Some(())
}

fn literal(input: &mut Reader<'_>) -> Option<Vec<u8>> {
    let length = usize::from(input.u16().ok()? % 1500);
    let bytes = input.bytes(length.min(input.remaining())).ok()?;
    Some(bytes.to_vec())
}

fn seen(input: &mut Reader<'_>, watched: &Mutex<Watched>) -> Option<Vec<u8>> {
    let back = usize::from(input.u8().ok()?);
    let datagrams = &watched.lock().unwrap().datagrams;
    let last = datagrams.len().checked_sub(1)?;
    Some(datagrams[last - back.min(last)].clone())
}

/// Either end says something, if it can.
fn send(pair: &mut Ends, is_server: bool) {
    if is_server {
        if let Some((server, _)) = pair.server.connection(0)
            && let Some(id) = server.open(Direction::Unidirectional)
        {
            server.stream_send(id, &[1; 700]).unwrap();
        }
    } else if let Some(id) = pair.client.connection.open(Direction::Unidirectional) {
        pair.client.connection.stream_send(id, &[2; 700]).unwrap();
    }
}

/// An established connection goes on, whatever was done on its path.
fn transfers(pair: &mut Ends) {
    const SIZE: usize = 5000;
    let client = &mut pair.client.connection;
    assert!(!client.is_closing(), "{:?}", pair.client.application);
    let Some(id) = client.open(Direction::Bidirectional) else {
        panic!("no stream: {:?}", pair.client.application);
    };
    assert_eq!(client.stream_send(id, &[3; SIZE]), Ok(SIZE));
    client.finish(id).unwrap();
    // As long as it takes after losses, and less than the idle timeout.
    pair.run(Duration::from_secs(15));
    let (server, log) = pair.server.connection(0).unwrap();
    let mut buffer = [0; SIZE + 1];
    let read = server.stream_read(id, &mut buffer);
    assert!(
        read.is_ok_and(|read| read.length == SIZE && read.fin),
        "{read:?} {log:?}"
    );
    assert_eq!(server.stream_send(id, b"reply"), Ok(5));
    pair.run(Duration::from_secs(5));
    let read = pair.client.connection.stream_read(id, &mut buffer);
    assert!(read.is_ok_and(|read| read.length == 5), "{read:?}");
}
