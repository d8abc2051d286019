//! Real sockets on the loopback interface.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "test code"
)]

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use quic_common::{BatchBuffer, BatchHead, Ecn, MAX_BATCH_BYTES, SHARE_BYTES, Share};
use quic_udp::{Fault, IcmpKind, ReceiveBuffer, Sent, Socket};

/// A received datagram, owned.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    remote: SocketAddr,
    local: Option<SocketAddr>,
    ecn: Ecn,
    payload: Vec<u8>,
}

fn socket(address: &str) -> Option<Socket> {
    match Socket::bind(address.parse().unwrap()) {
        Ok(socket) => Some(socket),
        Err(error) if address.starts_with('[') => {
            println!("skipped: no IPv6 here ({error})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

const fn head(remote: SocketAddr, length: usize, segment: usize) -> BatchHead {
    BatchHead {
        remote,
        local: None,
        ecn: Ecn::Ect0,
        length,
        segment,
    }
}

/// A buffer whose datagram `i` is filled with `i`.
fn numbered(length: usize, segment: usize) -> BatchBuffer {
    let mut buffer = BatchBuffer::new();
    let datagrams = buffer.bytes_mut()[..length].chunks_mut(segment);
    for (number, datagram) in datagrams.enumerate() {
        datagram.fill(u8::try_from(number % 256).unwrap());
    }
    buffer
}

/// Receives `count` datagrams, within a second.
fn receive(socket: &mut Socket, count: usize) -> Vec<Got> {
    let mut buffer = ReceiveBuffer::new();
    let mut got = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(1);
    while got.len() < count {
        match socket.receive(&mut buffer) {
            Ok(datagrams) => got.extend(datagrams.map(|datagram| Got {
                remote: datagram.remote,
                local: datagram.local,
                ecn: datagram.ecn,
                payload: datagram.payload.to_vec(),
            })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                assert!(
                    Instant::now() < deadline,
                    "{} of {count} arrived",
                    got.len()
                );
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
    got
}

fn check_batch(from: &str, to: &str, length: usize, segment: usize) {
    let (Some(mut sender), Some(mut receiver)) = (socket(from), socket(to)) else {
        return;
    };
    let mut buffer = numbered(length, segment);
    let head = head(receiver.local_address(), length, segment);
    assert_eq!(sender.send_or_park(&mut buffer, head), Sent::All);
    let got = receive(&mut receiver, head.datagrams());
    assert_eq!(got.len(), head.datagrams());
    for (number, datagram) in got.iter().enumerate() {
        assert_eq!(datagram.remote, sender.local_address());
        assert_eq!(datagram.local, Some(receiver.local_address()));
        assert_eq!(datagram.ecn, Ecn::Ect0);
        let expected = u8::try_from(number % 256).unwrap();
        assert!(datagram.payload.iter().all(|byte| *byte == expected));
        let size = segment.min(length - number * segment);
        assert_eq!(datagram.payload.len(), size);
    }
    let (sent, arrived) = (sender.counters(), receiver.counters());
    assert_eq!(sent.sent_bytes, u64::try_from(length).unwrap());
    assert_eq!(sent.sent_datagrams, arrived.received_datagrams);
    assert_eq!(sent.sent_bytes, arrived.received_bytes);
    if sender.segments() > 1 {
        let calls = if to.starts_with('[') && length > 65487 {
            2
        } else {
            1
        };
        assert_eq!(sent.sent_calls, calls);
    }
}

#[test]
fn a_full_batch_crosses_ipv4() {
    check_batch("127.0.0.1:0", "127.0.0.1:0", 45 * 1452 + 100, 1452);
    check_batch("127.0.0.1:0", "127.0.0.1:0", 64 * 1000, 1000);
    check_batch("127.0.0.1:0", "127.0.0.1:0", MAX_BATCH_BYTES, 1452);
}

#[test]
fn a_full_batch_crosses_ipv6() {
    check_batch("[::1]:0", "[::1]:0", 44 * 1452 + 100, 1452);
    check_batch("[::1]:0", "[::1]:0", MAX_BATCH_BYTES, 1452);
}

#[test]
fn the_largest_datagrams_cross() {
    check_batch(
        "127.0.0.1:0",
        "127.0.0.1:0",
        MAX_BATCH_BYTES,
        MAX_BATCH_BYTES,
    );
    check_batch("[::1]:0", "[::1]:0", 65487, 65487);
    check_batch("127.0.0.1:0", "127.0.0.1:0", 1, 1);
}

#[test]
fn dual_stack_peers_are_seen_as_ipv4_both_ways() {
    let Some(mut server) = socket("[::]:0") else {
        return;
    };
    if !server.is_dual_stack() {
        println!("skipped: no dual-stack sockets here");
        return;
    }
    let port = server.local_address().port();
    let server_address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut client = socket("127.0.0.1:0").unwrap();
    let mut buffer = numbered(3000, 1200);
    let sent = client.send_or_park(&mut buffer, head(server_address, 3000, 1200));
    assert_eq!(sent, Sent::All);
    let got = receive(&mut server, 3);
    assert_eq!(got[0].remote, client.local_address());
    assert_eq!(got[0].local, Some(server_address));
    assert_eq!(got[0].ecn, Ecn::Ect0);

    let mut answer = head(got[0].remote, 3000, 1200);
    answer.local = got[0].local;
    assert_eq!(server.send_or_park(&mut buffer, answer), Sent::All);
    let got = receive(&mut client, 3);
    assert_eq!(got[0].remote, server_address);
    assert_eq!(got[0].ecn, Ecn::Ect0);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_wildcard_socket_answers_from_the_address_that_was_asked() {
    let mut server = socket("0.0.0.0:0").unwrap();
    let asked = SocketAddr::from(([127, 0, 0, 7], server.local_address().port()));
    let mut client = Socket::bind_for(asked).unwrap();
    let mut buffer = numbered(100, 100);
    assert_eq!(
        client.send_or_park(&mut buffer, head(asked, 100, 100)),
        Sent::All
    );
    let question = receive(&mut server, 1).remove(0);
    let mut answer = head(question.remote, 100, 100);
    answer.local = question.local;
    assert_eq!(server.send_or_park(&mut buffer, answer), Sent::All);
    assert_eq!(receive(&mut client, 1)[0].remote, asked);
}

#[test]
fn empty_datagrams_arrive_and_are_counted() {
    let mut receiver = socket("127.0.0.1:0").unwrap();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..10 {
        sender.send_to(&[], receiver.local_address()).unwrap();
    }
    let got = receive(&mut receiver, 10);
    assert!(got.iter().all(|datagram| datagram.payload.is_empty()));
    assert_eq!(receiver.counters().received_datagrams, 10);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_closed_port_is_reported_to_who_asks_for_it_and_the_socket_lives_on() {
    for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
        let Some(closed) = socket(address) else {
            continue;
        };
        let port = closed.local_address().port();
        drop(closed);
        let Some(mut client) = socket(address) else {
            continue;
        };
        client.enable_icmp_errors().unwrap();
        let ip = match address {
            "[::1]:0" => "::1",
            _ => "127.0.0.1",
        };
        let remote = SocketAddr::new(ip.parse().unwrap(), port);
        let mut buffer = numbered(2400, 1200);
        let mut errors = 0;
        for _ in 0..10 {
            assert_eq!(
                client.send_or_park(&mut buffer, head(remote, 2400, 1200)),
                Sent::All
            );
            let mut memory = ReceiveBuffer::new();
            let kind = client.receive(&mut memory).map(Iterator::count);
            assert_eq!(kind.unwrap_err().kind(), io::ErrorKind::WouldBlock);
            while let Some(error) = client.icmp_error() {
                assert_eq!(error.kind, IcmpKind::Unreachable);
                assert_eq!(error.from.map(|from| from.ip()), Some(remote.ip()));
                errors += 1;
            }
        }
        assert!(errors >= 10, "{address}: {errors}");
    }
}

#[test]
fn a_closed_port_is_nothing_to_who_does_not_ask() {
    let closed = socket("127.0.0.1:0").unwrap();
    let remote = closed.local_address();
    drop(closed);
    let mut server = socket("127.0.0.1:0").unwrap();
    let mut buffer = numbered(100, 100);
    for _ in 0..10 {
        assert_eq!(
            server.send_or_park(&mut buffer, head(remote, 100, 100)),
            Sent::All
        );
        assert_eq!(server.icmp_error(), None);
    }
}

#[test]
fn a_family_that_the_socket_lacks_is_unreachable() {
    let mut sender = socket("127.0.0.1:0").unwrap();
    let mut buffer = numbered(100, 100);
    let sent = sender.send_or_park(&mut buffer, head("[::1]:9".parse().unwrap(), 100, 100));
    assert_eq!(sent, Sent::Lost(Fault::Unreachable));
}

#[test]
fn granted_buffer_sizes_are_read_back() {
    let mut socket = socket("127.0.0.1:0").unwrap();
    assert!(socket.send_buffer().granted > 0);
    let (send, receive) = socket.resize_buffers(100_000, usize::MAX / 4).unwrap();
    assert!(!send.is_clamped(), "{send:?}");
    assert!(receive.is_clamped());
    assert_eq!(socket.receive_buffer(), receive);
}

/// A datagram that looks like a QUIC packet to the kernel: a header's first bytes, and the connection ID.
#[cfg(target_os = "linux")]
fn packet(is_long: bool, cid: &[u8]) -> Vec<u8> {
    let mut packet = if is_long {
        vec![0xc0, 0, 0, 0, 1, u8::try_from(cid.len()).unwrap()]
    } else {
        vec![0x40]
    };
    packet.extend_from_slice(cid);
    packet
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_finds_the_thread_of_a_connection() {
    let count = 3;
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(mut sockets) = Socket::bind_shared(address.parse().unwrap(), count) else {
            println!("skipped: {address} isn't there");
            continue;
        };
        let server = sockets[0].local_address();
        let mut client = Socket::bind_for(server).unwrap();
        for number in 0..30_u32 {
            let mut cid = [7; 12];
            cid[SHARE_BYTES].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
            let owner = Share::new(0, count).unwrap().owner(&cid);
            for payload in [packet(true, &cid), packet(false, &cid[..8])] {
                let mut buffer = BatchBuffer::new();
                buffer.bytes_mut()[..payload.len()].copy_from_slice(&payload);
                let head = head(server, payload.len(), payload.len());
                assert_eq!(client.send(buffer.batch(head)), Sent::All);
                let got = receive(&mut sockets[usize::from(owner)], 1);
                assert_eq!(got[0].payload, payload);
            }
        }
        // What is too short to tell goes to the first.
        let mut buffer = BatchBuffer::new();
        buffer.bytes_mut()[0] = 0x40;
        assert_eq!(client.send(buffer.batch(head(server, 1, 1))), Sent::All);
        assert_eq!(receive(&mut sockets[0], 1)[0].payload, [0x40]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nobody_joins_the_sockets_of_another() {
    let sockets = Socket::bind_shared("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let address = sockets[0].local_address();
    for count in [1, 2] {
        let error = Socket::bind_shared(address, count).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
