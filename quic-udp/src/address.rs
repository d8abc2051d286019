//! One identity for one address: IPv4 is always IPv4 to our callers, whatever family the socket has.
//!
//! A dual-stack socket speaks of IPv4 peers as `::ffff:a.b.c.d` ([RFC 4291, section
//! 2.5.5.2](https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.2)). They are mapped on the way out and unmapped on
//! the way in, so that a path compares equal however it was learned.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// An address as our callers see it: unmapped, and without a flow label.
pub(crate) const fn normal_address(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
            None => SocketAddr::V6(SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id())),
        },
    }
}

/// An IP address as our callers see it.
pub(crate) const fn normal_ip(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// What a socket is bound to, as far as sending from it is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The address, normalised.
    pub(crate) address: SocketAddr,
    /// The family of the socket.
    pub(crate) ipv6: bool,
    /// Whether an IPv6 socket takes IPv4 traffic too.
    pub(crate) dual_stack: bool,
}

impl Bound {
    /// The destination in the socket's own family, if it can reach that address at all.
    pub(crate) fn destination(&self, remote: SocketAddr) -> Option<SocketAddr> {
        if remote.port() == 0 {
            return None;
        }
        match (normal_address(remote), self.ipv6) {
            (address @ SocketAddr::V4(_), false) | (address @ SocketAddr::V6(_), true) => {
                Some(address)
            }
            (SocketAddr::V4(v4), true) if self.dual_stack => {
                Some(SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()))
            }
            (SocketAddr::V4(_), true) | (SocketAddr::V6(_), false) => None,
        }
    }

    /// The source address to ask for: none when the socket has only one.
    pub(crate) fn source(&self, local: Option<SocketAddr>) -> Option<IpAddr> {
        if !self.address.ip().is_unspecified() {
            return None;
        }
        let local = normal_ip(local?.ip());
        match local {
            ip if ip.is_unspecified() => None,
            // BSDs know only the IPv6 option on an IPv6 socket.
            IpAddr::V4(v4)
                if self.ipv6 && !cfg!(any(target_os = "linux", target_os = "android", windows)) =>
            {
                Some(v4.to_ipv6_mapped().into())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Some(local),
        }
    }
}

/// Whether a datagram from `remote` to `local` is one that could be answered.
///
/// An answer to port 0 or from a group address is refused by the kernel (EINVAL), and would take our offloads with it.
pub(crate) const fn is_answerable(remote: SocketAddr, local: Option<IpAddr>) -> bool {
    if remote.port() == 0 || remote.ip().is_unspecified() || is_group(remote.ip()) {
        return false;
    }
    match local {
        Some(ip) => !is_group(ip),
        None => true,
    }
}

const fn is_group(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_multicast(),
    }
}

/// The address to bind for a client whose server has the address `remote`.
pub(crate) const fn wildcard_for(remote: SocketAddr) -> SocketAddr {
    let ip = match remote {
        SocketAddr::V4(_) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr, SocketAddrV6};

    use super::{Bound, is_answerable, normal_address, wildcard_for};

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[expect(clippy::unnecessary_wraps, reason = "as it is passed")]
    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    fn bound(text: &str, ipv6: bool, dual_stack: bool) -> Bound {
        Bound {
            address: address(text),
            ipv6,
            dual_stack,
        }
    }

    #[test]
    fn mapped_addresses_are_ipv4_and_flow_labels_are_no_identity() {
        assert_eq!(
            normal_address(address("[::ffff:1.2.3.4]:5")),
            address("1.2.3.4:5")
        );
        let scoped = SocketAddrV6::new("fe80::1".parse().unwrap(), 5, 77, 3);
        let plain = SocketAddrV6::new("fe80::1".parse().unwrap(), 5, 0, 3);
        assert_eq!(normal_address(scoped.into()), plain.into());
    }

    #[test]
    fn destinations_are_given_in_the_family_of_the_socket() {
        let v4 = bound("0.0.0.0:1", false, false);
        let v6 = bound("[::]:1", true, false);
        let dual = bound("[::]:1", true, true);
        let (to_v4, to_v6) = (address("1.2.3.4:5"), address("[2001:db8::1]:5"));
        assert_eq!(v4.destination(to_v4), Some(to_v4));
        assert_eq!(v4.destination(address("[::ffff:1.2.3.4]:5")), Some(to_v4));
        assert_eq!(v4.destination(to_v6), None);
        assert_eq!(v6.destination(to_v4), None);
        assert_eq!(v6.destination(to_v6), Some(to_v6));
        assert_eq!(dual.destination(to_v4), Some(address("[::ffff:1.2.3.4]:5")));
        assert_eq!(dual.destination(to_v6), Some(to_v6));
        assert_eq!(dual.destination(address("1.2.3.4:0")), None);
    }

    #[test]
    fn a_source_is_asked_for_only_where_there_is_a_choice() {
        assert_eq!(
            bound("127.0.0.1:1", false, false).source(Some(address("127.0.0.1:1"))),
            None
        );
        assert_eq!(
            bound("0.0.0.0:1", false, false).source(Some(address("127.0.0.2:1"))),
            ip("127.0.0.2")
        );
        assert_eq!(bound("0.0.0.0:1", false, false).source(None), None);
        let any = Some(address("0.0.0.0:1"));
        assert_eq!(bound("0.0.0.0:1", false, false).source(any), None);
    }

    #[test]
    fn what_cannot_be_answered_is_known() {
        let good = address("1.2.3.4:5");
        assert!(is_answerable(good, ip("127.0.0.1")));
        assert!(is_answerable(good, None));
        for bad in [
            "1.2.3.4:0",
            "0.0.0.0:5",
            "224.0.0.1:5",
            "255.255.255.255:5",
            "[ff02::1]:5",
        ] {
            assert!(!is_answerable(address(bad), None), "{bad}");
        }
        for bad in ["224.0.0.1", "255.255.255.255", "ff02::1"] {
            assert!(!is_answerable(good, ip(bad)), "{bad}");
        }
    }

    #[test]
    fn a_client_binds_the_family_of_its_server() {
        assert_eq!(wildcard_for(address("1.2.3.4:5")), address("0.0.0.0:0"));
        assert_eq!(wildcard_for(address("[::1]:5")), address("[::]:0"));
    }
}
