//! The links of a deployment, each of which can be cut.

use crate::harness::Processes;
use semel_rig::Link;
use std::collections::BTreeSet;

/// The links of a deployment.
#[derive(Debug)]
pub(super) struct Links {
    /// Between the broker and the gates.
    pub(super) front: Link,
    /// Where the gates listen, by their numbers.
    pub(super) gate_ports: Vec<u16>,
    /// Between each gate and its store; none where there is no server.
    pub(super) stores: Vec<Option<Link>>,
    /// Between each gate and the handler; none where a gate reaches it without one.
    pub(super) handlers: Vec<Option<Link>>,
}

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkName {
    Front,
    Store(usize),
    Handler(usize),
}

// === impl Links ===

impl Links {
    /// A link, if it is there.
    pub(super) fn at(&self, link: LinkName) -> Option<&Link> {
        match link {
            LinkName::Front => Some(&self.front),
            LinkName::Store(gate) => self.stores.get(gate)?.as_ref(),
            LinkName::Handler(gate) => self.handlers.get(gate)?.as_ref(),
        }
    }

    /// Which gate listens on this port.
    pub(super) fn gate_at(&self, port: u16) -> Option<usize> {
        self.gate_ports.iter().position(|its| *its == port)
    }

    /// Every link there is.
    pub(super) fn links(&self) -> Vec<LinkName> {
        let gates = 0..self.stores.len();
        let of_gates = gates.flat_map(|gate| [LinkName::Store(gate), LinkName::Handler(gate)]);
        let links = of_gates.chain([LinkName::Front]);
        links.filter(|link| self.at(*link).is_some()).collect()
    }
}

// === impl LinkName ===

impl LinkName {
    /// The runs in hand that go over it. Between broker and gates there is none: a run is a gate's own.
    pub(super) fn in_flight(self, processes: &Processes) -> anyhow::Result<BTreeSet<u64>> {
        match self {
            Self::Front => Ok(BTreeSet::new()),
            Self::Store(gate) | Self::Handler(gate) => processes.in_flight_at(Some(gate)),
        }
    }
}
