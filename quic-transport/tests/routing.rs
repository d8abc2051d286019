//! Connection IDs by which a load balancer finds the server (draft-ietf-quic-load-balancers-21).

use std::sync::Arc;
use std::time::Duration;

use quic_transport::{CidGenerator, Direction, Routing};
use test_fixture::Pair;
use test_fixture::ends::{Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenFrame};

/// All IDs of a connection lead to the server, those of the handshake and those that come later.
#[test]
fn every_id_of_a_server_leads_to_it() {
    for key in [None, Some(&[7; 16])] {
        // The scripted client takes IDs of 8 bytes.
        let routing = Arc::new(Routing::new(3, b"srv", 4, key).unwrap());
        let settings = Settings {
            cids: Some(CidGenerator::Routable(Arc::clone(&routing))),
            ..Settings::default()
        };
        let mut pair = Pair::<ScriptedPeer, Server<Log>>::scripted_client(
            &settings,
            Parameters::generous(),
            Link::delayed(Duration::from_millis(10)),
        );
        pair.handshake();
        let leads_home = |cid: &[u8]| routing.server_id_of(cid).as_deref() == Some(&b"srv"[..]);
        assert!(leads_home(pair.client.remote_cid()));
        let mut later = 0;
        for frame in pair.client.frames(Level::OneRtt) {
            if let SeenFrame::NewConnectionId { cid, .. } = frame {
                assert!(leads_home(cid));
                later += 1;
            }
        }
        assert!(later > 0);
        let (server, _) = pair.server.connection(0).unwrap();
        assert!(server.open(Direction::Unidirectional).is_some());
    }
}
