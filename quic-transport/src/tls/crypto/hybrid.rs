//! X25519MLKEM768: a key exchange that is safe as long as one of two is, X25519 or ML-KEM-768
//! ([draft-ietf-tls-ecdhe-mlkem](https://datatracker.ietf.org/doc/draft-ietf-tls-ecdhe-mlkem/), section 4,
//! [FIPS 203](https://doi.org/10.6028/NIST.FIPS.203)).
//!
//! ring does the one and the crate `ml-kem` the other; both shares and both secrets lie end to end, ML-KEM's first.

use ml_kem::{
    Ciphertext, Decapsulate as _, DecapsulationKey, EncapsulationKey, Key, KeyExport as _, MlKem768,
};
use rustls::crypto::ring::{default_provider, kx_group::X25519};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use zeroize::Zeroizing;

/// The group, for a provider's list.
pub(crate) static X25519MLKEM768: &dyn SupportedKxGroup = &Hybrid;

const INVALID_SHARE: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// Bytes of an ML-KEM-768 encapsulation key, which a client's share begins with.
const ENCAPSULATION_KEY: usize = 1184;
/// Bytes of an ML-KEM-768 ciphertext, which a server's share begins with.
const CIPHERTEXT: usize = 1088;

#[derive(Debug)]
struct Hybrid;

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let classical = X25519.start()?;
        let seed: Zeroizing<[u8; 64]> = random()?;
        let key = DecapsulationKey::<MlKem768>::from_seed((*seed).into());
        let mut share = key.encapsulation_key().to_bytes().to_vec();
        share.extend_from_slice(classical.pub_key());
        Ok(Box::new(Started {
            classical,
            key: Box::new(key),
            share,
        }))
    }

    /// A server's answer: what it sends depends on what the client sent.
    fn start_and_complete(&self, client: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, classical) = split(client, ENCAPSULATION_KEY)?;
        let key: &Key<EncapsulationKey<MlKem768>> =
            key.try_into().map_err(|_wrong| INVALID_SHARE)?;
        let key = EncapsulationKey::<MlKem768>::new(key).map_err(|_wrong| INVALID_SHARE)?;
        let message: Zeroizing<[u8; 32]> = random()?;
        let (ciphertext, secret) = key.encapsulate_deterministic(&(*message).into());
        let classical = X25519.start_and_complete(classical)?;
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [ciphertext.as_slice(), &classical.pub_key].concat(),
            secret: join(&Zeroizing::new(secret.into()), &classical.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// A client's side, once its share is made.
struct Started {
    classical: Box<dyn ActiveKeyExchange>,
    key: Box<DecapsulationKey<MlKem768>>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, server: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, classical) = split(server, CIPHERTEXT)?;
        let ciphertext: &Ciphertext<MlKem768> =
            ciphertext.try_into().map_err(|_wrong| INVALID_SHARE)?;
        let secret = Zeroizing::new(self.key.decapsulate(ciphertext).into());
        let classical = self.classical.complete(classical)?;
        Ok(join(&secret, &classical))
    }

    /// Half of the share serves as well with a server that knows only X25519.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.group(), self.classical.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, server: &[u8]) -> Result<SharedSecret, Error> {
        self.classical.complete(server)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

fn split(share: &[u8], first: usize) -> Result<(&[u8], &[u8]), Error> {
    share.split_at_checked(first).ok_or(INVALID_SHARE)
}

fn join(post_quantum: &Zeroizing<[u8; 32]>, classical: &SharedSecret) -> SharedSecret {
    [post_quantum.as_slice(), classical.secret_bytes()]
        .concat()
        .into()
}

fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, Error> {
    let mut bytes = Zeroizing::new([0; N]);
    default_provider()
        .secure_random
        .fill(bytes.as_mut_slice())
        .map_err(|GetRandomFailed| Error::FailedToGetRandomBytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{CIPHERTEXT, ENCAPSULATION_KEY, X25519, X25519MLKEM768};

    #[test]
    fn both_ends_come_to_one_secret() {
        let client = X25519MLKEM768.start().unwrap();
        assert_eq!(client.pub_key().len(), ENCAPSULATION_KEY + 32);
        let server = X25519MLKEM768.start_and_complete(client.pub_key()).unwrap();
        assert_eq!(server.pub_key.len(), CIPHERTEXT + 32);
        let secret = client.complete(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(secret.secret_bytes().len(), 64);
    }

    #[test]
    fn half_of_the_share_is_good_for_x25519() {
        let client = X25519MLKEM768.start().unwrap();
        let (group, half) = client.hybrid_component().unwrap();
        assert_eq!(group, X25519.name());
        let server = X25519.start_and_complete(half).unwrap();
        let secret = client.complete_hybrid_component(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    }

    /// FIPS 203, 7.2 and 7.3: the lengths are checked, and that an encapsulation key has coefficients in range.
    #[test]
    fn shares_that_are_wrong_are_refused() {
        let whole = X25519MLKEM768.start().unwrap().pub_key().to_vec();
        for length in [0, 32, ENCAPSULATION_KEY, whole.len() - 1] {
            assert!(X25519MLKEM768.start_and_complete(&whole[..length]).is_err());
        }
        let mut large = whole.clone();
        large.push(0);
        assert!(X25519MLKEM768.start_and_complete(&large).is_err());
        let mut beyond = whole;
        beyond[..2].fill(0xff);
        assert!(X25519MLKEM768.start_and_complete(&beyond).is_err());
        for length in [0, 32, CIPHERTEXT, CIPHERTEXT + 31, CIPHERTEXT + 33] {
            let client = X25519MLKEM768.start().unwrap();
            assert!(client.complete(&vec![9; length]).is_err());
        }
    }
}
