//! Stateless reset tokens, [RFC 9000, section 10.3](https://www.rfc-editor.org/rfc/rfc9000#section-10.3).

/// Bytes of a stateless reset token.
pub(crate) const RESET_TOKEN_LENGTH: usize = 16;

/// Sixteen bytes by which a peer knows that we have lost the connection's state.
#[derive(Clone, Copy, Eq)]
pub(crate) struct ResetToken(pub(crate) [u8; RESET_TOKEN_LENGTH]);

impl ResetToken {
    /// The last sixteen bytes of a datagram, which may be a token.
    #[inline]
    pub(crate) fn at_end_of(datagram: &[u8]) -> Option<Self> {
        datagram.last_chunk().copied().map(Self)
    }
}

/// Compares all bytes at once, so that the time says nothing about them (RFC 9000, 10.3.1).
impl PartialEq for ResetToken {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        u128::from_ne_bytes(self.0) ^ u128::from_ne_bytes(other.0) == 0
    }
}

impl std::hash::Hash for ResetToken {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl std::fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResetToken")
    }
}

#[cfg(test)]
mod tests {
    use super::ResetToken;

    #[test]
    fn one_bit_makes_a_difference() {
        let token = ResetToken([7; 16]);
        for bit in 0..128 {
            let mut other = token;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(token, other);
        }
        assert_eq!(token, ResetToken([7; 16]));
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", ResetToken([7; 16])), "ResetToken");
    }

    #[test]
    fn the_end_of_a_datagram_may_be_a_token() {
        assert_eq!(ResetToken::at_end_of(&[7; 15]), None);
        let mut datagram = [0; 40];
        datagram[24..].fill(7);
        assert_eq!(ResetToken::at_end_of(&datagram), Some(ResetToken([7; 16])));
    }
}
