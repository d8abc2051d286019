//! Connection IDs that a load balancer can read.

use quic_common::Reader;

use super::byte;
use crate::cid::Routing;

/// Makes a configuration as the bytes say, and an ID of what is left: the load balancer finds its server, and reads
/// anything else without harm.
pub fn routing(bytes: &[u8]) {
    let _done = routed(&mut Reader::new(bytes));
}

fn routed(input: &mut Reader<'_>) -> Option<()> {
    let rotation = input.u8().ok()?;
    let server_length = byte(input)? % 24;
    let nonce_length = byte(input)? % 24;
    let key: Option<[u8; 16]> = if byte(input)? % 2 == 0 {
        None
    } else {
        Some(input.array().ok()?)
    };
    let server = input.bytes(server_length).ok()?;
    let made = Routing::new(rotation, server, nonce_length, key.as_ref());
    let is_sound = rotation < 7
        && (1..=19).contains(&server_length)
        && (4..=19).contains(&nonce_length)
        && server_length + nonce_length <= 19;
    assert_eq!(made.is_ok(), is_sound);
    let routing = made.ok()?;
    if let Some(found) = routing.server_id_of(input.rest()) {
        assert_eq!(found.len(), server_length);
    }
    let cid = routing.cid(input.rest())?;
    assert_eq!(cid.len(), routing.cid_length());
    assert_eq!(
        routing.server_id_of(cid.as_slice()).as_deref(),
        Some(server)
    );
    Some(())
}
