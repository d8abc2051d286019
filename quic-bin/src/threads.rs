//! A server's threads: each has a socket of its own on the same address, a loop, and an endpoint.

use std::{iter, net::SocketAddr, thread};

use quic_udp::Socket;

use crate::{
    event_loop::EventLoop,
    failure::Failure,
    post::Post,
    server::{Server, Shared},
    signals::Termination,
};

/// Binds the sockets of a server with so many threads.
///
/// # Errors
///
/// A line that names the address.
pub fn bind(address: SocketAddr, threads: u16) -> Result<Vec<Socket>, Failure> {
    Socket::bind_shared(address, threads)
        .map_err(|error| Failure::new(format!("can't listen on {address}: {error}")))
}

/// Serves on `sockets`, each in a thread of its own, the first in this one, until the server is ended; if one of them
/// fails, so do all. Of each of the `others` every thread gets one, too.
///
/// # Errors
///
/// What failed first.
pub fn serve(
    shared: &Shared,
    sockets: Vec<Socket>,
    others: Vec<Vec<Socket>>,
) -> Result<(), Failure> {
    let mut others: Vec<_> = others.into_iter().map(Vec::into_iter).collect();
    let mut loops = Vec::new();
    for socket in sockets {
        let mut events =
            EventLoop::new().map_err(|error| Failure::new(format!("no poller: {error}")))?;
        let others = others.iter_mut().filter_map(Iterator::next);
        for socket in iter::once(socket).chain(others) {
            events
                .add(socket)
                .map_err(|error| Failure::new(format!("can't poll the socket: {error}")))?;
        }
        shared.termination().wakes(events.waker());
        loops.push(events);
    }
    let posts = if loops.len() == 1 {
        vec![Post::alone()]
    } else {
        Post::among(loops.iter().map(EventLoop::waker).collect())
    };
    let mut threads = Vec::new();
    for (events, post) in loops.into_iter().zip(posts) {
        let server = shared.server(post, events.waker())?;
        threads.push((events, server));
    }
    thread::scope(|scope| {
        let mut threads = threads.into_iter();
        let first = threads.next();
        let others: Vec<_> = threads
            .map(|(events, server)| scope.spawn(|| run_one(events, server, shared.termination())))
            .collect();
        let first = first.map(|(events, server)| run_one(events, server, shared.termination()));
        let others = others.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_panic| Err(Failure::new("a thread of the server panicked")))
        });
        first.into_iter().chain(others).collect()
    })
}

/// Runs one thread's loop; its failure is the end of the others.
fn run_one(
    mut events: EventLoop,
    mut server: Server,
    termination: &Termination,
) -> Result<(), Failure> {
    let result = events
        .run(&mut server)
        .map_err(|error| Failure::new(format!("the socket failed: {error}")));
    if result.is_err() {
        termination.request();
    }
    result
}
