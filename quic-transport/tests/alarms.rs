//! An application is woken when it asked for it, and not otherwise.

use std::time::{Duration, Instant};

use quic_transport::{Application, Connection, Event};
use test_fixture::Pair;
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::Link;

const SECOND: Duration = Duration::from_secs(1);

/// Asks to be woken after as many seconds as it was woken before.
#[derive(Debug, Default)]
struct Sleeper {
    woken: Vec<Instant>,
}

impl Application for Sleeper {
    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Connected => {
                    connection.set_alarm(Some(now + SECOND * 9));
                    connection.set_alarm(Some(now + SECOND));
                }
                Event::Alarm => {
                    self.woken.push(now);
                    let next = (self.woken.len() < 4).then(|| now + SECOND * 2);
                    connection.set_alarm(next);
                }
                Event::Closed(_) | Event::Stream(_) | Event::Datagram(_) | _ => {}
            }
        }
    }
}

#[test]
fn an_alarm_goes_off_once_and_on_time() {
    let link = Link::delayed(Duration::from_millis(10));
    let mut pair = Pair::<Client<Sleeper>, Server<Sleeper>>::new(&Settings::default(), link);
    pair.handshake();
    let start = pair.network.now();
    let (client, server) = pair.turns(SECOND * 20);
    assert!(client < 40 && server < 40, "{client} and {server} turns");
    let server = pair
        .server
        .connection(0)
        .map(|(_, sleeper)| sleeper.woken.clone());
    for woken in [Some(pair.client.application.woken.clone()), server] {
        let woken = woken.unwrap_or_default();
        assert_eq!(woken.len(), 4);
        assert!(woken[0] - start <= SECOND);
        assert!(woken.windows(2).all(|two| two[1] - two[0] == SECOND * 2));
    }
}
