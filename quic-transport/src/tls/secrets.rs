//! How the traffic secrets leave rustls: a key log of each connection's own, chained to the user's.
//!
//! This is the one piece of shared state: rustls calls the log while we call rustls. It is touched a few times in a
//! handshake and never for a packet ([RFC 8446, section 7.1](https://www.rfc-editor.org/rfc/rfc8446#section-7.1)).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::KeyLog;

use super::schedule::Secret;

/// Catches the secrets of one connection.
pub(super) struct SecretLog {
    secrets: Mutex<Secrets>,
    user: Arc<dyn KeyLog>,
}

#[derive(Default)]
struct Secrets {
    /// The client's, for 0-RTT packets.
    early: Option<Secret>,
    handshake: Pair,
    one_rtt: Pair,
    exporter: Option<Secret>,
}

/// A level's secrets, as they come.
#[derive(Default)]
struct Pair {
    client: Option<Secret>,
    server: Option<Secret>,
}

impl SecretLog {
    /// Catches secrets and passes them on to `user`.
    pub(super) fn new(user: Arc<dyn KeyLog>) -> Self {
        Self {
            secrets: Mutex::default(),
            user,
        }
    }

    /// Moves out the secret of 0-RTT packets.
    pub(super) fn take_early(&self) -> Option<Secret> {
        self.lock().early.take()
    }

    /// Moves out the handshake secrets of the client and the server.
    pub(super) fn take_handshake(&self) -> Option<(Secret, Secret)> {
        self.lock().handshake.take()
    }

    /// Moves out the first 1-RTT secrets of the client and the server.
    pub(super) fn take_one_rtt(&self) -> Option<(Secret, Secret)> {
        self.lock().one_rtt.take()
    }

    /// Moves out the secret that others are exported from, once the handshake is complete.
    pub(super) fn take_exporter(&self) -> Option<Secret> {
        self.lock().exporter.take()
    }

    fn lock(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pair {
    fn take(&mut self) -> Option<(Secret, Secret)> {
        Some((self.client.take()?, self.server.take()?))
    }
}

impl KeyLog for SecretLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut secrets = self.lock();
        let slot = match label {
            "CLIENT_EARLY_TRAFFIC_SECRET" => Some(&mut secrets.early),
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut secrets.handshake.client),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut secrets.handshake.server),
            "CLIENT_TRAFFIC_SECRET_0" => Some(&mut secrets.one_rtt.client),
            "SERVER_TRAFFIC_SECRET_0" => Some(&mut secrets.one_rtt.server),
            "EXPORTER_SECRET" => Some(&mut secrets.exporter),
            _ => None,
        };
        if let Some(slot) = slot {
            *slot = Secret::new(secret);
        }
        drop(secrets);
        if self.user.will_log(label) {
            self.user.log(label, client_random, secret);
        }
    }
}

impl std::fmt::Debug for SecretLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretLog").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use rustls::{KeyLog, NoKeyLog};

    use super::SecretLog;

    #[derive(Debug, Default)]
    struct Lines(Mutex<Vec<String>>);

    impl KeyLog for Lines {
        fn log(&self, label: &str, _client_random: &[u8], _secret: &[u8]) {
            self.0.lock().unwrap().push(label.to_owned());
        }
    }

    #[test]
    fn a_level_is_taken_once_and_whole() {
        let log = SecretLog::new(Arc::new(NoKeyLog));
        log.log("CLIENT_HANDSHAKE_TRAFFIC_SECRET", &[], &[1; 32]);
        assert!(log.take_one_rtt().is_none());
        log.log("CLIENT_TRAFFIC_SECRET_0", &[], &[3; 48]);
        log.log("SERVER_TRAFFIC_SECRET_0", &[], &[4; 48]);
        let (client, server) = log.take_one_rtt().unwrap();
        assert_eq!(client.as_slice(), [3; 48]);
        assert_eq!(server.as_slice(), [4; 48]);
        assert!(log.take_one_rtt().is_none());
    }

    #[test]
    fn the_users_log_sees_every_secret() {
        let lines = Arc::new(Lines::default());
        let log = SecretLog::new(Arc::<Lines>::clone(&lines));
        log.log("EXPORTER_SECRET", &[], &[1; 32]);
        log.log("SERVER_TRAFFIC_SECRET_0", &[], &[1; 32]);
        let lines = lines.0.lock().unwrap().clone();
        assert_eq!(lines, ["EXPORTER_SECRET", "SERVER_TRAFFIC_SECRET_0"]);
    }
}
