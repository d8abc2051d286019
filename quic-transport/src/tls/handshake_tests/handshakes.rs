//! What a handshake agrees on, and how it fails.

use super::*;

#[test]
fn handshakes_with_every_suite_and_kind_of_certificate() {
    for algorithm in [&PKCS_ED25519, &PKCS_ECDSA_P256_SHA256] {
        for identity in [
            self_signed(algorithm, &["example.com"]),
            issued(algorithm, &["example.com"]),
        ] {
            for suite in CipherSuite::ALL {
                let client = identity.client().cipher_suites(&[suite]).unwrap();
                let mut pair = Pair::new(&client, &identity.server());
                pair.run().unwrap();
                pair.check_complete(suite);
                assert_eq!(pair.server.session.server_name(), Some("example.com"));
                let chain = pair.client.session.peer_certificates().unwrap();
                assert_eq!(chain, std::slice::from_ref(&identity.certificate));
                assert!(!pair.client.session.is_resumed());
            }
        }
    }
}

#[test]
fn bytes_may_come_one_by_one() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let mut pair = Pair::new(&identity.client(), &identity.server());
    pair.run_in_pieces(1).unwrap();
    pair.check_complete(CipherSuite::Aes128Gcm);
}

#[test]
fn keys_of_version_2_fit_too() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let (client, server) = (identity.client(), identity.server());
    let mut pair = Pair::named(&client, &server, "example.com", Version::V2);
    pair.run().unwrap();
    pair.check_complete(CipherSuite::Aes128Gcm);
}

#[test]
fn the_server_prefers_aes_128_unless_the_client_puts_chacha20_first() {
    use CipherSuite::{Aes128Gcm, Aes256Gcm, ChaCha20Poly1305};
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    for (offered, chosen) in [
        (&[Aes256Gcm, Aes128Gcm][..], Aes128Gcm),
        (&[Aes256Gcm, ChaCha20Poly1305], Aes256Gcm),
        (&[ChaCha20Poly1305, Aes128Gcm], ChaCha20Poly1305),
    ] {
        let client = identity.client().cipher_suites(offered).unwrap();
        let mut pair = Pair::new(&client, &identity.server());
        let hello = pair.client.flight().remove(0).1;
        let read = ClientHello::parse(&hello).unwrap().unwrap();
        assert_eq!(read.prefers_chacha20, offered[0] == ChaCha20Poly1305);
        pair.server.session.read(Level::Initial, &hello).unwrap();
        pair.run().unwrap();
        pair.check_complete(chosen);
    }
}

#[test]
fn the_client_hello_reader_sees_what_rustls_wrote() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let mut pair = Pair::new(&identity.client(), &identity.server());
    let (level, bytes) = pair.client.flight().remove(0);
    assert_eq!(level, Level::Initial);
    let hello = ClientHello::parse(&bytes).unwrap().unwrap();
    assert_eq!(hello.server_name, Some("example.com"));
    assert!(hello.alpn().eq(ALPN.iter().copied()));
    assert_eq!(hello.transport_parameters, Some(CLIENT_PARAMETERS));
    assert_eq!((hello.psk_identity, hello.early_data), (None, false));
}

#[test]
fn an_address_is_a_name_too_and_is_not_sent() {
    let identity = self_signed(&PKCS_ED25519, &["192.0.2.1", "2001:db8::1"]);
    for name in ["192.0.2.1", "2001:db8::1"] {
        let (client, server) = (identity.client(), identity.server());
        let mut pair = Pair::named(&client, &server, name, Version::V1);
        pair.run().unwrap();
        assert_eq!(pair.server.session.server_name(), None);
    }
    for name in ["", "a b", "[::1]", "-"] {
        let session = Session::client(&identity.client(), Version::V1, (name, 443), &[], false);
        assert_eq!(session.unwrap_err(), ApiError::ServerName, "{name}");
    }
}

