//! Address validation tokens of Retry packets, [RFC 9000, section 8.1](https://www.rfc-editor.org/rfc/rfc9000#section-8.1).
//!
//! The token says which connection ID the client first chose and when the server answered. It is sealed, and bound to
//! the client's address and version: anywhere else it opens to nothing.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use quic_common::{Random, Reader};

use crate::{
    tls::TokenKey,
    wire::{ConnectionId, Version},
};

/// How long a Retry token is good for.
pub(crate) const RETRY_LIFETIME: Duration = Duration::from_secs(15);

/// Distinguishes this kind of token from others under the same key.
const RETRY: u8 = 1;

/// What a Retry token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryToken {
    /// The destination of the client's first Initial.
    pub(crate) original_dcid: ConnectionId,
    /// The source of the Retry, and so the destination of the client's next Initial.
    pub(crate) retry_scid: ConnectionId,
    /// When it was made, on the clock of the one who made it.
    pub(crate) issued: Duration,
}

impl RetryToken {
    /// Seals the token for `remote` and `version`.
    pub(crate) fn seal(
        &self,
        key: &TokenKey,
        remote: SocketAddr,
        version: Version,
        random: &mut Random,
    ) -> Vec<u8> {
        let mut content = Vec::with_capacity(64);
        content.push(RETRY);
        let millis = u64::try_from(self.issued.as_millis()).unwrap_or(u64::MAX);
        content.extend_from_slice(&millis.to_be_bytes());
        for cid in [&self.original_dcid, &self.retry_scid] {
            content.push(u8::try_from(cid.len()).unwrap_or_default());
            content.extend_from_slice(cid.as_slice());
        }
        key.seal(&content, &context(remote, version), random.array())
    }

    /// Opens a token that came from `remote`; `None` when it isn't ours, isn't for it, or is too old at `now`.
    pub(crate) fn open(
        token: &[u8],
        key: &TokenKey,
        remote: SocketAddr,
        version: Version,
        now: Duration,
    ) -> Option<Self> {
        let content = key.open(token, &context(remote, version))?;
        let mut reader = Reader::new(&content);
        if reader.u8().ok()? != RETRY {
            return None;
        }
        let issued = Duration::from_millis(u64::from_be_bytes(reader.array().ok()?));
        let mut cid = || {
            let length = usize::from(reader.u8().ok()?);
            ConnectionId::new(reader.bytes(length).ok()?)
        };
        let (original_dcid, retry_scid) = (cid()?, cid()?);
        let age = now.checked_sub(issued)?;
        (reader.is_empty() && age <= RETRY_LIFETIME).then_some(Self {
            original_dcid,
            retry_scid,
            issued,
        })
    }
}

/// The address and version that a token is bound to.
fn context(remote: SocketAddr, version: Version) -> Vec<u8> {
    let mut context = version.0.to_be_bytes().to_vec();
    match remote.ip() {
        IpAddr::V4(ip) => context.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => context.extend_from_slice(&ip.octets()),
    }
    context.extend_from_slice(&remote.port().to_be_bytes());
    context
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, time::Duration};

    use quic_common::Random;

    use super::{RETRY_LIFETIME, RetryToken};
    use crate::{
        tls::TokenKey,
        wire::{ConnectionId, Version},
    };

    fn token() -> RetryToken {
        RetryToken {
            original_dcid: ConnectionId::new(&[1; 20]).unwrap(),
            retry_scid: ConnectionId::new(&[2; 8]).unwrap(),
            issued: Duration::from_secs(100),
        }
    }

    /// RFC 9000, 8.1.4: bound to the address, and good for a short time.
    #[test]
    fn good_only_where_and_when_it_was_meant() {
        let key = TokenKey::new([7; 32]);
        let remote = SocketAddr::from(([192, 0, 2, 1], 4433));
        let sealed = token().seal(&key, remote, Version::V1, &mut Random::from_seed([0; 32]));
        let open = |remote, version, now| RetryToken::open(&sealed, &key, remote, version, now);
        let issued = token().issued;

        assert_eq!(
            open(remote, Version::V1, issued + RETRY_LIFETIME),
            Some(token())
        );
        let late = issued + RETRY_LIFETIME + Duration::from_millis(1);
        assert_eq!(open(remote, Version::V1, late), None);
        assert_eq!(
            open(
                remote,
                Version::V1,
                issued.checked_sub(Duration::from_millis(1)).unwrap()
            ),
            None
        );
        assert_eq!(open(remote, Version::V2, issued), None);
        assert_eq!(
            open(
                SocketAddr::from(([192, 0, 2, 1], 4434)),
                Version::V1,
                issued
            ),
            None
        );
        assert_eq!(
            open(
                SocketAddr::from(([192, 0, 2, 2], 4433)),
                Version::V1,
                issued
            ),
            None
        );
    }
}
