//! Injected faults: what can be done to a deployment, and what it met.

use super::deployment::Role;
use std::collections::BTreeSet;

/// What was done, and what it met.
#[derive(Clone, Debug)]
pub(super) struct Injection {
    pub(super) kind: FaultKind,
    /// At which point, by role and word.
    pub(super) point: Option<(Role, String)>,
    /// The runs in hand.
    pub(super) open: BTreeSet<u64>,
}

/// What can be done to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FaultKind {
    /// SIGKILL.
    Kill(Role),
    /// SIGSTOP, past the lease, then SIGCONT.
    Pause(Role),
    /// SIGTERM, and a new one.
    Drain,
    /// The connections over a wire are cut.
    Cut,
    /// A wire swallows what it is given for a while, and then breaks.
    Blackhole,
    /// A process is killed or paused when half of a message went over a wire.
    PartialMessage,
    /// The store crashes and comes back.
    Outage,
    /// The store's clock jumps.
    Clock,
}