/// RFC 9001, 8.1: no protocol in common is alert 120.
#[test]
fn no_protocol_in_common_is_alert_120() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let chain = vec![identity.certificate.clone()];
    let server = ServerConfig::new(chain, identity.key.clone_key(), &[b"hq-interop"]).unwrap();
    let (side, error) = Pair::new(&identity.client(), &server).run().unwrap_err();
    assert_eq!(side, Side::Server);
    assert_eq!(error.code, TransportErrorCode::new(0x178));
    assert_eq!(error.reason, "no application protocol in common");
}

#[test]
fn no_suite_in_common_is_a_handshake_failure() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let client = identity
        .client()
        .cipher_suites(&[CipherSuite::Aes128Gcm])
        .unwrap();
    let server = identity
        .server()
        .cipher_suites(&[CipherSuite::Aes256Gcm])
        .unwrap();
    let (side, error) = Pair::new(&client, &server).run().unwrap_err();
    assert_eq!((side, error.code.value()), (Side::Server, 0x128));
    assert_eq!(error.reason, "no cipher suite in common");
}

/// RFC 9001, 4.1.3: data of a level that has ended, or that another message should have filled.
#[test]
fn data_at_a_wrong_level_is_a_protocol_violation() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let mut pair = Pair::new(&identity.client(), &identity.server());
    for level in [Level::Handshake, Level::ZeroRtt, Level::OneRtt] {
        let error = pair.client.session.read(level, &[0]).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    }
    pair.run().unwrap();
    for level in [Level::Initial, Level::Handshake] {
        let error = pair.server.session.read(level, &[0]).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    }

    let mut pair = Pair::new(&identity.client(), &identity.server());
    let mut hello = pair.client.flight().remove(0).1;
    hello.push(1);
    let error = pair
        .server
        .session
        .read(Level::Initial, &hello)
        .unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

/// RFC 9001, 6: a TLS KeyUpdate message is unexpected_message.
#[test]
fn a_tls_key_update_is_refused() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let mut pair = Pair::new(&identity.client(), &identity.server());
    pair.run().unwrap();
    for end in [&mut pair.client, &mut pair.server] {
        let error = end
            .session
            .read(Level::OneRtt, &[24, 0, 0, 1, 0])
            .unwrap_err();
        assert_eq!(error.code, TransportErrorCode::new(0x10a));
    }
}

#[test]
fn any_change_to_the_servers_flight_is_refused() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let (client, server) = (identity.client(), identity.server());
    for place in (0..).step_by(7) {
        let mut pair = Pair::new(&client, &server);
        let hello = pair.client.flight().remove(0).1;
        pair.server.session.read(Level::Initial, &hello).unwrap();
        let mut flight = pair.server.flight();
        let mut bytes = flight.iter_mut().flat_map(|(_, bytes)| bytes);
        let Some(byte) = bytes.nth(place) else {
            assert!(place > 300);
            break;
        };
        *byte ^= 0x10;
        for (level, bytes) in flight {
            if pair.client.session.read(level, &bytes).is_err() {
                break;
            }
            pair.client.flight();
        }
        assert!(pair.client.one_rtt.is_none(), "{place}");
    }
}

#[test]
fn a_second_handshake_resumes_unless_told_not_to() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let (client, server) = (identity.client(), identity.server());
    for is_resumed in [false, true, true] {
        let mut pair = Pair::new(&client, &server);
        let parameters = pair.client.session.peer_transport_parameters();
        assert_eq!(parameters, None, "those of the earlier session are none");
        pair.run().unwrap();
        pair.check_complete(CipherSuite::Aes128Gcm);
        assert_eq!(pair.client.session.is_resumed(), is_resumed);
        assert_eq!(pair.server.session.is_resumed(), is_resumed);
    }
    for (client, server) in [
        (client.without_resumption(), server.clone()),
        (identity.client(), server.without_resumption()),
    ] {
        for _ in 0..2 {
            let mut pair = Pair::new(&client, &server);
            pair.run().unwrap();
            assert!(!pair.client.session.is_resumed());
        }
    }
}

