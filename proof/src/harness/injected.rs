//! Injected faults: what can be done to the processes of a run and to what connects them, and what it met.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A fault that was injected, and what it met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InjectedFault {
    /// What was done.
    pub(crate) kind: FaultKind,
    /// To which process, by number, if it was done to one.
    pub(crate) process: Option<u32>,
    /// At which point, if it was one with a name.
    pub(crate) point: Option<String>,
    /// The deliveries or runs that it met in flight.
    pub(crate) in_flight: BTreeSet<u64>,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FaultKind {
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
    ClockJump,
}

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Role {
    /// It runs deliveries, or races others for keys.
    Worker,
    /// One of the gates, by its number.
    Gate(usize),
    Broker,
    Handler,
}

/// What is done to a process at a named point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum ProcessFault {
    Kill,
    /// SIGSTOP, past the lease, then SIGCONT.
    Pause,
}

// === impl InjectedFault ===

impl InjectedFault {
    /// One that was done to no process in particular.
    pub(crate) const fn new(kind: FaultKind, in_flight: BTreeSet<u64>) -> Self {
        Self {
            kind,
            process: None,
            point: None,
            in_flight,
        }
    }
}

// === impl FaultKind ===

impl FaultKind {
    /// What was done to a process, if it was done to one, and to which role.
    pub(crate) const fn to_process(self) -> Option<(Role, ProcessFault)> {
        match self {
            Self::Kill(role) => Some((role, ProcessFault::Kill)),
            Self::Pause(role) => Some((role, ProcessFault::Pause)),
            Self::Drain
            | Self::Cut
            | Self::Blackhole
            | Self::PartialMessage
            | Self::Outage
            | Self::ClockJump => None,
        }
    }
}

// === impl Role ===

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Gate(_) => "gate",
            Self::Broker => "broker",
            Self::Handler => "handler",
        }
    }
}

// === impl ProcessFault ===

impl ProcessFault {
    pub(crate) const ALL: [Self; 2] = [Self::Kill, Self::Pause];
}
