//! The integrity tag of Retry packets, which shows that the sender saw the client's first Initial
//! ([RFC 9001, section 5.8](https://www.rfc-editor.org/rfc/rfc9001#section-5.8)).

use super::crypto::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use super::labels::labels;
use crate::wire::{ConnectionId, Version};

/// Bytes of the tag, at the end of a Retry packet.
pub(crate) const RETRY_TAG_LENGTH: usize = 16;

/// The tag for a Retry packet, given `packet` up to where the tag belongs.
///
/// `original_dcid` is the Destination Connection ID of the Initial that is answered.
pub(crate) fn retry_tag(
    version: Version,
    original_dcid: &ConnectionId,
    packet: &[u8],
) -> [u8; RETRY_TAG_LENGTH] {
    let id = original_dcid.as_slice();
    let mut pseudo = Vec::with_capacity(1 + id.len() + packet.len());
    pseudo.extend(u8::try_from(id.len()));
    pseudo.extend_from_slice(id);
    pseudo.extend_from_slice(packet);
    seal_nothing(version, &pseudo).unwrap_or_else(|| {
        debug_assert!(false, "sealing an empty payload doesn't fail");
        [0; RETRY_TAG_LENGTH]
    })
}

/// Whether `packet`, a whole Retry packet, ends with the right tag.
#[must_use]
pub(crate) fn is_retry_authentic(
    version: Version,
    original_dcid: &ConnectionId,
    packet: &[u8],
) -> bool {
    packet
        .split_last_chunk()
        .is_some_and(|(rest, tag)| retry_tag(version, original_dcid, rest) == *tag)
}

/// The tag of an empty payload with `pseudo` as the associated data.
fn seal_nothing(version: Version, pseudo: &[u8]) -> Option<[u8; RETRY_TAG_LENGTH]> {
    let labels = labels(version);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &labels.retry_key).ok()?);
    let nonce = Nonce::assume_unique_for_key(labels.retry_nonce);
    let tag = key
        .seal_in_place_separate_tag(nonce, Aad::from(pseudo), &mut [])
        .ok()?;
    tag.as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{hex, vectors};
    use super::{is_retry_authentic, retry_tag};
    use crate::wire::{ConnectionId, Version};

    fn sample_cid() -> ConnectionId {
        ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
    }

    /// RFC 9001, A.4.
    #[test]
    fn retry_of_the_rfc() {
        let packet = hex(vectors::RETRY);
        let (rest, tag) = packet.split_last_chunk().unwrap();
        assert_eq!(retry_tag(Version::V1, &sample_cid(), rest), *tag);
        assert!(is_retry_authentic(Version::V1, &sample_cid(), &packet));
    }

    /// RFC 9369, A.4.
    #[test]
    fn retry_of_version_2() {
        let packet = hex(vectors::RETRY_V2);
        assert!(is_retry_authentic(Version::V2, &sample_cid(), &packet));
        assert!(!is_retry_authentic(Version::V1, &sample_cid(), &packet));
        let packet = hex(vectors::RETRY);
        assert!(!is_retry_authentic(Version::V2, &sample_cid(), &packet));
    }

    #[test]
    fn a_retry_for_another_connection_or_with_a_changed_bit_is_not_authentic() {
        let packet = hex(vectors::RETRY);
        assert!(!is_retry_authentic(
            Version::V1,
            &ConnectionId::EMPTY,
            &packet
        ));
        for bit in 0..packet.len() * 8 {
            let mut forged = packet.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_retry_authentic(Version::V1, &sample_cid(), &forged));
        }
        for length in 0..packet.len() {
            assert!(!is_retry_authentic(
                Version::V1,
                &sample_cid(),
                &packet[..length]
            ));
        }
    }
}
