//! Threads that share an address, and which of them a connection belongs to.
//!
//! Every connection ID leads to one of the threads: four of its bytes, as a number, modulo the number of threads. The
//! kernel can work that out for each datagram before it chooses a socket, and whoever makes connection IDs makes them lead
//! to himself. A client's first destination is made up by the client, and leads somewhere all the same.

/// The bytes of a connection ID that decide; IDs that don't have them lead to the first thread.
pub const SHARE_BYTES: std::ops::Range<usize> = 4..8;

/// The part of all connections of an address that one thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    index: u16,
    of: u16,
}

impl Share {
    /// All connections: there is one thread.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The part of thread `index`, from 0, of `of`; `None` if there is no such thread.
    #[must_use]
    pub const fn new(index: u16, of: u16) -> Option<Self> {
        if index < of {
            Some(Self { index, of })
        } else {
            None
        }
    }

    /// Which thread has it.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.index
    }

    /// Into how many parts the connections are divided.
    #[must_use]
    pub const fn of(self) -> u16 {
        self.of
    }

    /// Which thread has the connection with the ID `cid`.
    #[must_use]
    pub fn owner(self, cid: &[u8]) -> u16 {
        let number = cid
            .get(SHARE_BYTES)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_be_bytes);
        u16::try_from(number % u32::from(self.of)).unwrap_or_default()
    }

    /// Whether the connection with the ID `cid` belongs here.
    #[must_use]
    pub fn holds(self, cid: &[u8]) -> bool {
        self.of == 1 || self.owner(cid) == self.index
    }

    /// Changes random bytes as little as makes an ID of them that leads here.
    pub fn claim(self, cid: &mut [u8]) {
        if self.of == 1 {
            return;
        }
        let Some(bytes) = cid
            .get_mut(SHARE_BYTES)
            .and_then(|bytes| <&mut [u8; 4]>::try_from(bytes).ok())
        else {
            return;
        };
        let of = u32::from(self.of);
        let number = u32::from_be_bytes(*bytes);
        let base = number - number % of;
        let index = u32::from(self.index);
        // The last run of numbers may be too short for this index.
        let claimed = base.checked_add(index).unwrap_or_else(|| base - of + index);
        *bytes = claimed.to_be_bytes();
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn every_id_has_one_owner() {
        let shares: Vec<_> = (0..5).map(|index| Share::new(index, 5).unwrap()).collect();
        for number in [0, 1, 4, 5, 77, u32::MAX - 1, u32::MAX] {
            let mut cid = [9; 8];
            cid[4..].copy_from_slice(&number.to_be_bytes());
            let owners = shares.iter().filter(|share| share.holds(&cid)).count();
            assert_eq!(owners, 1, "{number}");
        }
    }

    #[test]
    fn a_claimed_id_leads_here() {
        for of in [1, 2, 3, 7, 256, u16::MAX] {
            for index in [0, of / 2, of - 1] {
                let share = Share::new(index, of).unwrap();
                for fill in [0, 1, 0x7f, 0xff] {
                    let mut cid = [fill; 8];
                    share.claim(&mut cid);
                    assert!(share.holds(&cid), "{index} of {of}, {fill}");
                    assert_eq!(cid[..4], [fill; 4]);
                }
            }
        }
    }

    #[test]
    fn short_ids_lead_to_the_first() {
        let share = |index| Share::new(index, 2).unwrap();
        let mut cid = [1; 7];
        share(1).claim(&mut cid);
        assert_eq!(cid, [1; 7]);
        assert!(share(0).holds(&cid) && !share(1).holds(&[]));
    }

    #[test]
    fn there_is_no_thread_beyond_the_last() {
        assert_eq!(Share::new(2, 2), None);
        assert_eq!(Share::new(0, 0), None);
        assert_eq!(Share::new(0, 1), Some(Share::WHOLE));
    }
}
