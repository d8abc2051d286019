//! Steps of TLS that are worked out elsewhere, for as long as it takes (A20).
#![expect(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::thread;
use std::time::{Duration, Instant};

use quic_transport::tls::{HandshakeJob, KeyExchange};
use quic_transport::{
    ApiError, Application, CloseReason, Config, Connection, Direction, Event, Versions,
};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link};

type Lent = Pair<Client<Lender>, Server<Lender>>;

const DELAY: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

/// Takes the steps of its connection, and keeps them.
#[derive(Debug, Default)]
struct Lender {
    jobs: Vec<HandshakeJob>,
    events: Vec<Event>,
}

impl Application for Lender {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while let Some(event) = connection.next_event() {
            if event == Event::HandshakeJob {
                self.jobs.extend(connection.take_handshake_job());
            }
            self.events.push(event);
        }
    }
}

fn lending(client: bool, server: bool) -> Settings {
    let config = |lends_handshake| Config {
        lends_handshake,
        ..Config::default()
    };
    Settings {
        client: config(client),
        server: config(server),
        ..Settings::default()
    }
}

/// Works a step out on a thread of its own.
fn work_out(mut job: HandshakeJob) -> HandshakeJob {
    let worker = thread::spawn(move || {
        job.run();
        job
    });
    worker.join().unwrap()
}

/// Gives back what either end has lent out.
fn give_back(pair: &mut Lent) {
    let now = pair.network.now();
    for job in std::mem::take(&mut pair.client.application.jobs) {
        let returned = pair
            .client
            .connection
            .return_handshake_job(work_out(job), now);
        returned.unwrap();
    }
    if let Some((connection, application)) = pair.server.connection(0) {
        for job in std::mem::take(&mut application.jobs) {
            connection.return_handshake_job(work_out(job), now).unwrap();
        }
    }
}

fn is_connected(pair: &mut Lent) -> bool {
    let server = pair.server.connection(0);
    let is_done = server.is_some_and(|(server, _)| !server.is_handshaking());
    is_done && !pair.client.connection.is_handshaking()
}

/// Lets each step take `time`, and returns how many rounds it took.
fn connect(pair: &mut Lent, time: Duration) -> u32 {
    for round in 0..100 {
        if is_connected(pair) {
            return round;
        }
        pair.run(time);
        give_back(pair);
    }
    panic!("no handshake: {pair:?}");
}

/// A server whose certificate takes five seconds: the client's probes are acknowledged meanwhile, nobody gives up, and
/// what was sent early isn't lost.
#[test]
fn a_slow_server_goes_on_with_everything_else() {
    let mut pair = Lent::new(&lending(false, true), Link::delayed(DELAY));
    pair.run(DELAY * 2);
    let (server, application) = pair.server.connection(0).unwrap();
    assert_eq!(application.jobs.len(), 1);
    assert!(server.is_handshaking() && server.alpn().is_none());
    pair.run(5 * SECOND);
    let client = &pair.client.connection;
    assert!(client.is_handshaking() && !client.is_closing());
    assert!(client.stats().acks_received > 0);
    let (server, _) = pair.server.connection(0).unwrap();
    assert!(server.stats().acks_sent > 1);
    assert_eq!(connect(&mut pair, SECOND), 2);
    let id = pair
        .client
        .connection
        .open(Direction::Bidirectional)
        .unwrap();
    pair.client.connection.stream_send(id, b"hello").unwrap();
    pair.run(SECOND);
    let (server, _) = pair.server.connection(0).unwrap();
    assert_eq!(server.fill(id).unwrap().data, b"hello");
}

/// A client whose verifier is slow, and both: the steps are few, and each side's go on from what has arrived meanwhile.
#[test]
fn steps_of_either_end_may_be_lent() {
    for (client, server) in [(true, false), (true, true), (false, true)] {
        for groups in [&KeyExchange::ALL[..], &[KeyExchange::X25519]] {
            let settings = Settings {
                key_exchange: groups.to_vec(),
                versions: Versions::new(&[quic_transport::Version::V2]).unwrap(),
                ..lending(client, server)
            };
            let mut pair = Lent::new(&settings, Link::delayed(DELAY));
            assert!(connect(&mut pair, SECOND / 2) < 10);
            let connected = |events: &[Event]| events.contains(&Event::Connected);
            pair.run(SECOND);
            assert!(connected(&pair.client.application.events));
            let (_, application) = pair.server.connection(0).unwrap();
            assert!(connected(&application.events));
        }
    }
}

#[test]
fn lent_steps_survive_a_bad_network() {
    for seed in 0..40 {
        let settings = Settings {
            seed,
            key_exchange: KeyExchange::ALL.to_vec(),
            ..lending(true, true)
        };
        let link = Link {
            loss: Chance::percent(15),
            duplicate: Chance::percent(20),
            reorder: Chance::percent(30),
            reorder_delay: DELAY,
            ..Link::delayed(DELAY)
        };
        let mut pair = Lent::new(&settings, link);
        connect(&mut pair, SECOND / 5);
    }
}

/// A step that never comes back ends with the time that a handshake may take.
#[test]
fn a_step_that_is_kept_ends_in_a_timeout() {
    let mut settings = lending(false, true);
    settings.client.handshake_timeout = 5 * SECOND;
    settings.client.idle_timeout = 60 * SECOND;
    settings.server.handshake_timeout = 5 * SECOND;
    let mut pair = Lent::new(&settings, Link::delayed(DELAY));
    pair.run(20 * SECOND);
    let ended = Event::Closed(CloseReason::HandshakeTimeout);
    assert!(pair.client.application.events.contains(&ended));
    assert!(pair.server.endpoint.is_empty());
}

/// What a step finds wrong closes the connection, when it is given back; one of another connection is refused, and so is
/// one that comes too late.
#[test]
fn errors_come_with_the_step() {
    let mut pair = Lent::new(&lending(true, false), Link::delayed(DELAY));
    let mut other = Lent::new(&lending(true, false), Link::delayed(DELAY));
    pair.run(SECOND / 10);
    other.run(SECOND / 10);
    let now = pair.network.now();
    let foreign = other.client.application.jobs.pop().unwrap();
    let client = &mut pair.client.connection;
    let refused = client.return_handshake_job(foreign, now);
    assert_eq!(refused, Err(ApiError::OtherConnection));
    client.close(0, b"");
    let own = pair.client.application.jobs.pop().unwrap();
    let refused = client.return_handshake_job(own, now);
    assert_eq!(refused, Err(ApiError::Closed));

    // A client that trusts somebody else.
    let settings = Settings {
        certificate: test_fixture::certificates::p256(&["localhost"]),
        ..lending(true, false)
    };
    let mut pair = Lent::new(&settings, Link::delayed(DELAY));
    pair.server = Server::new(&Settings::default(), pair.network.now());
    for _ in 0..5 {
        pair.run(SECOND / 2);
        if !pair.client.connection.is_closing() {
            give_back(&mut pair);
        }
    }
    let events = &pair.client.application.events;
    let is_alert = |event: &Event| matches!(event, Event::Closed(CloseReason::Local(error)) if error.code.alert().is_some());
    assert!(events.iter().any(is_alert), "{events:?}");
}

/// Without lending nothing is lent.
#[test]
fn nothing_is_lent_unasked() {
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&Settings::default(), Link::default());
    pair.handshake();
    assert!(pair.client.connection.take_handshake_job().is_none());
    assert!(
        !pair
            .client
            .application
            .events
            .contains(&Event::HandshakeJob)
    );
}
