//! Origins: who has how much of what all share. One address may take a part, never all, unless all
//! traffic comes from it anyway: loopback, and the proxies of the settings.

use crate::room::Room;
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
pub(crate) struct Origins(Arc<Table>);

#[derive(Debug)]
struct Table {
    proxies: Vec<Network>,
    connections_max: usize,
    bodies_bytes_max: usize,
    known: Mutex<HashMap<IpAddr, Weak<Origin>>>,
}

/// An address, for as long as it has a connection or a body in hand.
#[derive(Debug)]
pub(crate) struct Origin {
    address: IpAddr,
    table: Arc<Table>,
    connections: AtomicUsize,
    /// The bytes of bodies that it may still hold.
    pub(crate) bodies: Room,
}

/// One connection of an address, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    /// `None`: no share is kept for this address.
    pub(crate) origin: Option<Arc<Origin>>,
}

/// This address has as many connections as one may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

// === impl Origins ===

impl Origins {
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
    pub(crate) fn admit(&self, address: IpAddr) -> Result<Visit, TooMany> {
        let Some(origin) = self.origin(address) else {
            return Ok(Visit { origin: None });
        };
        let before = origin.connections.fetch_add(1, Ordering::Relaxed);
        // It is given back when the visit is dropped, here too.
        let visit = Visit {
            origin: Some(origin),
        };
        if before < self.0.connections_max {
            Ok(visit)
        } else {
            Err(TooMany)
        }
    }

    fn origin(&self, address: IpAddr) -> Option<Arc<Origin>> {
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
        let origin = known.get(&address).and_then(Weak::upgrade);
        Some(origin.unwrap_or_else(|| {
            let origin = Arc::new(Origin {
                address,
                table: Arc::clone(&self.0),
                connections: AtomicUsize::new(0),
                bodies: Room::new(self.0.bodies_bytes_max),
            });
            known.insert(address, Arc::downgrade(&origin));
            origin
        }))
    }
}

// === impl Table ===

impl Table {
    fn known(&self) -> MutexGuard<'_, HashMap<IpAddr, Weak<Origin>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(origin) = &self.origin {
            origin.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let mut known = self.table.known();
        // It may have come back meanwhile.
        let gone = known
            .get(&self.address)
            .is_some_and(|origin| origin.strong_count() == 0);
        if gone {
            known.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(proxies: &[&str]) -> Origins {
        let proxies = proxies.iter().map(|proxy| proxy.parse().unwrap());
        Origins::new(proxies.collect(), 2, 100)
    }

    fn admit(origins: &Origins, address: &str) -> Result<Visit, TooMany> {
        origins.admit(address.parse().unwrap())
    }

    #[test]
    fn one_address_gets_its_part_and_others_theirs() {
        let origins = origins(&[]);
        let visits = ["203.0.113.7", "203.0.113.7"].map(|a| admit(&origins, a).unwrap());
        assert_eq!(admit(&origins, "203.0.113.7").unwrap_err(), TooMany);
        assert_eq!(admit(&origins, "::ffff:203.0.113.7").unwrap_err(), TooMany);
        let other = admit(&origins, "203.0.113.8").unwrap();
        drop(visits);
        drop(admit(&origins, "203.0.113.7").unwrap());
        drop(other);
        assert_eq!(origins.0.known().len(), 0, "nobody is remembered for ever");
    }

    #[test]
    fn all_of_an_ipv6_network_is_one_origin() {
        let origins = origins(&[]);
        let visits = ["2001:db8::1", "2001:db8::2"].map(|a| admit(&origins, a).unwrap());
        assert_eq!(admit(&origins, "2001:db8::3").unwrap_err(), TooMany);
        admit(&origins, "2001:db8:0:1::1").unwrap();
        drop(visits);
    }

    #[test]
    fn no_share_is_kept_for_loopback_and_proxies() {
        let origins = origins(&["10.0.0.0/8"]);
        let addresses = ["127.0.0.1", "::1", "10.9.8.7"];
        for address in addresses {
            let visits: Vec<_> = (0..10).map(|_| admit(&origins, address).unwrap()).collect();
            assert!(visits.iter().all(|visit| visit.origin.is_none()));
        }
    }

    /// A sender that hangs up and comes back must not have a second share.
    #[test]
    fn an_address_with_a_body_in_hand_is_still_the_same() {
        let origins = origins(&[]);
        let visit = admit(&origins, "203.0.113.7").unwrap();
        let in_hand = visit.origin.clone().unwrap();
        in_hand.bodies.try_take(100).unwrap().keep();
        drop(visit);
        let again = admit(&origins, "203.0.113.7").unwrap();
        assert_eq!(again.origin.as_ref().unwrap().bodies.free(), 0);
    }
}
