//! System calls that a sandbox refuses: one thread is put into one, and the sockets in it go on.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "test code")]

use std::{
    io, thread,
    time::{Duration, Instant},
};

use quic_common::{BatchBuffer, BatchHead, Ecn};
use quic_udp::{ReceiveBuffer, Sent, Socket};

/// Has the kernel fail these calls of the thread, for good.
fn refuse(calls: &[libc::c_long], code: i32) {
    let step = |code: u32, jf, k| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf,
        k,
    };
    let answer = |k| step(libc::BPF_RET | libc::BPF_K, 0, k);
    let error = libc::SECCOMP_RET_ERRNO | u32::try_from(code).unwrap();
    // The number of the call is the first thing that the program is shown.
    let mut program = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for call in calls {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        program.push(step(equal, 1, u32::try_from(*call).unwrap()));
        program.push(answer(error));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    install(&filter);
}

#[expect(unsafe_code, reason = "no crate here puts a thread into a sandbox")]
fn install(filter: &libc::sock_fprog) {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    // SAFETY: the program, which the kernel copies, lives until the call is over.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, filter) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Three datagrams, sent twice, arrive singly and in their order. Returns their mark.
fn exchange() -> Ecn {
    let mut sender = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut receiver = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut buffer = BatchBuffer::new();
    for (byte, value) in buffer.bytes_mut().iter_mut().zip((0..250).cycle()) {
        *byte = value;
    }
    let head = BatchHead {
        remote: receiver.local_address(),
        local: None,
        ecn: Ecn::Ect0,
        length: 2500,
        segment: 1000,
    };
    for _ in 0..2 {
        assert_eq!(sender.send_or_park(&mut buffer, head), Sent::All);
    }
    let mut marks = Vec::new();
    let (mut got, mut memory) = (Vec::new(), ReceiveBuffer::new());
    let deadline = Instant::now() + Duration::from_secs(5);
    while got.len() < 5000 {
        assert!(Instant::now() < deadline, "{} bytes came", got.len());
        let Ok(datagrams) = receiver.receive(&mut memory) else {
            continue;
        };
        for datagram in datagrams {
            assert_eq!(datagram.remote, sender.local_address());
            assert_eq!(datagram.local, Some(receiver.local_address()));
            marks.push(datagram.ecn);
            got.extend_from_slice(datagram.payload);
        }
    }
    let sent = buffer.bytes_mut().get(..2500).unwrap().repeat(2);
    assert!(got == sent, "in their order");
    assert_eq!(marks.len(), 6);
    marks.dedup();
    assert_eq!(marks.len(), 1);
    marks.pop().unwrap()
}

fn exchange_without(calls: &'static [libc::c_long], code: i32) -> Ecn {
    let sandbox = thread::spawn(move || {
        refuse(calls, code);
        exchange()
    });
    sandbox.join().unwrap()
}

#[test]
fn sockets_go_on_without_the_calls_for_messages() {
    assert_eq!(exchange(), Ecn::Ect0);
    let all = &[libc::SYS_sendmsg, libc::SYS_recvmmsg];
    assert_eq!(exchange_without(all, libc::ENOSYS), Ecn::NotEct);
    assert_eq!(exchange_without(&all[..1], libc::ENOSYS), Ecn::NotEct);
    assert_eq!(exchange_without(&all[1..], libc::ENOSYS), Ecn::NotEct);
}

#[test]
fn sockets_go_on_where_no_option_is_accepted() {
    let sends = &[libc::SYS_sendmsg];
    assert_eq!(exchange_without(sends, libc::EINVAL), Ecn::NotEct);
}
