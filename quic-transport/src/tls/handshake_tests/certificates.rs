//! Which certificates a client accepts, and what it says about the others.

use super::*;

#[test]
fn a_certificate_for_another_name_is_refused() {
    let identity = self_signed(&PKCS_ECDSA_P256_SHA256, &["example.org", "192.0.2.1"]);
    let refusal = (0x12a, "the certificate is for another name");
    assert_eq!(
        client_refusal(&identity.client(), &identity.server()),
        refusal
    );
    assert_eq!(
        client_refusal(&identity.pinning_client(), &identity.server()),
        refusal
    );
    let unnamed = self_signed(&PKCS_ED25519, &[]);
    assert_eq!(
        client_refusal(&unnamed.client(), &unnamed.server()),
        refusal
    );
}

#[test]
fn a_certificate_out_of_its_dates_is_refused() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let year = Duration::from_hours(24 * 365);
    for client in [identity.client(), identity.pinning_client()] {
        let late = client.clone().wall_clock(WallClock::manual(NOW + year));
        assert_eq!(
            client_refusal(&late, &identity.server()),
            (0x12d, "the certificate has expired")
        );
        let early = client.wall_clock(WallClock::manual(NOW.checked_sub(year).unwrap()));
        assert_eq!(
            client_refusal(&early, &identity.server()),
            (0x12d, "the certificate is not valid yet")
        );
    }
}

#[test]
fn an_unknown_issuer_is_refused() {
    let trusted = issued(&PKCS_ED25519, &["example.com"]);
    for other in [
        issued(&PKCS_ED25519, &["example.com"]),
        self_signed(&PKCS_ED25519, &["example.com"]),
    ] {
        assert_eq!(
            client_refusal(&trusted.client(), &other.server()),
            (0x130, "the certificate's issuer is not trusted")
        );
    }
}

/// The issuer has a trusted one's name and not its key.
#[test]
fn an_issuer_that_only_has_the_name_is_refused() {
    let [trusted, other] = [(); 2].map(|()| {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let mut parameters = parameters(&["example.com"], &key);
        parameters.distinguished_name = DistinguishedName::new();
        let certificate = parameters.self_signed(&key).unwrap().der().clone();
        Identity {
            root: certificate.clone(),
            certificate,
            key: private(&key),
        }
    });
    assert_eq!(
        client_refusal(&trusted.client(), &other.server()),
        (
            0x133,
            "a signature by the certificate's issuer or key is wrong"
        )
    );
}

#[test]
fn an_authoritys_own_certificate_is_refused_in_clear_words() {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let mut authority = parameters(&["example.com"], &key);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&key).unwrap().der().clone();
    let identity = Identity {
        root: certificate.clone(),
        certificate,
        key: private(&key),
    };
    let (_, reason) = client_refusal(&identity.client(), &identity.server());
    assert_eq!(reason, "the certificate is an authority's, not a server's");
}

#[test]
fn the_pinned_certificate_is_accepted_and_no_other() {
    for algorithm in [&PKCS_ED25519, &PKCS_ECDSA_P256_SHA256] {
        let identity = self_signed(algorithm, &["example.com"]);
        let mut pair = Pair::new(&identity.pinning_client(), &identity.server());
        pair.run().unwrap();
        pair.check_complete(CipherSuite::Aes128Gcm);
        let other = self_signed(algorithm, &["example.com"]);
        assert_eq!(
            client_refusal(&identity.pinning_client(), &other.server()),
            (0x12e, "the certificate is not the pinned one")
        );
    }
}

#[test]
fn a_pinned_certificate_of_an_authority_comes_with_the_authoritys() {
    let identity = issued(&PKCS_ED25519, &["example.com"]);
    let chain = vec![identity.certificate.clone(), identity.root.clone()];
    let server = ServerConfig::new(chain, identity.key.clone_key(), ALPN).unwrap();
    Pair::new(&identity.pinning_client(), &server)
        .run()
        .unwrap();
    let (code, _) = client_refusal(&identity.pinning_client(), &identity.server());
    assert_eq!(code, 0x130);
}

#[test]
fn the_insecure_client_takes_any_certificate_and_says_so() {
    let identity = self_signed(&PKCS_ED25519, &["example.org"]);
    let client = ClientConfig::insecure(ALPN).unwrap();
    assert!(client.is_insecure());
    assert!(!identity.client().is_insecure() && !identity.pinning_client().is_insecure());
    let mut pair = Pair::new(&client, &identity.server());
    pair.run().unwrap();
    pair.check_complete(CipherSuite::Aes128Gcm);
}
