//! A client that comes back to a server whose limits have changed in the meantime.

use quic_common::Reader;
use quic_transport::{Config, RetryPolicy};

use crate::network::{Chance, Link};
use crate::visit::{self, Visit};

/// Bytes that one request asks for or brings at most.
const MOST: u64 = 60_000;

/// How often the client comes back at most.
const VISITS: usize = 6;

/// Visits a server with limits that the bytes say, and comes back with early data after they have changed, over a
/// network that may lose packets.
///
/// Sessions are resumed whatever the limits are; early data is taken if the server wants it and no limit has shrunk
/// (RFC 9000, 7.4.1). Everything is delivered once and whole, whether it was taken or not.
pub fn resumption(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Some((choice, before)) = input.u8().ok().zip(limits(&mut input)) else {
        return;
    };
    let mut settings = visit::settings();
    settings.server = before;
    if choice & 1 != 0 {
        settings.retry = RetryPolicy::Always;
    }
    let mut visit = Visit::new(&settings);
    for _ in 0..VISITS {
        let Some(limits) = limits(&mut input) else {
            return;
        };
        if come_back(&mut visit, limits, &mut input).is_none() {
            return;
        }
        // Else what ends the connection could be lost, and the server would wait for its idle timeout.
        visit.pair.network.set_links(Link::delayed(visit::DELAY));
        visit.leave();
    }
}

/// One visit: how many requests of which sizes the input says.
fn come_back(visit: &mut Visit, limits: Config, input: &mut Reader<'_>) -> Option<()> {
    let choice = input.u8().ok()?;
    let server = &mut visit.pair.server;
    let before = std::mem::replace(&mut server.config, limits);
    let is_wanted = server.config.early_data && !has_shrunk(&before, &server.config);
    let link = Link {
        loss: Chance::percent(u32::from(choice >> 6) * 5),
        ..Link::delayed(visit::DELAY)
    };
    visit.pair.network.set_links(link);
    visit.come_back();
    let is_sending = visit.client().is_sending_early_data();
    // A session that was made without early data can't be used with it.
    assert_eq!(is_sending, before.early_data);
    let (mut count, mut uploaded) = (0, 0);
    for _ in 0..choice % 4 {
        let size = |input: &mut Reader<'_>| input.u16().map(|size| u64::from(size) % MOST).ok();
        let (download, upload) = (size(input)?, size(input)?);
        if visit.pair.client.request(download, upload).is_some() {
            count += 1;
            uploaded += upload + 8;
        }
    }
    if count == 0 {
        visit.pair.handshake();
    }
    visit.finish(count, uploaded);
    assert!(visit.client().is_resumed());
    assert_eq!(
        visit.client().is_early_data_accepted(),
        is_sending && is_wanted
    );
    Some(())
}

/// A server's limits, every one of them enough for the requests in the end.
fn limits(input: &mut Reader<'_>) -> Option<Config> {
    let [streams, uni, window, connection, early] = input.array::<5>().ok()?;
    let default = Config::default();
    Some(Config {
        max_streams_bidirectional: 1 + u64::from(streams % 4),
        max_streams_unidirectional: u64::from(uni % 4),
        stream_window: 1000 + u64::from(window) * 100,
        connection_window: 1000 + u64::from(connection) * 200,
        early_data: early % 8 != 0,
        ..default
    })
}

const fn has_shrunk(before: &Config, after: &Config) -> bool {
    after.max_streams_bidirectional < before.max_streams_bidirectional
        || after.max_streams_unidirectional < before.max_streams_unidirectional
        || after.stream_window < before.stream_window
        || after.connection_window < before.connection_window
}
