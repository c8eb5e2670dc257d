//! The wires of a scene, each of which can be cut.

use super::crew::Crew;
use super::wire::Wire;
use std::collections::BTreeSet;

/// The wires of a scene.
#[derive(Debug)]
pub(super) struct Wires {
    /// Between the broker and the gates.
    pub(super) front: Wire,
    /// Between each gate and its store; none where there is no server.
    pub(super) stores: Vec<Option<Wire>>,
    /// Between each gate and the handler; none where a gate reaches it without one.
    pub(super) handlers: Vec<Option<Wire>>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Front,
    Store(usize),
    Handler(usize),
}

// === impl Wires ===

impl Wires {
    /// A wire, if it is there.
    pub(super) fn at(&self, link: Link) -> Option<&Wire> {
        match link {
            Link::Front => Some(&self.front),
            Link::Store(gate) => self.stores.get(gate)?.as_ref(),
            Link::Handler(gate) => self.handlers.get(gate)?.as_ref(),
        }
    }

    /// Every wire there is.
    pub(super) fn links(&self) -> Vec<Link> {
        let gates = 0..self.stores.len();
        let of_gates = gates.flat_map(|gate| [Link::Store(gate), Link::Handler(gate)]);
        let links = of_gates.chain([Link::Front]);
        links.filter(|link| self.at(*link).is_some()).collect()
    }
}

// === impl Link ===

impl Link {
    /// The runs in hand that go over it. Between broker and gates there is none: a run is a gate's own.
    pub(super) fn open(self, crew: &Crew) -> anyhow::Result<BTreeSet<u64>> {
        match self {
            Self::Front => Ok(BTreeSet::new()),
            Self::Store(gate) | Self::Handler(gate) => crew.open_of(gate),
        }
    }
}
