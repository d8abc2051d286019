//! Sending a batch: with one call where the system can segment it, singly where not.
//!
//! A system shows that it can't segment only by failing, perhaps long after it could. A batch that fails so is sent
//! singly at once; only if that works is it segmentation that failed, and is off from then on. The layer below draws
//! its own conclusion from such failures (it stops marking IPv4 datagrams with ECN), and is made to forget it.
//!
//! Old systems refuse the option that carries the mark, and sandboxes the call that takes options at all: datagrams go
//! out by the plainest call then, unmarked.

use std::io;

use quic_common::{BatchHead, DatagramBatch, Ecn, MAX_BATCH_BYTES};
use quinn_udp::{EcnCodepoint, Transmit};

use super::Transfer;
use crate::{
    calls::Calls,
    fault::{Fault, is_missing_call, is_refused_argument},
    limits::{MAX_SEND_BYTES_IPV6, MAX_SEND_RETRIES, MAX_UNMARKED},
};

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The system has all of it.
    All,
    /// The socket is full. The first `sent` bytes are gone; the rest goes out, in its order, once the socket is
    /// writable.
    Blocked {
        /// Bytes that were taken, a whole number of datagrams. 0 unless datagrams are sent singly.
        sent: usize,
    },
    /// At least one datagram was not sent, nor will be. Loss recovery takes care of it; the fault may tell more.
    Lost(Fault),
}

impl<C: Calls> Transfer<C> {
    pub(crate) fn send(&mut self, batch: DatagramBatch<'_>) -> Sent {
        let head = batch.head();
        let Some(mut transmit) = self.transmit(&head) else {
            return self.lost(Fault::Unreachable);
        };
        let mut segments = self.segments;
        let mut rest = batch.bytes();
        while !rest.is_empty() {
            let length = call_length(&head, rest.len(), segments);
            let (chunk, after) = rest.split_at(length);
            transmit.contents = chunk;
            transmit.segment_size = (length > head.segment).then_some(head.segment);
            match self.send_call(&transmit) {
                Ok(()) => {
                    self.segments = segments;
                    self.count(&head, length);
                    rest = after;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.counters.blocked_sends += 1;
                    return Sent::Blocked {
                        sent: head.length - rest.len(),
                    };
                }
                Err(error) if is_missing_call(&error) && !self.sends_plainly => {
                    self.sends_plainly = true;
                    segments = 1;
                }
                Err(error) if is_refused_argument(&error) => {
                    self.renew();
                    if length > head.segment {
                        segments = 1;
                    } else if self.is_sent_without_options(&transmit) {
                        self.count(&head, length);
                        rest = after;
                    } else {
                        return self.lost(Fault::of(&error));
                    }
                }
                Err(error) => return self.lost(Fault::of(&error)),
            }
        }
        Sent::All
    }

