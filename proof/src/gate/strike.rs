//! Strikes: what can be done to a scene, and what it met.

use super::scene::Role;
use std::collections::BTreeSet;

/// What was done, and what it met.
#[derive(Clone, Debug)]
pub(super) struct Strike {
    pub(super) what: What,
    /// At which point, by role and word.
    pub(super) point: Option<(Role, String)>,
    /// The runs in hand.
    pub(super) open: BTreeSet<u64>,
}

/// What can be done to a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum What {
    /// SIGKILL.
    Kill(Role),
    /// SIGSTOP, past the lease, then SIGCONT.
    Pause(Role),
    /// SIGTERM, and a new one.
    Drain,
    /// The connections over a wire are cut.
    Cut,
    /// A wire swallows what it is given for a while, and then breaks.
    Hole,
    /// A process is killed or paused when half of a message went over a wire.
    Half,
    /// The store crashes and comes back.
    Outage,
    /// The store's clock jumps.
    Clock,
}
