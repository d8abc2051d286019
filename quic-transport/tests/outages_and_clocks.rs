//! What happens to time: peers that stop half way, paths that are gone for a while, clocks that jump.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::{Duration, Instant};

use quic_common::BatchBuffer;
use quic_transport::{Application, Config, RetryPolicy};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Arrivals, Link, Network, Party, Transmit, Verdict};
use test_fixture::{Bulk, CLIENT, Pair, SERVER, network};

const SECOND: Duration = Duration::from_secs(1);

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn drop_all(network: &mut Network) {
    for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
        network.set_filter(from, to, Box::new(|_, _| Verdict::Drop));
    }
}

/// A handshake that isn't completed ends: after 10 seconds if anyone may have begun it, and after 30 if it was
/// the address' owner.
#[test]
fn handshakes_that_stop_half_way_are_given_up() {
    for (retry, passed, patience) in [(RetryPolicy::Never, 1, 10), (RetryPolicy::Always, 2, 30)] {
        let settings = Settings {
            retry,
            ..Settings::default()
        };
        let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings, link());
        let filter = move |_: &mut Vec<u8>, number| {
            if number < passed {
                Verdict::Pass
            } else {
                Verdict::Drop
            }
        };
        pair.network.set_filter(CLIENT, SERVER, Box::new(filter));
        pair.run(SECOND * (patience - 1));
        assert_eq!(pair.server.endpoint.len(), 1, "{retry:?}");
        pair.run(SECOND * 2);
        assert_eq!(pair.server.endpoint.len(), 0, "{retry:?}");
        // The server is the one that hears nothing: what it sent was not answered for ever.
        let sent = pair.network.passed(SERVER, CLIENT).sent_bytes;
        assert!(sent < 40_000, "{sent}");
    }
}

/// When a path comes back, the next probe finds it: that is within a backed-off PTO, which is no longer than the
/// outage was.
#[test]
fn a_path_that_comes_back_is_used_within_a_backed_off_pto() {
    let mut settings = Settings::default();
    // The next probe may come after as long as the outage was.
    settings.client.idle_timeout = SECOND * 60;
    settings.server.idle_timeout = SECOND * 60;
    for seconds in [5, 10, 20] {
        for upload in [0, 1] {
            let mut pair = Bulks::new(&settings, link());
            pair.handshake();
            let bytes = 1 << 40;
            let (down, up) = if upload == 0 { (bytes, 0) } else { (1, bytes) };
            pair.client.request(down, up).unwrap();
            pair.network.set_links(Link {
                bandwidth: Some(50_000_000),
                queue: 500_000,
                ..link()
            });
            pair.run(SECOND);
            let received = |pair: &mut Bulks| {
                pair.client.application.received + pair.server.connection(0).unwrap().1.received
            };
            drop_all(&mut pair.network);
            let outage = SECOND * seconds;
            pair.run(outage);
            let before = received(&mut pair);
            pair.network.clear_filter(CLIENT, SERVER);
            pair.network.clear_filter(SERVER, CLIENT);
            let healed = pair.network.now();
            pair.run_until(|pair| received(pair) > before + 100_000);
            let waited = pair.network.now() - healed;
            assert!(waited <= outage + SECOND, "{outage:?}: {waited:?}");
        }
    }
}

/// A party whose clock is wrong.
struct Skewed<P> {
    party: P,
    ahead: Duration,
}

impl<P: Party> Party for Skewed<P> {
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant) {
        self.party.receive(datagrams, now + self.ahead);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Transmit {
        self.party.transmit(now + self.ahead, buffer)
    }
}

/// Runs a transfer during which the clock of one end is set ahead by each of `skews`, in seconds, for a while each;
/// returns the pair's parts.
fn with_skews<A: Application + Default>(
    settings: &Settings,
    skews: &[u64],
    is_client: bool,
    mut begin: impl FnMut(&mut Client<A>),
) -> (Skewed<Client<A>>, Skewed<Server<A>>) {
    let mut network = network(settings, link());
    let now = network.now();
    let first = SECOND * u32::try_from(*skews.first().unwrap()).unwrap();
    let start = |is_skewed| if is_skewed { first } else { Duration::ZERO };
    let mut client = Skewed {
        ahead: start(is_client),
        party: Client::new(settings, network.address(SERVER), now + start(is_client)),
    };
    let mut server = Skewed {
        ahead: start(!is_client),
        party: Server::new(settings, now + start(!is_client)),
    };
    network.run(&mut [&mut client, &mut server], SECOND);
    begin(&mut client.party);
    for skew in skews {
        let ahead = Duration::from_secs(*skew);
        if is_client {
            client.ahead = ahead;
        } else {
            server.ahead = ahead;
        }
        network.run(&mut [&mut client, &mut server], SECOND * 2);
    }
    (client, server)
}

/// A clock that goes back, or jumps ahead by an hour or a year, neither panics nor spins (the network would tell);
/// without an idle timeout the transfer goes on.
#[test]
fn clocks_that_jump_do_no_harm() {
    let endless = Config {
        idle_timeout: Duration::ZERO,
        ..Config::default()
    };
    let settings = Settings {
        client: endless.clone(),
        server: endless,
        ..Settings::default()
    };
    let year = 365 * 86_400;
    for skews in [
        &[100, 99, 90, 0, 50][..],
        &[0, 3600, 3600, 0, 7200],
        &[0, year, year + 1, 10, 2 * year],
    ] {
        for is_client in [true, false] {
            let (client, mut server) = with_skews::<Bulk>(
                &settings,
                skews,
                is_client,
                |Client {
                     connection,
                     application,
                 }| {
                    application
                        .request(connection, 3_000_000, 3_000_000)
                        .unwrap();
                },
            );
            let application = &client.party.application;
            assert!(!application.is_wrong);
            assert_eq!(application.closed, None, "{skews:?}");
            let (_, peer) = server.party.connection(0).unwrap();
            assert!(!peer.is_wrong);
            assert!(
                application.received > 1_000_000,
                "{skews:?}: {}",
                application.received
            );
        }
    }
}

/// With an idle timeout a jump ahead is a long silence, and ends the connection as one.
#[test]
fn a_jump_beyond_the_idle_timeout_is_a_silence() {
    for is_client in [true, false] {
        let (client, server) =
            with_skews::<Log>(&Settings::default(), &[0, 3600, 3600], is_client, |_| {});
        if is_client {
            assert!(client.party.connection.is_closed());
        } else {
            assert_eq!(server.party.endpoint.len(), 0);
        }
    }
}
