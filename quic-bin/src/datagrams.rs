//! Datagrams that a client sends beside its requests, to see what becomes of them
//! ([RFC 9221](https://www.rfc-editor.org/rfc/rfc9221)).
//!
//! Nothing is said about them but what the transport tells: how many packets were acknowledged or lost, and how many
//! datagrams came back, if the server is one that sends them back. Each begins with its number.

use std::time::{Duration, Instant};

use quic_transport::{Connection, DatagramError, DatagramEvent, DatagramSettings};

use crate::failure::Failure;

/// Every size up to what the path carries is of use; this one fits into any path.
const LONGEST: usize = 1000;

/// How long a datagram may take to come back, after the last one that did or whose fate was told.
const PATIENCE: Duration = Duration::from_millis(200);

/// The settings of a connection that sends datagrams and wants to know what became of them.
#[must_use]
pub fn settings() -> DatagramSettings {
    DatagramSettings {
        max_frame_size: u16::MAX,
        outcomes: true,
        ..DatagramSettings::default()
    }
}

/// So many datagrams, and what has become of them.
#[derive(Debug)]
pub struct Volley {
    wanted: u32,
    sent: u32,
    acked: u32,
    lost: u32,
    returned: u32,
    last_news: Option<Instant>,
}

impl Volley {
    /// Nothing is sent yet.
    #[must_use]
    pub const fn new(wanted: u32) -> Self {
        Self {
            wanted,
            sent: 0,
            acked: 0,
            lost: 0,
            returned: 0,
            last_news: None,
        }
    }

    /// Sends as many as there is room for, once the handshake is complete.
    ///
    /// # Errors
    ///
    /// When the server takes no datagrams.
    pub fn process(&mut self, connection: &mut Connection, now: Instant) -> Result<(), Failure> {
        if connection.max_datagram_length().is_none() && self.sent < self.wanted {
            // Before the handshake is complete, nobody can know.
            return if connection.is_handshaking() {
                Ok(())
            } else {
                Err(Failure::new("the server takes no datagrams"))
            };
        }
        while self.sent < self.wanted {
            let most = connection.max_datagram_length().unwrap_or_default();
            let mut data = [0; LONGEST];
            let number = self.sent.to_be_bytes();
            for (byte, value) in data.iter_mut().zip(number) {
                *byte = value;
            }
            let length = length_of(self.sent).min(most);
            match connection.send_datagram(data.get(..length).unwrap_or_default()) {
                Ok(_id) => self.sent += 1,
                Err(DatagramError::Full) => break,
                Err(error) => return Err(Failure::new(format!("datagram: {error}"))),
            }
            self.last_news = Some(now);
        }
        Ok(())
    }

    /// Something has become of them.
    pub fn on_event(&mut self, connection: &mut Connection, event: DatagramEvent, now: Instant) {
        match event {
            DatagramEvent::Readable => {
                while connection.receive_datagram().is_some() {
                    self.returned += 1;
                }
            }
            DatagramEvent::Acked(_) => self.acked += 1,
            DatagramEvent::Lost(_) | DatagramEvent::Dropped(_) => self.lost += 1,
            _ => return,
        }
        self.last_news = Some(now);
    }

    /// Whether all that can be known is known.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        self.returned >= self.wanted || self.wait(now) == Some(Duration::ZERO)
    }

    /// How long it may take until everything is known, once the fate of all has been told.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let is_told = self.acked.saturating_add(self.lost) >= self.wanted;
        let patience = self.last_news? + PATIENCE;
        is_told.then(|| patience.saturating_duration_since(now))
    }

    /// What became of them, in a line.
    #[must_use]
    pub fn note(&self) -> String {
        let Self {
            sent,
            acked,
            lost,
            returned,
            ..
        } = self;
        format!("datagrams: {sent} sent, {acked} acknowledged, {lost} lost, {returned} came back")
    }

    /// Whether they could be sent at all.
    ///
    /// # Errors
    ///
    /// When none was acknowledged.
    pub fn result(&self) -> Result<(), Failure> {
        if self.acked == 0 && self.returned == 0 {
            return Err(Failure::new("no datagram was acknowledged"));
        }
        Ok(())
    }
}

/// Small ones and large ones, so that some share a packet and some don't.
const fn length_of(number: u32) -> usize {
    match number % 4 {
        0 => LONGEST,
        1 => 4,
        2 => 100,
        _ => 600,
    }
}
