//! Datagrams from the peer until the application receives them.

use super::queue::Queue;
use super::settings::DatagramSettings;
use crate::error::Error;

/// See the module.
#[derive(Debug)]
pub(crate) struct IncomingDatagrams {
    queue: Queue,
    /// The largest frame that we have said we take.
    max_frame_size: u16,
    /// The oldest has been given out, and goes before the next is looked at.
    is_front_taken: bool,
    /// A datagram that wraps around the end of the ring.
    scratch: Vec<u8>,
    /// The application is to hear that there is something.
    is_news: bool,
    received: u64,
    unread: u64,
}

impl IncomingDatagrams {
    pub(crate) const fn new(settings: &DatagramSettings) -> Self {
        Self {
            queue: Queue::new(settings.receive_buffer),
            max_frame_size: settings.max_frame_size,
            is_front_taken: false,
            scratch: Vec::new(),
            is_news: false,
            received: 0,
            unread: 0,
        }
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.forget_taken();
        self.queue.rest();
        self.scratch = Vec::new();
    }

    /// DATAGRAM, whose frame has type `frame` and `size` bytes in all.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a frame that is larger than we have said we take, if any.
    pub(crate) fn on_datagram(
        &mut self,
        frame: u64,
        size: usize,
        data: &[u8],
    ) -> Result<(), Error> {
        if self.max_frame_size == 0 {
            return Err(Error::protocol(frame, "no datagrams are taken"));
        }
        if size > usize::from(self.max_frame_size) {
            return Err(Error::protocol(frame, "a datagram over the limit"));
        }
        self.received += 1;
        self.forget_taken();
        while !self.queue.has_room(data.len()) {
            self.unread += 1;
            if self.queue.pop().is_none() {
                return Ok(());
            }
        }
        self.queue.push(data);
        self.is_news = true;
        Ok(())
    }

    /// The next datagram; it is gone with the next call.
    pub(crate) fn receive(&mut self) -> Option<&[u8]> {
        self.forget_taken();
        let (first, second) = self.queue.front()?;
        self.is_front_taken = true;
        if second.is_empty() {
            return self.queue.front().map(|(whole, _)| whole);
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(first);
        self.scratch.extend_from_slice(second);
        Some(&self.scratch)
    }

    /// Whether the application is to be told that there is something, which it then has been.
    pub(crate) const fn take_news(&mut self) -> bool {
        std::mem::replace(&mut self.is_news, false)
    }

    pub(crate) const fn has_news(&self) -> bool {
        self.is_news
    }

    /// Bytes that wait.
    pub(crate) fn size(&self) -> usize {
        self.queue.size()
    }

    /// How many have come, and how many of them nobody has received in time.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        (self.received, self.unread)
    }

    fn forget_taken(&mut self) {
        if std::mem::take(&mut self.is_front_taken) {
            self.queue.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DatagramSettings, IncomingDatagrams};
    use crate::datagram::queue::OVERHEAD;
    use crate::wire::TransportErrorCode as Code;

    fn incoming(max_frame_size: u16, receive_buffer: usize) -> IncomingDatagrams {
        IncomingDatagrams::new(&DatagramSettings {
            max_frame_size,
            receive_buffer,
            ..DatagramSettings::default()
        })
    }

    /// RFC 9221, 3: a frame when none were permitted, or one that is larger, MUST be a PROTOCOL_VIOLATION.
    #[test]
    fn the_largest_frame_passes_and_one_byte_more_is_an_error() {
        let code = |max, size| {
            let result = incoming(max, 10_000).on_datagram(0x30, size, b"x");
            result.map_err(|error| (error.code, error.frame))
        };
        assert_eq!(code(100, 100), Ok(()));
        let violation = Err((Code::PROTOCOL_VIOLATION, 0x30));
        assert_eq!(code(100, 101), violation);
        assert_eq!(code(0, 1), violation);
    }

    #[test]
    fn the_oldest_go_when_nobody_receives_them() {
        let mut datagrams = incoming(1000, 3 * (OVERHEAD + 1));
        for data in [b"a", b"b", b"c", b"d"] {
            datagrams.on_datagram(0x30, 3, data).unwrap();
        }
        assert_eq!(datagrams.counts(), (4, 1));
        assert_eq!(datagrams.receive(), Some(&b"b"[..]));
        // The one that has been given out is no longer waiting.
        datagrams.on_datagram(0x30, 3, b"e").unwrap();
        assert_eq!(datagrams.counts(), (5, 1));
        for data in [b"c", b"d", b"e"] {
            assert_eq!(datagrams.receive(), Some(&data[..]));
        }
        assert_eq!(datagrams.receive(), None);
        assert_eq!(datagrams.size(), 0);
    }

    #[test]
    fn one_that_the_buffer_can_never_hold_is_dropped() {
        let mut datagrams = incoming(1000, OVERHEAD + 1);
        datagrams.on_datagram(0x30, 3, b"a").unwrap();
        datagrams.on_datagram(0x30, 4, b"bc").unwrap();
        assert_eq!(datagrams.receive(), None);
        assert_eq!(datagrams.counts(), (2, 2));
    }

    /// The ring's end comes at any place of a datagram.
    #[test]
    fn a_datagram_in_two_parts_is_given_out_whole() {
        let mut datagrams = incoming(1000, 5000);
        for round in 0..1000_usize {
            let data = vec![round.to_be_bytes()[7]; round * 37 % 800];
            datagrams.on_datagram(0x30, 900, &data).unwrap();
            if round % 3 > 0 {
                let length = datagrams.receive().map(|data| {
                    assert!(data.iter().all(|byte| Some(byte) == data.first()));
                    data.len()
                });
                assert!(length.is_some());
            }
        }
    }
}
