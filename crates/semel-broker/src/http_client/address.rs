//! Which addresses are never called, however they are written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that lead to a machine's credentials on some network or other.
const NAMES_REFUSED: [&str; 3] = ["metadata", "metadata.google.internal", "metadata.goog"];

/// Where clouds keep a machine's credentials, outside of the link-local range.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);

/// Why an address is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    LinkLocal,
    Metadata,
    Unspecified,
    Multicast,
    Broadcast,
}

// === impl Refused ===

impl Refused {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a metadata address",
            Self::Unspecified => "an unspecified address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
        }
    }
}

/// Whether a host's name alone is reason enough not to call it.
pub(super) fn refuse_name(host: &str) -> Option<Refused> {
    let name = host.trim_end_matches('.');
    let refused = NAMES_REFUSED.iter().any(|it| it.eq_ignore_ascii_case(name));
    refused.then_some(Refused::Metadata)
}

/// Whether an address is not to be called.
pub(super) fn refuse(address: IpAddr) -> Option<Refused> {
    match address {
        IpAddr::V4(address) => refuse_v4(address),
        IpAddr::V6(address) => refuse_v6(address),
    }
}

fn refuse_v4(address: Ipv4Addr) -> Option<Refused> {
    let [first, ..] = address.octets();
    // All of 0.0.0.0/8 means "this machine" to some systems and nothing to others.
    if first == 0 {
        Some(Refused::Unspecified)
    } else if address.is_link_local() {
        Some(Refused::LinkLocal)
    } else if METADATA_V4.contains(&address) {
        Some(Refused::Metadata)
    } else if address.is_multicast() {
        Some(Refused::Multicast)
    } else if address.is_broadcast() {
        Some(Refused::Broadcast)
    } else {
        None
    }
}

fn refuse_v6(address: Ipv6Addr) -> Option<Refused> {
    let [first, second, ..] = address.segments();
    if address.is_unspecified() {
        Some(Refused::Unspecified)
    } else if address.is_unicast_link_local() {
        Some(Refused::LinkLocal)
    } else if address.is_multicast() {
        Some(Refused::Multicast)
    // fd00:ec2::/32 is one cloud's range for the services of the machine itself.
    } else if (first, second) == (0xfd00, 0xec2) || address == METADATA_V6 {
        Some(Refused::Metadata)
    } else {
        carried(address).into_iter().find_map(refuse_v4)
    }
}

/// The IPv4 addresses that an IPv6 address may stand for.
fn carried(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let last = v4(g, h);
    match (a, b, c, d, e, f) {
        _ if address.is_loopback() => Vec::new(),
        // Compatible, mapped and translated.
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) => vec![last],
        // NAT64, and its local prefix, which may carry the address in two places.
        (0x64, 0xff9b, 0, 0, 0, 0) => vec![last],
        (0x64, 0xff9b, 1, ..) => vec![last, v4(d, e << 8 | f >> 8)],
        // 6to4, and Teredo: the server's, and the client's with every bit turned.
        (0x2002, ..) => vec![v4(b, c)],
        (0x2001, 0, ..) => vec![v4(c, d), v4(!g, !h)],
        // ISATAP, under any prefix.
        (_, _, _, _, 0 | 0x200, 0x5efe) => vec![last],
        (..) => Vec::new(),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests;
