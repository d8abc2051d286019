//! How connection IDs are made.

use std::sync::Arc;

use quic_common::{Random, Share};

use super::quic_lb::Routing;
use crate::wire::{ConnectionId, MAX_CID_LENGTH};

/// Nonces tried for each thread until an ID leads to the right one: one in so many threads does.
const DRAWS: u16 = 32;

/// How an endpoint makes its connection IDs.
#[derive(Clone, Debug)]
pub enum CidGenerator {
    /// Random bytes, 1 to 20.
    Random {
        /// How many.
        length: usize,
    },
    /// What a load balancer can route by. With several threads ([`Share`]) enough of the fifth to eighth byte has to
    /// follow from the nonce: without a key that is a server ID of up to 6 bytes.
    Routable(Arc<Routing>),
}

impl CidGenerator {
    /// Bytes of each ID.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Random { length } => *length,
            Self::Routable(routing) => routing.cid_length(),
        }
    }

    /// An ID that leads to the thread of `share`.
    pub(crate) fn draw(&self, share: Share, random: &mut Random) -> ConnectionId {
        match self {
            Self::Random { length } => {
                let mut bytes: [u8; MAX_CID_LENGTH] = random.array();
                share.claim(&mut bytes);
                ConnectionId::prefix(bytes, *length).unwrap_or_default()
            }
            Self::Routable(routing) => {
                let draws = u32::from(share.of()) * u32::from(DRAWS);
                let mut cid = ConnectionId::EMPTY;
                for _ in 0..draws {
                    let nonce: [u8; MAX_CID_LENGTH] = random.array();
                    cid = routing.cid(&nonce).unwrap_or_default();
                    if share.holds(cid.as_slice()) {
                        break;
                    }
                }
                cid
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quic_common::{Random, Share};

    use super::{CidGenerator, Routing};

    #[test]
    fn random_ids_have_their_length_and_thread() {
        let mut random = Random::from_seed([1; 32]);
        for length in 0..=20 {
            let generator = CidGenerator::Random { length };
            let cid = generator.draw(Share::WHOLE, &mut random);
            assert_eq!((cid.len(), generator.length()), (length, length));
        }
        let share = Share::new(3, 5).unwrap();
        let generator = CidGenerator::Random { length: 8 };
        assert!((0..100).all(|_| share.holds(generator.draw(share, &mut random).as_slice())));
    }

    /// Whatever the thread, the load balancer finds the server.
    #[test]
    fn routable_ids_lead_to_server_and_thread() {
        let mut random = Random::from_seed([2; 32]);
        for key in [None, Some(&[9; 16])] {
            for (server, nonce) in [(&b"s"[..], 7), (b"server", 4), (b"id", 14)] {
                let routing = Arc::new(Routing::new(2, server, nonce, key).unwrap());
                let generator = CidGenerator::Routable(Arc::clone(&routing));
                let mut drawn = Vec::new();
                for index in 0..8 {
                    let share = Share::new(index, 8).unwrap();
                    let cid = generator.draw(share, &mut random);
                    assert!(share.holds(cid.as_slice()), "{server:?}");
                    assert_eq!(cid.len(), generator.length());
                    let found = routing.server_id_of(cid.as_slice());
                    assert_eq!(found.as_deref(), Some(server));
                    drawn.push(cid);
                }
                drawn.sort_by(|one, other| one.as_slice().cmp(other.as_slice()));
                drawn.dedup();
                assert_eq!(drawn.len(), 8, "no two are the same");
            }
        }
    }
}
