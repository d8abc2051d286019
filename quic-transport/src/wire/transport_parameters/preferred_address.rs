//! The preferred_address parameter, [RFC 9000, section 18.2](https://www.rfc-editor.org/rfc/rfc9000#section-18.2).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use quic_common::{Reader, Truncated};

use crate::wire::cid::ConnectionId;
use crate::wire::malformed::Malformed;
use crate::wire::reset_token::ResetToken;

/// Where a server would rather be reached once the handshake is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreferredAddress {
    /// Over IPv4, if at all.
    pub(crate) v4: Option<SocketAddrV4>,
    /// Over IPv6, if at all.
    pub(crate) v6: Option<SocketAddrV6>,
    /// The connection ID to use there, number 1; never empty.
    pub(crate) cid: ConnectionId,
    /// What a stateless reset for that ID ends with.
    pub(crate) reset_token: ResetToken,
}

impl PreferredAddress {
    /// Reads the whole value. An address and port of zeros is no address.
    pub(super) fn parse(value: &[u8]) -> Result<Self, Malformed> {
        const WRONG_LENGTH: Malformed =
            Malformed::parameter("preferred_address has a wrong length");
        let mut reader = Reader::new(value);
        let mut read = || {
            let v4 = SocketAddrV4::new(Ipv4Addr::from(reader.array::<4>()?), reader.u16()?);
            let v6 = Ipv6Addr::from(reader.array::<16>()?);
            let v6 = SocketAddrV6::new(v6, reader.u16()?, 0, 0);
            let length = reader.u8()?;
            let cid = reader.bytes(length.into())?;
            Ok((v4, v6, cid, ResetToken(reader.array()?)))
        };
        let (v4, v6, cid, reset_token) = read().map_err(|_short: Truncated| WRONG_LENGTH)?;
        if !reader.is_empty() {
            return Err(WRONG_LENGTH);
        }
        let cid =
            ConnectionId::new(cid)
                .filter(|cid| !cid.is_empty())
                .ok_or(Malformed::parameter(
                    "preferred_address has a connection ID of 0 or over 20 bytes",
                ))?;
        Ok(Self {
            v4: Some(v4).filter(|v4| !v4.ip().is_unspecified() || v4.port() != 0),
            v6: Some(v6).filter(|v6| !v6.ip().is_unspecified() || v6.port() != 0),
            cid,
            reset_token,
        })
    }

    /// Appends the value.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let v4 = self
            .v4
            .unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        out.extend(v4.ip().octets());
        out.extend(v4.port().to_be_bytes());
        let (ip, port) = self
            .v6
            .map_or((Ipv6Addr::UNSPECIFIED, 0), |v6| (*v6.ip(), v6.port()));
        out.extend(ip.octets());
        out.extend(port.to_be_bytes());
        out.push(u8::try_from(self.cid.len()).unwrap_or_default());
        out.extend(self.cid.as_slice());
        out.extend(self.reset_token.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionId, PreferredAddress, ResetToken};

    #[test]
    fn round_trip_with_both_one_or_no_address() {
        let v4 = "192.0.2.1:443".parse().unwrap();
        let v6 = "[2001:db8::1]:8443".parse().unwrap();
        for (v4, v6) in [
            (Some(v4), Some(v6)),
            (Some(v4), None),
            (None, Some(v6)),
            (None, None),
            (Some("192.0.2.1:0".parse().unwrap()), None),
            (Some("0.0.0.0:443".parse().unwrap()), None),
            (None, Some("[2001:db8::1]:0".parse().unwrap())),
            (None, Some("[::]:443".parse().unwrap())),
        ] {
            let address = PreferredAddress {
                v4,
                v6,
                cid: ConnectionId::new(&[8; 8]).unwrap(),
                reset_token: ResetToken([9; 16]),
            };
            let mut value = Vec::new();
            address.encode(&mut value);
            assert_eq!(PreferredAddress::parse(&value), Ok(address));
            value.push(0);
            assert!(PreferredAddress::parse(&value).is_err());
            for length in 0..value.len() - 1 {
                assert!(PreferredAddress::parse(&value[..length]).is_err());
            }
        }
    }
}
