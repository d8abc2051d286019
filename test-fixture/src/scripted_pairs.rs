//! One end of ours and a scripted peer, 10 ms apart and before their handshake: what tests of single rules begin with.

use std::time::Duration;

use crate::ends::{Client, Log, Server, Settings};
use crate::network::Link;
use crate::pair::Pair;
use crate::scripted::{Level, Parameters, ScriptedPeer, frames};

/// A scripted client, and our server.
pub type ToServer = Pair<ScriptedPeer, Server<Log>>;

/// Our client, and a scripted server.
pub type ToClient = Pair<Client<Log>, ScriptedPeer>;

/// There and back again, with some time to spare.
pub const ROUND_TRIP: Duration = Duration::from_millis(25);

/// A path without loss.
#[must_use]
pub fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

/// A scripted client that has sent nothing yet.
#[must_use]
pub fn to_server() -> ToServer {
    ToServer::scripted_client(&Settings::default(), Parameters::generous(), link())
}

/// A scripted server that has heard nothing yet.
#[must_use]
pub fn to_client() -> ToClient {
    ToClient::scripted_server(&Settings::default(), Parameters::generous(), link())
}

/// A server that has sent its flight and waits for the client's Finished, which the script holds back.
#[must_use]
pub fn to_waiting_server() -> ToServer {
    let mut pair = to_server();
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(ROUND_TRIP);
    assert!(pair.client.is_complete(), "the whole flight is there");
    pair
}
