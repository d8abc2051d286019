//! Transfers over networks drawn from a seed, good ones and terrible ones. A failure prints the seed that repeats it.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Random;
use quic_transport::{CloseReason, Stats};
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link, Passed};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

/// Any path, whose faults are each up to `worst` percent.
fn link(random: &mut Random, worst: u32) -> Link {
    let mut up_to = |most: u32| u32::try_from(random.below(u64::from(most) + 1)).unwrap();
    Link {
        delay: Duration::from_micros(up_to(100_000).into()),
        bandwidth: (up_to(3) > 0).then(|| 500_000 + 1000 * u64::from(up_to(100_000))),
        queue: 10_000 + usize::try_from(up_to(300_000)).unwrap(),
        largest: 1200 + usize::try_from(up_to(300)).unwrap(),
        loss: Chance::percent(up_to(worst)),
        reorder: Chance::percent(up_to(worst)),
        reorder_delay: Duration::from_micros(up_to(50_000).into()),
        duplicate: Chance::percent(up_to(worst)),
        corrupt: Chance::percent(up_to(worst)),
        mark: Chance::percent(up_to(worst)),
        bleach: up_to(1) == 0,
        ..Link::default()
    }
}

struct Outcome {
    is_complete: bool,
    closed: Option<CloseReason>,
    is_wrong: bool,
    stats: Stats,
    passed: [Passed; 2],
}

/// Moves `bytes` each way over a network that follows from `seed`; stops when all is there, or the client gives up.
fn transfer(seed: u8, worst: u32, bytes: u64) -> Outcome {
    let settings = Settings {
        seed,
        ..Settings::default()
    };
    let mut random = Random::from_seed([seed; 32]);
    let there = link(&mut random, worst);
    let mut pair = Bulks::new(&settings, there);
    pair.network
        .set_link(SERVER, CLIENT, link(&mut random, worst));
    let mut is_asked = false;
    pair.run_until(|pair| {
        if !is_asked && pair.client.application.is_connected {
            is_asked = true;
            pair.client.request(bytes, bytes).unwrap();
        }
        let application = &pair.client.application;
        application.complete == 1 || application.closed.is_some()
    });
    let server = pair.server.connection(0);
    let is_server_wrong = server.is_some_and(|(_, application)| application.is_wrong);
    let Client {
        connection,
        application,
    } = pair.client;
    Outcome {
        is_complete: application.complete == 1,
        closed: application.closed,
        is_wrong: application.is_wrong || is_server_wrong,
        stats: connection.stats(),
        passed: [
            pair.network.passed(CLIENT, SERVER),
            pair.network.passed(SERVER, CLIENT),
        ],
    }
}

#[test]
fn everything_arrives_over_networks_that_are_not_terrible() {
    for seed in 0..100 {
        let outcome = transfer(seed, 5, 100_000);
        assert!(
            outcome.is_complete && !outcome.is_wrong,
            "seed {seed}: {:?}",
            outcome.closed
        );
    }
}

/// At worst the connection ends by a timeout of either end; nothing that arrives is ever wrong.
#[test]
fn terrible_networks_deliver_what_is_right_or_time_out() {
    let mut complete = 0;
    for seed in 100..200 {
        let outcome = transfer(seed, 50, 20_000);
        assert!(!outcome.is_wrong, "seed {seed}");
        let is_patient = matches!(
            outcome.closed,
            None | Some(
                CloseReason::IdleTimeout
                    | CloseReason::HandshakeTimeout
                    | CloseReason::StatelessReset
            )
        );
        assert!(is_patient, "seed {seed}: {:?}", outcome.closed);
        complete += u32::from(outcome.is_complete);
    }
    assert!(complete > 50, "{complete} of 100");
}

#[test]
fn a_seed_repeats_a_run() {
    for seed in [3, 7] {
        let [first, second] = [(); 2].map(|()| transfer(seed, 10, 300_000));
        assert_eq!(first.stats, second.stats);
        assert_eq!(first.passed, second.passed);
    }
}

/// Duplication, reordering and corruption from 1 to 50 percent, each alone and all together.
#[test]
fn single_faults_up_to_half_of_all_datagrams() {
    for percent in [1, 2, 5, 10, 20, 35, 50] {
        let chance = Chance::percent(percent);
        let plain = Link::delayed(Duration::from_millis(10));
        let late = Link {
            reorder: chance,
            reorder_delay: Duration::from_millis(15),
            ..plain
        };
        let links = [
            (
                Link {
                    duplicate: chance,
                    ..plain
                },
                true,
            ),
            (late, true),
            (
                Link {
                    corrupt: chance,
                    ..plain
                },
                percent <= 20,
            ),
            (
                Link {
                    duplicate: chance,
                    corrupt: chance,
                    ..late
                },
                percent <= 20,
            ),
        ];
        for (link, has_to_complete) in links {
            let mut pair = Bulks::new(&Settings::default(), link);
            let mut is_asked = false;
            pair.run_until(|pair| {
                if !is_asked && pair.client.application.is_connected {
                    is_asked = true;
                    pair.client.request(50_000, 50_000).unwrap();
                }
                let application = &pair.client.application;
                application.complete == 1 || application.closed.is_some()
            });
            let application = &pair.client.application;
            assert!(!application.is_wrong, "{link:?}");
            let is_complete = application.complete == 1;
            assert!(is_complete || !has_to_complete, "{link:?}");
        }
    }
}
