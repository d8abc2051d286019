//! A store shared by servers that gives back something else than it was given.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quic_common::Reader;
use quic_transport::tls::{ServerSessions, SessionCache};

use crate::visit::{self, Visit};

/// Changes a session as it is taken out.
#[derive(Debug)]
struct Faulty {
    sessions: SessionCache,
    change: Mutex<Change>,
}

#[derive(Debug)]
enum Change {
    /// Turns bits over: at which place, and which.
    Flip(Vec<(usize, u8)>),
    /// Gives these bytes.
    Replace(Vec<u8>),
}

impl ServerSessions for Faulty {
    fn put(&self, identity: Vec<u8>, session: Vec<u8>) -> bool {
        self.sessions.put(identity, session)
    }

    fn take(&self, identity: &[u8]) -> Option<Vec<u8>> {
        let mut session = self.sessions.take(identity)?;
        match &*self.change.lock().unwrap() {
            Change::Flip(changes) => {
                for (place, flip) in changes {
                    let place = place % session.len();
                    session[place] ^= flip;
                }
            }
            Change::Replace(bytes) => session.clone_from(bytes),
        }
        Some(session)
    }
}

/// Lets a client come back, and the store give what the bytes say for its session.
///
/// The handshake completes, resumed or not; or the connection is closed, since the secrets differ. An unchanged session
/// is resumed, and its early data taken.
pub fn server_sessions(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Ok(choice) = input.u8() else {
        return;
    };
    let change = if choice & 1 == 0 {
        Change::Flip(std::iter::from_fn(|| flip(&mut input)).collect())
    } else {
        Change::Replace(input.rest().to_vec())
    };
    let is_sound = matches!(&change, Change::Flip(flips) if flips.is_empty());
    let sessions = Arc::new(Faulty {
        sessions: SessionCache::new(8),
        change: Mutex::new(Change::Flip(Vec::new())),
    });
    let shared = Arc::<Faulty>::clone(&sessions);
    let mut visit = Visit::serving(&visit::settings(), |tls| tls.sessions(shared));
    *sessions.change.lock().unwrap() = change;
    visit.come_back();
    visit.request(500, 500);
    visit.pair.run(Duration::from_secs(5));
    let connection = visit.client();
    if connection.is_closed() || connection.is_closing() {
        assert!(!is_sound);
    } else {
        assert!(!connection.is_handshaking());
        assert!(!is_sound || connection.is_resumed() && connection.is_early_data_accepted());
        let application = &visit.pair.client.application;
        assert!(application.complete == 1 && !application.is_wrong);
    }
}

fn flip(input: &mut Reader<'_>) -> Option<(usize, u8)> {
    let place = input.u16().ok()?;
    Some((usize::from(place), input.u8().ok()?))
}
