//! What a scripted peer keeps for each level: keys, numbers, what to acknowledge, and TLS bytes both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::frames;
use super::protection::Protection;
use super::seen::SeenFrame;

/// TLS bytes in one packet, which leaves room for an ACK frame in 1200 bytes.
const CRYPTO_LENGTH: usize = 1000;

/// The most ranges in an ACK frame.
const ACK_RANGES: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Space {
    pub(super) protection: Option<Protection>,
    pub(super) next_number: u64,
    pub(super) received: BTreeSet<u64>,
    pub(super) owes_ack: bool,
    crypto_in: BTreeMap<u64, Vec<u8>>,
    crypto_read: u64,
    crypto_out: Vec<u8>,
    crypto_sent: usize,
}

impl Space {
    /// The number that the next packet from the other end is likely to have.
    pub(super) fn expected(&self) -> u64 {
        self.received.last().map_or(0, |largest| largest + 1)
    }

    pub(super) fn on_packet(&mut self, number: u64, frames: &[SeenFrame]) {
        self.received.insert(number);
        self.owes_ack |= frames.iter().any(SeenFrame::is_ack_eliciting);
        for frame in frames {
            if let SeenFrame::Crypto { offset, data } = frame {
                let end = offset + u64::try_from(data.len()).unwrap();
                if end > self.crypto_read {
                    self.crypto_in.insert(*offset, data.clone());
                }
            }
        }
    }

    /// The next TLS bytes in order, if they have arrived.
    pub(super) fn read_crypto(&mut self) -> Option<Vec<u8>> {
        let first = self.crypto_in.first_entry();
        let first = first.filter(|first| *first.key() <= self.crypto_read)?;
        let (offset, mut data) = first.remove_entry();
        let known = usize::try_from(self.crypto_read - offset).unwrap();
        let fresh = data.split_off(known.min(data.len()));
        self.crypto_read += u64::try_from(fresh.len()).unwrap();
        Some(fresh)
    }

    pub(super) fn write_crypto(&mut self, bytes: &[u8]) {
        self.crypto_out.extend(bytes);
    }

    /// Everything from TLS so far, whether sent or not.
    pub(super) fn all_crypto(&self) -> &[u8] {
        &self.crypto_out
    }

    /// Sends all TLS bytes from the start again, after a Retry.
    pub(super) const fn rewind(&mut self) {
        self.crypto_sent = 0;
    }

    /// Takes it that the script sends the TLS bytes itself.
    pub(super) const fn skip_crypto(&mut self) {
        self.crypto_sent = self.crypto_out.len();
    }

    /// The frames that are due: an ACK if one is owed, and TLS bytes.
    pub(super) fn take_due(&mut self) -> Vec<u8> {
        let mut due = Vec::new();
        if std::mem::take(&mut self.owes_ack) {
            due.extend(frames::ack(&self.ranges()));
        }
        let rest = &self.crypto_out[self.crypto_sent..];
        let data = &rest[..rest.len().min(CRYPTO_LENGTH)];
        if !data.is_empty() {
            let offset = u64::try_from(self.crypto_sent).unwrap();
            due.extend(frames::crypto(offset, data));
            self.crypto_sent += data.len();
        }
        due
    }

    /// What has been received, highest first.
    fn ranges(&self) -> Vec<RangeInclusive<u64>> {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for number in self.received.iter().rev() {
            let is_full = ranges.len() == ACK_RANGES;
            match ranges.last_mut() {
                Some(last) if *last.start() == number + 1 => *last = *number..=*last.end(),
                Some(_) if is_full => break,
                _ => ranges.push(*number..=*number),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::Space;
    use crate::scripted::{SeenFrame, frames};

    #[test]
    fn tls_bytes_come_out_in_order_and_once() {
        let crypto = |offset, data: &[u8]| SeenFrame::Crypto {
            offset,
            data: data.to_vec(),
        };
        let mut space = Space::default();
        space.on_packet(0, &[crypto(3, b"def")]);
        assert_eq!(space.read_crypto(), None);
        space.on_packet(1, &[crypto(0, b"abcd")]);
        assert_eq!(space.read_crypto().as_deref(), Some(&b"abcd"[..]));
        assert_eq!(space.read_crypto().as_deref(), Some(&b"ef"[..]));
        space.on_packet(2, &[crypto(0, b"abc")]);
        assert_eq!(space.read_crypto(), None);
    }

    #[test]
    fn an_ack_tells_all_that_arrived() {
        let mut space = Space::default();
        for number in [0, 1, 5, 3] {
            space.on_packet(number, &[SeenFrame::Ping]);
        }
        assert_eq!(space.take_due(), frames::ack(&[5..=5, 3..=3, 0..=1]));
        assert!(space.take_due().is_empty());
    }
}
