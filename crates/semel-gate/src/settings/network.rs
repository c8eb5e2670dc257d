//! Networks: an address, or all addresses that begin like it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Addresses with the same first bits, as in `10.0.0.0/8`; one address is a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

/// Why a text is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// It is something else.
    #[error(
        "{0:?} is not an address or network: write \"192.0.2.1\", \"10.0.0.0/8\" or \"2001:db8::/32\""
    )]
    Malformed(String),
    /// The address says more than its length keeps.
    #[error("{written} has bits beyond its length: write {meant}")]
    Beyond {
        /// What was written.
        written: String,
        /// The network it lies in.
        meant: Network,
    },
}

// === impl Network ===

impl Network {
    /// Whether an address lies in it. An IPv4 address that arrives at an IPv6 socket is itself.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.first.is_ipv4() == address.is_ipv4() && cut(address, self.bits) == self.first
    }
}

/// The address with only its first bits.
pub(crate) fn cut(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32)));
            IpAddr::V4((v4.to_bits() & mask.unwrap_or(0)).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128)));
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask.unwrap_or(0)))
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let malformed = || NetworkError::Malformed(text.into());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().map_err(|_| malformed())?,
        };
        if bits > most {
            return Err(malformed());
        }
        let network = Self {
            first: cut(address, bits),
            bits,
        };
        if network.first == address {
            return Ok(network);
        }
        Err(NetworkError::Beyond {
            written: text.into(),
            meant: network,
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(network: &str, address: &str) -> bool {
        let network: Network = network.parse().unwrap();
        network.contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_holds_what_begins_like_it() {
        assert!(within("10.0.0.0/8", "10.255.1.2"));
        assert!(!within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(within("0.0.0.0/0", "203.0.113.7"));
        assert!(!within("0.0.0.0/0", "2001:db8::1"));
        assert!(within("192.0.2.1", "192.0.2.1"));
        assert!(!within("192.0.2.1", "192.0.2.2"));
        assert!(within("2001:db8::/32", "2001:db8:1::7"));
        assert!(!within("2001:db8::/32", "2001:db9::"));
        assert!(within("::/0", "2001:db8::1"));
    }

    #[test]
    fn what_is_not_a_network_is_refused_with_help() {
        for bad in [
            "",
            "10",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "lb",
            "::/129",
        ] {
            let error = bad.parse::<Network>().unwrap_err();
            assert_eq!(error, NetworkError::Malformed(bad.into()));
        }
        let error = "10.1.2.3/8".parse::<Network>().unwrap_err().to_string();
        assert_eq!(
            error,
            "10.1.2.3/8 has bits beyond its length: write 10.0.0.0/8"
        );
    }
}
