//! Trying calls on two sockets of our own before anything relies on them.
//!
//! Where calls are private to a system, they may be missing in one version of it, and do something else in another. Three
//! datagrams over the loopback interface show most of what can be wrong.

use std::{io::IoSliceMut, net::SocketAddr, thread, time::Duration};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit};

use crate::calls::Calls;

/// Bytes of a datagram; the last one is shorter.
const SEGMENT: usize = 100;

/// Bytes of all of them.
const LENGTH: usize = 250;

/// Reads in all; between them a millisecond passes.
const READS: usize = 100;

/// Whether three datagrams that `from` sends in one call arrive at `to`, whole, marked, in their order, and from the
/// right address. Waits a tenth of a second at most.
#[cfg_attr(
    not(any(test, all(feature = "apple-fast-path", target_vendor = "apple"))),
    expect(dead_code, reason = "for Apple's systems")
)]
pub(crate) fn carries(
    from: &impl Calls,
    from_address: SocketAddr,
    to: &impl Calls,
    to_address: SocketAddr,
) -> bool {
    let contents: [u8; LENGTH] = std::array::from_fn(|index| index.to_le_bytes()[0]);
    let transmit = Transmit {
        destination: to_address,
        ecn: Some(EcnCodepoint::Ect0),
        contents: &contents,
        segment_size: Some(SEGMENT),
        src_ip: None,
    };
    if from.try_send(&transmit).is_err() {
        return false;
    }
    let mut left = &contents[..];
    for _ in 0..READS {
        if !read(to, from_address, &mut left) {
            return false;
        }
        if left.is_empty() {
            return true;
        }
        pause();
    }
    false
}

/// Takes what has arrived off `left`; whether it is what it should be.
fn read(to: &impl Calls, from_address: SocketAddr, left: &mut &[u8]) -> bool {
    let mut bytes = [[0; 2 * LENGTH]; 4];
    let mut buffers = bytes.each_mut().map(|bytes| IoSliceMut::new(bytes));
    let mut meta = [RecvMeta::default(); 4];
    let Ok(count) = to.receive(&mut buffers, &mut meta) else {
        // Nothing there yet; if it stays so, that is wrong too.
        return true;
    };
    bytes.iter().zip(&meta).take(count).all(|(bytes, meta)| {
        let is_marked = meta.ecn == Some(EcnCodepoint::Ect0);
        let is_segment = meta.stride == SEGMENT.min(left.len());
        let Some((expected, after)) = left.split_at_checked(meta.len) else {
            return false;
        };
        *left = after;
        let is_right = bytes.get(..meta.len) == Some(expected) && meta.addr == from_address;
        is_right && is_marked && is_segment && !expected.is_empty()
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "once in a process, until the system has delivered"
)]
fn pause() {
    thread::sleep(Duration::from_millis(1));
}

#[cfg(all(test, unix))]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::{LENGTH, SEGMENT, carries};
    use crate::transfer::script::{Read, Script};

    const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
    const TO: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 2);

    fn carried(from: &Script, to: &Script) -> bool {
        carries(from, FROM, to, TO)
    }

    #[test]
    fn calls_that_fail_are_not_believed() {
        for code in [libc::ENOSYS, libc::EINVAL, libc::EMSGSIZE] {
            assert!(!carried(&Script::new().sends(&[code]), &Script::new()));
        }
    }

    #[test]
    fn calls_that_lose_or_change_something_are_not_believed() {
        let from = Script::new();
        assert!(!carried(&from, &Script::new()), "nothing arrives");
        assert_eq!(from.calls(), [(LENGTH, Some(SEGMENT))]);
        for read in [
            Read::Datagrams(SEGMENT, 3),
            Read::Datagrams(SEGMENT, 1),
            Read::Datagrams(0, 1),
            Read::Error(libc::ENOSYS),
        ] {
            let to = Script::new().reads(&[read]);
            assert!(!carried(&from, &to), "{read:?}");
        }
    }
}
