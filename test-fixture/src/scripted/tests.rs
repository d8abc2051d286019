//! Two scripted peers with each other.

use std::net::SocketAddr;
use std::time::Duration;

use super::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, client_config, frames, server_config,
};
use crate::certificates::ed25519;
use crate::network::{Link, Network};

struct Two {
    network: Network,
    client: ScriptedPeer,
    server: ScriptedPeer,
}

impl Two {
    fn new() -> Self {
        let addresses: [SocketAddr; 2] = [([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into()];
        let certificate = ed25519(&["localhost"]);
        let config = client_config(&certificate.chain[0], &[b"test"]);
        let parameters = Parameters::generous();
        let mut network = Network::new(1, &addresses);
        network.set_links(Link::delayed(Duration::from_millis(10)));
        let server = server_config(&certificate, &[b"test"]);
        Self {
            network,
            client: ScriptedPeer::client(config, "localhost", parameters.clone(), addresses[1], 1),
            server: ScriptedPeer::server(server, parameters, 2),
        }
    }

    fn run(&mut self) {
        self.network.run(
            &mut [&mut self.client, &mut self.server],
            Duration::from_secs(1),
        );
    }
}

#[test]
fn two_scripted_peers_shake_hands_and_talk() {
    let mut two = Two::new();
    two.run();
    assert!(two.client.is_complete() && two.server.is_complete());
    assert!(
        two.client
            .frames(Level::OneRtt)
            .any(|frame| *frame == SeenFrame::HandshakeDone)
    );
    assert!(two.client.remote_parameters().is_some());

    two.client.forget();
    two.client
        .send(Level::OneRtt, &frames::stream(0, 0, b"hello", true));
    two.server
        .send(Level::OneRtt, &frames::connection_close(7, 8, b"no"));
    two.run();
    let expected = SeenFrame::Stream {
        id: 0,
        offset: 0,
        data: b"hello".to_vec(),
        fin: true,
    };
    assert!(
        two.server
            .frames(Level::OneRtt)
            .any(|frame| *frame == expected)
    );
    assert_eq!(two.client.close_code(), Some(7));
    assert_eq!(two.client.unreadable().len(), 0);
}

#[test]
fn key_updates_are_followed() {
    let mut two = Two::new();
    two.run();
    for _ in 0..3 {
        two.client.update_keys();
        two.client.send(Level::OneRtt, &frames::ping());
        two.run();
        two.server.send(Level::OneRtt, &frames::ping());
        two.run();
    }
    assert_eq!(two.client.unreadable().len(), 0);
    assert_eq!(two.server.unreadable().len(), 0);
    assert_eq!(two.client.phases(), (3, 3));
    assert_eq!(two.server.phases(), (3, 3));
}

#[test]
fn a_draft_may_be_wrong() {
    let mut two = Two::new();
    two.run();
    let mut draft = Draft::new(Level::OneRtt, &[1]);
    draft.number = Some(100);
    draft.size = 900;
    let packet = two.client.seal(&draft);
    assert_eq!(packet.len(), 900);
    two.client.send_datagram(packet);
    two.client
        .send_datagram(b"\x40 nothing that can be opened".to_vec());
    two.run();
    let last = two.server.packets().last().unwrap();
    assert_eq!((last.number, last.datagram_length), (100, 900));
    assert_eq!(two.server.unreadable().len(), 1);
}