#[test]
fn the_users_key_log_gets_the_secrets_of_both_ends() {
    #[derive(Debug, Default)]
    struct Lines(Mutex<Vec<(String, Vec<u8>)>>);
    impl KeyLog for Lines {
        fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
            self.0
                .lock()
                .unwrap()
                .push((label.to_owned(), secret.to_vec()));
        }
    }
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let logs = [Arc::new(Lines::default()), Arc::new(Lines::default())];
    let client = identity.client().key_log(Arc::<Lines>::clone(&logs[0]));
    let server = identity.server().key_log(Arc::<Lines>::clone(&logs[1]));
    Pair::new(&client, &server).run().unwrap();
    let [client, server] = logs.map(|log| {
        let mut lines = log.0.lock().unwrap().clone();
        lines.sort();
        lines
    });
    assert_eq!(client, server);
    assert_eq!(client.len(), 5);
}

#[test]
fn configurations_that_can_not_work_are_refused() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    assert!(ClientConfig::with_roots([], ALPN).is_err());
    assert!(ClientConfig::with_root_store(RootCertStore::empty(), ALPN).is_err());
    let garbage = CertificateDer::from(vec![1, 2, 3]);
    assert!(ClientConfig::with_roots([garbage], ALPN).is_err());
    for alpn in [&[][..], &[&b""[..]], &[&[b'a'; 256][..]]] {
        assert!(ClientConfig::insecure(alpn).is_err());
        let chain = vec![identity.certificate.clone()];
        assert!(ServerConfig::new(chain, identity.key.clone_key(), alpn).is_err());
    }
    assert!(ClientConfig::insecure(&[&[b'a'; 255]]).is_ok());
    assert!(identity.client().cipher_suites(&[]).is_err());
    let other = self_signed(&PKCS_ED25519, &["example.com"]);
    let mismatch = ServerConfig::new(vec![identity.certificate], other.key, ALPN);
    assert_eq!(
        mismatch.unwrap_err(),
        ApiError::Tls("the private key does not belong to the certificate")
    );
}

/// RFC 8446, 7.5: what a session that has ended exports is what rustls would have, with each suite's hash.
#[test]
fn what_is_known_outlives_the_session() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    for suite in CipherSuite::ALL {
        let client = identity.client().cipher_suites(&[suite]).unwrap();
        let mut pair = Pair::new(&client, &identity.server());
        pair.server.session.end();
        assert!(pair.server.session.is_handshaking(), "too early to end");
        pair.run().unwrap();
        let mut export = |is_ended| {
            let session = &mut pair.server.session;
            if is_ended {
                session.end();
            }
            let known = (
                session.server_name().map(str::to_owned),
                session.alpn().map(<[u8]>::to_vec),
                (session.suite(), session.key_exchange_group()),
                (session.is_resumed(), session.is_handshaking()),
                session.peer_certificates().is_some(),
            );
            let mut secrets = Vec::new();
            for (label, context) in [
                (&b"one"[..], None),
                (b"one", Some(&b"context"[..])),
                (&[b'x'; 249], Some(b"")),
            ] {
                for length in [0, 1, 32, 100, 255 * 32] {
                    let mut out = vec![0; length];
                    session.export(&mut out, label, context).unwrap();
                    secrets.push(out);
                }
            }
            (known, secrets)
        };
        assert_eq!(export(false), export(true));
        let session = &pair.server.session;
        let mut long = vec![0; 255 * suite.secret_length()];
        assert_eq!(session.export(&mut long, b"one", None), Ok(()));
        long.push(0);
        let refused = session.export(&mut long, b"one", None);
        assert_eq!(refused, Err(ApiError::TooLarge));
        let refused = session.export(&mut [0; 32], &[b'x'; 250], None);
        assert_eq!(refused, Err(ApiError::TooLarge));
    }
}

/// RFC 9001, 4.4 and 6: a server whose session has ended refuses every message.
#[test]
fn a_session_that_has_ended_takes_no_message() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let mut pair = Pair::new(&identity.client(), &identity.server());
    pair.run().unwrap();
    let session = &mut pair.server.session;
    session.end();
    assert!(session.write(&mut Vec::new()).is_none());
    for message in [&[24, 0, 0, 1, 0][..], &[4], &[11, 0]] {
        let error = session.read(Level::OneRtt, message).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::new(0x10a));
    }
    let error = session.read(Level::Handshake, &[20]).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}
