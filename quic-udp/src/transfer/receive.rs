//! Receiving: errors that belong to some datagram, ours or a peer's, are passed over; the socket lives on.

use std::{
    io::{self, IoSliceMut},
    net::SocketAddr,
};

use quinn_udp::RecvMeta;

use super::Transfer;
use crate::{
    calls::Calls,
    fault::{is_fatal, is_missing_call, is_of_a_datagram},
    limits::{MAX_FAILED_READS, MAX_RECEIVE_RETRIES},
    receive_buffer::{Datagrams, ReceiveBuffer},
};

impl<C: Calls> Transfer<C> {
    pub(crate) fn receive<'b>(
        &mut self,
        buffer: &'b mut ReceiveBuffer,
    ) -> io::Result<Datagrams<'b>> {
        for _ in 0..MAX_RECEIVE_RETRIES {
            match buffer.fill(|buffers, meta| self.read(buffers, meta)) {
                Ok(totals) => {
                    self.failed_reads = 0;
                    self.counters.received_calls += 1;
                    self.counters.received_datagrams +=
                        u64::try_from(totals.datagrams).unwrap_or(0);
                    self.counters.received_bytes += u64::try_from(totals.bytes).unwrap_or(0);
                    self.counters.ignored += u64::try_from(totals.ignored).unwrap_or(0);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.failed_reads = 0;
                    return Err(error);
                }
                Err(error) if is_of_a_datagram(&error) => {
                    self.failed_reads = 0;
                    self.counters.ignored += 1;
                }
                Err(error) if is_missing_call(&error) && !self.reads_plainly => {
                    self.reads_plainly = true;
                    self.calls.separate();
                }
                Err(error) => {
                    self.failed_reads = self.failed_reads.saturating_add(1);
                    self.counters.failed_receives += 1;
                    if is_fatal(&error) || self.failed_reads > MAX_FAILED_READS {
                        return Err(error);
                    }
                    self.icmp.collect(&self.calls);
                }
            }
        }
        Ok(buffer.datagrams(self.bound.address))
    }

    fn read(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        if self.reads_plainly {
            self.read_plainly(buffers, meta)
        } else {
            self.calls.receive(buffers, meta)
        }
    }

    /// One datagram, of which the system tells only whom it is from.
    #[cold]
    fn read_plainly(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<usize> {
        let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else {
            return Ok(0);
        };
        let (length, remote): (usize, SocketAddr) = self.calls.receive_plain(buffer)?;
        *meta = RecvMeta::default();
        meta.addr = remote;
        meta.len = length;
        meta.stride = length;
        Ok(1)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io;

    use crate::{
        limits::{MAX_FAILED_READS, MAX_RECEIVE_RETRIES},
        receive_buffer::ReceiveBuffer,
        transfer::script::{Read, Script, transfer},
    };

    fn kind(result: io::Result<usize>) -> Result<usize, io::ErrorKind> {
        result.map_err(|error| error.kind())
    }

    #[test]
    fn errors_of_peers_are_passed_over() {
        for code in [
            libc::ECONNREFUSED,
            libc::ECONNRESET,
            libc::EHOSTUNREACH,
            libc::ENETDOWN,
            libc::EPERM,
            libc::EMSGSIZE,
            libc::ENOMEM,
            libc::EIO,
        ] {
            let script = Script::new().reads(&[Read::Error(code), Read::Datagrams(1200, 3)]);
            let mut transfer = transfer(script);
            let mut buffer = ReceiveBuffer::new();
            let count = transfer.receive(&mut buffer).map(Iterator::count);
            assert_eq!(kind(count), Ok(3), "{code}");
            assert_eq!(transfer.counters.failed_receives, 1);
            assert_eq!(transfer.counters.received_calls, 1);
            assert_eq!(transfer.counters.received_datagrams, 3);
            assert_eq!(transfer.counters.received_bytes, 3600);
        }
    }

    #[test]
    fn an_empty_socket_says_so() {
        let mut transfer = transfer(Script::new());
        let mut buffer = ReceiveBuffer::new();
        let count = transfer.receive(&mut buffer).map(Iterator::count);
        assert_eq!(kind(count), Err(io::ErrorKind::WouldBlock));
        assert_eq!(transfer.counters.failed_receives, 0);
    }

    #[test]
    fn empty_datagrams_count_as_datagrams() {
        let mut transfer = transfer(Script::new().reads(&[Read::Datagrams(0, 1)]));
        let mut buffer = ReceiveBuffer::new();
        assert_eq!(
            kind(transfer.receive(&mut buffer).map(Iterator::count)),
            Ok(1)
        );
    }

    #[test]
    fn many_errors_give_an_empty_read_so_that_others_get_their_turn() {
        let mut transfer = transfer(Script::new().reads(&[Read::Error(libc::ECONNREFUSED); 100]));
        let mut buffer = ReceiveBuffer::new();
        assert_eq!(
            kind(transfer.receive(&mut buffer).map(Iterator::count)),
            Ok(0)
        );
        assert_eq!(
            transfer.counters.failed_receives,
            u64::try_from(MAX_RECEIVE_RETRIES).unwrap()
        );
    }

    #[test]
    fn an_error_that_never_ends_is_reported_and_one_that_does_is_not() {
        let limit = usize::try_from(MAX_FAILED_READS).unwrap();
        let mut reads = vec![Read::Error(libc::ENETDOWN); limit];
        reads.push(Read::Datagrams(1, 1));
        reads.extend(vec![Read::Error(libc::ENETDOWN); limit + 1]);
        let mut transfer = transfer(Script::new().reads(&reads));
        let mut buffer = ReceiveBuffer::new();
        let error = loop {
            if let Err(error) = transfer.receive(&mut buffer).map(Iterator::count) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::NetworkDown);
        assert_eq!(transfer.counters.received_datagrams, 1);
        assert_eq!(
            transfer.counters.failed_receives,
            u64::from(2 * MAX_FAILED_READS + 1)
        );
    }

    /// macOS 10.15 has some. A stream of them must not look like a socket that is broken.
    #[test]
    fn datagrams_of_no_known_family_are_passed_over_however_many_there_are() {
        let count = 2 * usize::try_from(MAX_FAILED_READS).unwrap();
        let mut reads = vec![Read::Unknown; count];
        reads.push(Read::Datagrams(1200, 1));
        let mut transfer = transfer(Script::new().reads(&reads));
        let mut buffer = ReceiveBuffer::new();
        let received = loop {
            let received = transfer.receive(&mut buffer).map(Iterator::count).unwrap();
            if received > 0 {
                break received;
            }
        };
        assert_eq!(received, 1);
        assert_eq!(transfer.counters.ignored, u64::try_from(count).unwrap());
        assert_eq!(transfer.counters.failed_receives, 0);
    }

    #[test]
    fn where_the_call_with_options_is_missing_datagrams_are_read_singly() {
        let reads = [Read::Datagrams(1200, 1), Read::Datagrams(0, 1)];
        let script = Script::new().reads(&reads);
        let mut transfer = transfer(script);
        // The sandbox comes up after the socket.
        transfer.calls = transfer.calls.refusing_options(libc::ENOSYS);
        let mut buffer = ReceiveBuffer::new();
        for length in [1200, 0] {
            let got: Vec<_> = transfer.receive(&mut buffer).unwrap().collect();
            assert_eq!(got.len(), 1);
            assert_eq!(got[0].payload.len(), length);
            assert_eq!(got[0].local, Some(([0, 0, 0, 0], 4433).into()));
        }
        let count = transfer.receive(&mut buffer).map(Iterator::count);
        assert_eq!(kind(count), Err(io::ErrorKind::WouldBlock));
        assert_eq!(transfer.counters.failed_receives, 0);
    }

    #[test]
    fn a_lost_descriptor_is_reported_at_once() {
        let mut transfer = transfer(Script::new().reads(&[Read::Error(libc::EBADF)]));
        let mut buffer = ReceiveBuffer::new();
        assert!(transfer.receive(&mut buffer).map(Iterator::count).is_err());
        assert_eq!(transfer.counters.failed_receives, 1);
    }

    #[test]
    fn icmp_errors_met_while_reading_are_kept() {
        let script = Script::new()
            .reads(&[Read::Error(libc::ECONNREFUSED)])
            .icmp_errors(1);
        let mut transfer = transfer(script);
        transfer.icmp.enable();
        let mut buffer = ReceiveBuffer::new();
        let count = transfer.receive(&mut buffer).map(Iterator::count);
        assert_eq!(kind(count), Err(io::ErrorKind::WouldBlock));
        assert_eq!(transfer.calls.icmp_errors_left(), 0);
        assert!(transfer.icmp.pop(&transfer.calls).is_some());
    }
}