    fn transmit(&self, head: &BatchHead) -> Option<Transmit<'static>> {
        Some(Transmit {
            destination: self.bound.destination(head.remote)?,
            ecn: codepoint(head.ecn),
            contents: &[],
            segment_size: None,
            src_ip: self.bound.source(head.local),
        })
    }

    /// One send, with ICMP errors that the kernel reported in its place taken out of the way.
    fn send_call(&mut self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut result = self.call(transmit);
        for _ in 0..MAX_SEND_RETRIES {
            match &result {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {}
                Ok(()) | Err(_) => break,
            }
            if !self.icmp.collect(&self.calls) {
                break;
            }
            result = self.call(transmit);
        }
        if result.is_ok() && !self.sends_plainly && self.calls.max_segments() < self.segments {
            self.on_unmarked();
        }
        result
    }

    fn call(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if self.sends_plainly {
            self.calls
                .send_plain(transmit.destination, transmit.contents)
        } else {
            self.calls.try_send(transmit)
        }
    }

    /// Sends a datagram that was refused with its options, by the plain call. If it is always like this, no other is tried
    /// any more. Not from an address that was asked for: its answer would come from another.
    #[cold]
    fn is_sent_without_options(&mut self, transmit: &Transmit<'_>) -> bool {
        let can_try = !self.sends_plainly && transmit.src_ip.is_none();
        let is_sent = can_try
            && self
                .calls
                .send_plain(transmit.destination, transmit.contents)
                .is_ok();
        if is_sent {
            self.unmarked = self.unmarked.saturating_add(1);
            self.sends_plainly = self.unmarked >= MAX_UNMARKED;
        }
        is_sent
    }

    /// The layer below met an error and got by without an ECN mark. Bounded: perhaps it can't be otherwise.
    fn on_unmarked(&mut self) {
        if self.unmarked < MAX_UNMARKED {
            self.unmarked += 1;
            self.renew();
        }
    }

    /// When this fails, the old state still sends.
    fn renew(&mut self) {
        if self.calls.renew().is_ok() {
            self.counters.renewals += 1;
        }
    }

    fn count(&mut self, head: &BatchHead, length: usize) {
        let datagrams = length.div_ceil(head.segment.max(1));
        self.counters.sent_calls += 1;
        self.counters.sent_datagrams += u64::try_from(datagrams).unwrap_or(0);
        self.counters.sent_bytes += u64::try_from(length).unwrap_or(0);
    }

    const fn lost(&mut self, fault: Fault) -> Sent {
        self.counters.failed_sends += 1;
        Sent::Lost(fault)
    }
}

/// How many of the `left` bytes one call may take: all, or as many whole datagrams as the system allows.
fn call_length(head: &BatchHead, left: usize, segments: usize) -> usize {
    if left <= head.segment || head.segment == 0 {
        return left;
    }
    let bytes = if head.remote.ip().to_canonical().is_ipv4() {
        MAX_BATCH_BYTES
    } else {
        MAX_SEND_BYTES_IPV6
    };
    if left <= bytes && left.div_ceil(head.segment) <= segments {
        return left;
    }
    let datagrams = segments.min(bytes / head.segment).max(1);
    left.min(datagrams.saturating_mul(head.segment))
}

