//! AddressLimits: who has how much of what all share. One address may take a part, never all, unless all
//! traffic comes from it anyway: loopback, and the proxies of the settings.

use crate::byte_budget::ByteBudget;
use crate::settings::Network;
use crate::settings::network::cut;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Whoever has one IPv6 address has all of its network of this length.
const IPV6_NETWORK_BITS: u8 = 64;

/// The addresses that have something in hand here.
#[derive(Clone, Debug)]
pub(crate) struct AddressLimits(Arc<Table>);

#[derive(Debug)]
struct Table {
    proxies: Vec<Network>,
    connections_max: usize,
    bodies_bytes_max: usize,
    known: Mutex<HashMap<IpAddr, Weak<AddressShare>>>,
}

/// An address, for as long as it has a connection or a body in hand.
#[derive(Debug)]
pub(crate) struct AddressShare {
    address: IpAddr,
    table: Arc<Table>,
    connections: AtomicUsize,
    /// The bytes of bodies that it may still hold.
    pub(crate) bodies: ByteBudget,
}

/// One connection of an address, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct AddressPermit {
    /// `None`: no share is kept for this address.
    pub(crate) share: Option<Arc<AddressShare>>,
}

/// This address has as many connections as one may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

// === impl AddressLimits ===

impl AddressLimits {
    /// Each address may have so many connections, and so many bytes of bodies.
    pub(crate) fn new(
        proxies: Vec<Network>,
        connections_max: usize,
        bodies_bytes_max: usize,
    ) -> Self {
        Self(Arc::new(Table {
            proxies,
            connections_max,
            bodies_bytes_max,
            known: Mutex::default(),
        }))
    }

    /// Counts one more connection of this address.
    pub(crate) fn admit(&self, address: IpAddr) -> Result<AddressPermit, TooMany> {
        let Some(share) = self.share(address) else {
            return Ok(AddressPermit { share: None });
        };
        let before = share.connections.fetch_add(1, Ordering::Relaxed);
        // It is given back when the permit is dropped, here too.
        let permit = AddressPermit { share: Some(share) };
        if before < self.0.connections_max {
            Ok(permit)
        } else {
            Err(TooMany)
        }
    }

    fn share(&self, address: IpAddr) -> Option<Arc<AddressShare>> {
        let address = address.to_canonical();
        let shared = |proxy: &Network| proxy.contains(address);
        if address.is_loopback() || self.0.proxies.iter().any(shared) {
            return None;
        }
        let address = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(_) => cut(address, IPV6_NETWORK_BITS),
        };
        let mut known = self.0.known();
        let share = known.get(&address).and_then(Weak::upgrade);
        Some(share.unwrap_or_else(|| {
            let share = Arc::new(AddressShare {
                address,
                table: Arc::clone(&self.0),
                connections: AtomicUsize::new(0),
                bodies: ByteBudget::new(self.0.bodies_bytes_max),
            });
            known.insert(address, Arc::downgrade(&share));
            share
        }))
    }
}

// === impl Table ===

impl Table {
    fn known(&self) -> MutexGuard<'_, HashMap<IpAddr, Weak<AddressShare>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        if let Some(share) = &self.share {
            share.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let mut known = self.table.known();
        // It may have come back meanwhile.
        let gone = known
            .get(&self.address)
            .is_some_and(|share| share.strong_count() == 0);
        if gone {
            known.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(proxies: &[&str]) -> AddressLimits {
        let proxies = proxies.iter().map(|proxy| proxy.parse().unwrap());
        AddressLimits::new(proxies.collect(), 2, 100)
    }

    fn admit(limits: &AddressLimits, address: &str) -> Result<AddressPermit, TooMany> {
        limits.admit(address.parse().unwrap())
    }

    #[test]
    fn one_address_gets_its_part_and_others_theirs() {
        let limits = limits(&[]);
        let permits = ["203.0.113.7", "203.0.113.7"].map(|a| admit(&limits, a).unwrap());
        assert_eq!(admit(&limits, "203.0.113.7").unwrap_err(), TooMany);
        assert_eq!(admit(&limits, "::ffff:203.0.113.7").unwrap_err(), TooMany);
        let other = admit(&limits, "203.0.113.8").unwrap();
        drop(permits);
        drop(admit(&limits, "203.0.113.7").unwrap());
        drop(other);
        assert_eq!(limits.0.known().len(), 0, "nobody is remembered for ever");
    }

    #[test]
    fn all_of_an_ipv6_network_is_one_origin() {
        let limits = limits(&[]);
        let permits = ["2001:db8::1", "2001:db8::2"].map(|a| admit(&limits, a).unwrap());
        assert_eq!(admit(&limits, "2001:db8::3").unwrap_err(), TooMany);
        admit(&limits, "2001:db8:0:1::1").unwrap();
        drop(permits);
    }

    #[test]
    fn no_share_is_kept_for_loopback_and_proxies() {
        let limits = limits(&["10.0.0.0/8"]);
        let addresses = ["127.0.0.1", "::1", "10.9.8.7"];
        for address in addresses {
            let permits: Vec<_> = (0..10).map(|_| admit(&limits, address).unwrap()).collect();
            assert!(permits.iter().all(|permit| permit.share.is_none()));
        }
    }

    /// A sender that hangs up and comes back must not have a second share.
    #[test]
    fn an_address_with_a_body_in_hand_is_still_the_same() {
        let limits = limits(&[]);
        let permit = admit(&limits, "203.0.113.7").unwrap();
        let in_hand = permit.share.clone().unwrap();
        in_hand.bodies.try_take(100).unwrap().keep();
        drop(permit);
        let again = admit(&limits, "203.0.113.7").unwrap();
        assert_eq!(again.share.as_ref().unwrap().bodies.free(), 0);
    }
}