const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::net::SocketAddr;

    use quic_common::{BatchHead, DatagramBatch, Ecn};

    use super::Sent;
    use crate::{
        fault::Fault,
        limits::{MAX_SEND_RETRIES, MAX_UNMARKED},
        transfer::script::{Script, transfer},
    };

    fn head(length: usize, segment: usize) -> BatchHead {
        BatchHead {
            remote: SocketAddr::from(([127, 0, 0, 1], 4433)),
            local: None,
            ecn: Ecn::Ect0,
            length,
            segment,
        }
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..=250).cycle().take(length).collect()
    }

    /// Sends a batch over `script`; also returns what each call carried and the segment size that it asked for.
    fn send(script: Script, length: usize, segment: usize) -> (Sent, Vec<(usize, Option<usize>)>) {
        let mut transfer = transfer(script);
        let bytes = bytes(length);
        let sent = transfer.send(DatagramBatch::new(head(length, segment), &bytes));
        (sent, transfer.calls.calls())
    }

    #[test]
    fn a_full_batch_is_one_call() {
        let (sent, calls) = send(Script::new(), 44 * 1452 + 10, 1452);
        assert_eq!(sent, Sent::All);
        assert_eq!(calls, [(44 * 1452 + 10, Some(1452))]);
    }

    #[test]
    fn a_single_datagram_asks_for_no_segmentation() {
        assert_eq!(send(Script::new(), 1200, 1200).1, [(1200, None)]);
        assert_eq!(send(Script::new(), 700, 1200).1, [(700, None)]);
        assert_eq!(send(Script::new(), 0, 0).1, []);
    }

    #[test]
    fn a_batch_larger_than_one_call_takes_several_whole_datagrams_each() {
        let (sent, calls) = send(Script::new(), 100 * 100, 100);
        assert_eq!(sent, Sent::All);
        assert_eq!(calls, [(6400, Some(100)), (3600, Some(100))]);
    }

    #[test]
    fn ipv6_takes_less_in_one_call() {
        let mut transfer = transfer(Script::new());
        transfer.bound.ipv6 = true;
        let mut head = head(2 * 32750, 32750);
        head.remote = "[::1]:4433".parse().unwrap();
        let bytes = bytes(head.length);
        assert_eq!(transfer.send(DatagramBatch::new(head, &bytes)), Sent::All);
        assert_eq!(transfer.calls.calls(), [(32750, None), (32750, None)]);
    }

    #[test]
    fn failed_segmentation_is_replaced_by_single_sends_at_once_and_for_good() {
        for code in [libc::EIO, libc::EINVAL] {
            let mut transfer = transfer(Script::new().sends(&[0, code]));
            let bytes = bytes(2500);
            let batch = DatagramBatch::new(head(2500, 1000), &bytes);
            assert_eq!(transfer.send(batch), Sent::All, "it has worked before");
            assert_eq!(transfer.send(batch), Sent::All);
            assert_eq!(transfer.send(batch), Sent::All);
            let singles = [(1000, None), (1000, None), (500, None)];
            let calls = transfer.calls.calls();
            assert_eq!(calls[..2], [(2500, Some(1000)), (2500, Some(1000))]);
            assert_eq!(calls[2..], [singles, singles].concat());
            assert_eq!(transfer.segments(), 1);
            assert_eq!(transfer.counters.renewals, 1);
            assert_eq!(
                transfer.calls.payload()[2500..5000],
                bytes,
                "nothing lost or reordered"
            );
        }
    }

    /// More segments than any kernel takes make it fail as one without segmentation offload does.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn datagrams_of_a_batch_that_the_kernel_refused_arrive_marked() {
        use std::net::UdpSocket;

        use crate::{
            address::Bound, kernel::Kernel, offloads::Offloads, receive_buffer::ReceiveBuffer,
            transfer::Transfer,
        };

        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            Kernel::new(socket, Offloads::default()).unwrap()
        };
        let (sender, receiver) = (bind(), bind());
        let bound = Bound {
            address: sender.socket.local_addr().unwrap(),
            ipv6: false,
            dual_stack: false,
        };
        let mut head = head(500 * 10, 10);
        head.remote = receiver.socket.local_addr().unwrap();
        let mut sender = Transfer::new(sender, bound);
        let mut receiver = Transfer::new(receiver, bound);
        sender.segments = 500;
        let bytes = bytes(head.length);
        let sent = sender.send(DatagramBatch::new(head, &bytes));
        assert_eq!(sent, Sent::All);
        assert_eq!(sender.counters.sent_calls, 500);
        assert_eq!(sender.segments, 1);

        let mut buffer = ReceiveBuffer::new();
        let mut got = Vec::new();
        while let Ok(datagrams) = receiver.receive(&mut buffer) {
            for datagram in datagrams {
                assert_eq!(datagram.ecn, Ecn::Ect0);
                got.extend_from_slice(datagram.payload);
            }
        }
        // The socket's buffer may be too small for all of them.
        assert!(got.len() > 100 * 10);
        assert_eq!(got, bytes[..got.len()]);
    }

    #[test]
    fn segmentation_stays_on_when_single_sends_fail_too() {
        for (codes, fault) in [
            (&[libc::EINVAL, libc::EMSGSIZE][..], Fault::TooLarge),
            (&[libc::EINVAL; 3], Fault::Other(libc::EINVAL)),
            (&[libc::EINVAL, libc::ENOBUFS], Fault::NoBuffers),
        ] {
            let mut transfer = transfer(Script::new().sends(codes));
            let bytes = bytes(2500);
            let batch = DatagramBatch::new(head(2500, 1000), &bytes);
            assert_eq!(transfer.send(batch), Sent::Lost(fault));
            assert_eq!(transfer.segments(), 64);
            assert_eq!(transfer.send(batch), Sent::All);
            assert_eq!(transfer.calls.calls().last(), Some(&(2500, Some(1000))));
        }
    }

    #[test]
    fn a_refused_single_send_takes_nothing_from_later_ones() {
        let mut transfer = transfer(Script::new().sends(&[libc::EINVAL, libc::EINVAL]));
        let bytes = bytes(500);
        let batch = DatagramBatch::new(head(500, 500), &bytes);
        assert_eq!(transfer.send(batch), Sent::Lost(Fault::Other(libc::EINVAL)));
        assert_eq!(transfer.counters.renewals, 1);
    }

    /// As systems do that don't know the option for the ECN mark, Android with an API level of 25 or less among them.
    #[test]
    fn datagrams_go_out_unmarked_where_the_mark_is_refused() {
        let mut transfer = transfer(Script::new().refusing_options(libc::EINVAL));
        let bytes = bytes(500);
        let batch = DatagramBatch::new(head(500, 500), &bytes);
        for _ in 0..2 * MAX_UNMARKED {
            assert_eq!(transfer.send(batch), Sent::All);
        }
        let refused = transfer.calls.calls().len();
        assert_eq!(refused, usize::try_from(MAX_UNMARKED).unwrap(), "bounded");
        assert_eq!(transfer.calls.payload(), bytes.repeat(32));
        assert_eq!(transfer.counters.sent_datagrams, 32);
    }

    #[test]
    fn datagrams_from_an_address_that_was_asked_for_are_lost_rather_than_sent_from_another() {
        let mut transfer = transfer(Script::new().refusing_options(libc::EINVAL));
        let bytes = bytes(500);
        let mut head = head(500, 500);
        head.local = Some(SocketAddr::from(([127, 0, 0, 7], 4433)));
        let sent = transfer.send(DatagramBatch::new(head, &bytes));
        assert_eq!(sent, Sent::Lost(Fault::Other(libc::EINVAL)));
        assert_eq!(transfer.calls.payload(), []);
    }

    /// As the sandboxes of 32-bit Android do, where all calls for messages are one.
    #[test]
    fn a_call_that_is_missing_is_asked_once_and_datagrams_go_out_singly_without_it() {
        let mut transfer = transfer(Script::new().refusing_options(libc::ENOSYS));
        let bytes = bytes(2500);
        let batch = DatagramBatch::new(head(2500, 1000), &bytes);
        for _ in 0..3 {
            assert_eq!(transfer.send(batch), Sent::All);
        }
        assert_eq!(transfer.calls.calls(), [(2500, Some(1000))]);
        assert_eq!(transfer.calls.payload(), bytes.repeat(3));
        assert_eq!(transfer.counters.sent_calls, 9);
        assert_eq!(transfer.counters.renewals, 0);
    }

    #[test]
    fn a_system_without_any_call_loses_what_is_sent_and_lives_on() {
        let mut transfer = transfer(Script::new().sends(&[libc::ENOSYS; 4]));
        let bytes = bytes(500);
        let batch = DatagramBatch::new(head(500, 500), &bytes);
        let fault = Fault::Other(libc::ENOSYS);
        for _ in 0..3 {
            assert_eq!(transfer.send(batch), Sent::Lost(fault));
        }
        assert_eq!(transfer.send(batch), Sent::All);
    }

    #[test]
    fn a_send_that_lost_its_mark_below_renews_a_bounded_number_of_times() {
        let mut transfer = transfer(Script::new().degrading());
        let bytes = bytes(500);
        for _ in 0..2 * MAX_UNMARKED {
            assert_eq!(
                transfer.send(DatagramBatch::new(head(500, 500), &bytes)),
                Sent::All
            );
        }
        assert_eq!(transfer.counters.renewals, u64::from(MAX_UNMARKED));
    }

    #[test]
    fn a_full_socket_keeps_the_batch() {
        let (sent, calls) = send(Script::new().sends(&[libc::EAGAIN]), 2500, 1000);
        assert_eq!(sent, Sent::Blocked { sent: 0 });
        assert_eq!(calls.len(), 1, "no spinning");
    }

    #[test]
    fn a_socket_that_fills_up_between_single_sends_tells_where() {
        let script = Script::new().sends(&[libc::EIO, 0, libc::EAGAIN]);
        let (sent, _) = send(script, 2500, 1000);
        assert_eq!(sent, Sent::Blocked { sent: 1000 });
    }

    #[test]
    fn errors_are_values() {
        for (code, fault) in [
            (libc::ENOBUFS, Fault::NoBuffers),
            (libc::EMSGSIZE, Fault::TooLarge),
            (libc::ECONNREFUSED, Fault::Unreachable),
            (libc::EHOSTUNREACH, Fault::Unreachable),
            (libc::ENETDOWN, Fault::Unreachable),
            (libc::EPERM, Fault::NotPermitted),
        ] {
            let mut transfer = transfer(Script::new().sends(&[code, code, code]));
            let bytes = bytes(2500);
            let batch = DatagramBatch::new(head(2500, 1000), &bytes);
            for _ in 0..3 {
                assert_eq!(transfer.send(batch), Sent::Lost(fault));
            }
            assert_eq!(transfer.send(batch), Sent::All, "the socket lives on");
            assert_eq!(transfer.counters.failed_sends, 3);
            assert_eq!(transfer.counters.sent_datagrams, 3);
        }
    }

    #[test]
    fn a_pending_icmp_error_does_not_cost_the_datagram() {
        // A forged "packet too big" shows up like this in the send that follows it.
        for code in [libc::ECONNREFUSED, libc::EMSGSIZE] {
            let mut transfer = transfer(Script::new().sends(&[code]).icmp_errors(1));
            transfer.icmp.enable();
            let bytes = bytes(500);
            let batch = DatagramBatch::new(head(500, 500), &bytes);
            assert_eq!(transfer.send(batch), Sent::All);
            assert!(transfer.icmp.pop(&transfer.calls).is_some());
        }
    }

    #[test]
    fn an_error_of_the_send_itself_is_not_taken_for_an_icmp_error() {
        let mut transfer = transfer(Script::new().sends(&[libc::EMSGSIZE]));
        transfer.icmp.enable();
        let bytes = bytes(500);
        let batch = DatagramBatch::new(head(500, 500), &bytes);
        assert_eq!(transfer.send(batch), Sent::Lost(Fault::TooLarge));
    }

    #[test]
    fn a_flood_of_icmp_errors_ends_the_retries() {
        let script = Script::new()
            .sends(&[libc::ECONNREFUSED; 100])
            .icmp_errors(1000);
        let mut transfer = transfer(script);
        transfer.icmp.enable();
        let bytes = bytes(500);
        let batch = DatagramBatch::new(head(500, 500), &bytes);
        assert_eq!(transfer.send(batch), Sent::Lost(Fault::Unreachable));
        assert_eq!(transfer.calls.calls().len(), 1 + MAX_SEND_RETRIES);
    }

    #[test]
    fn a_destination_that_the_socket_cannot_have_costs_no_call() {
        let mut transfer = transfer(Script::new());
        let bytes = bytes(500);
        for remote in ["[::1]:4433", "127.0.0.1:0"] {
            let mut head = head(500, 500);
            head.remote = remote.parse().unwrap();
            let sent = transfer.send(DatagramBatch::new(head, &bytes));
            assert_eq!(sent, Sent::Lost(Fault::Unreachable));
        }
        assert_eq!(transfer.calls.calls(), []);
    }
}
