//! The nemesis: draws what befalls a deployment, and when.

use super::partial_message::PartialMessage;
use super::points::points;
use crate::harness::{ArmedFault, FaultKind, ProcessFault, Role};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::time::Duration;
use tokio::time::Instant;

/// How many visits an armed fault lets pass, at the most.
const VISITS: std::ops::RangeInclusive<u32> = 1..=4;

/// How often a process that starts finds an armed fault.
const ARMED: f64 = 0.7;

/// How many leases a pause lasts: always past the lease.
const PAUSE_LEASES: std::ops::Range<f64> = 1.2..2.2;

/// How far a clock jumps, and back again.
const JUMP_SECONDS: std::ops::RangeInclusive<i64> = 2..=5;

/// How far a clock jumps forward for good: beyond every lease. Back for good it never goes: what is running then seems
/// to be held for as long.
const JUMP_FOR_GOOD: Duration = Duration::from_secs(3600);

/// How many jumps are for good.
const FOR_GOOD: f64 = 0.25;

/// A gate comes by this point once.
pub(super) const DRAIN: &str = semel_gate::failpoint::Point::DrainBegun.word();

/// Draws faults.
#[derive(Debug)]
pub(super) struct Nemesis {
    rng: StdRng,
    every: Duration,
    /// When the next fault is due; never, where all faults wait at points.
    next: Option<Instant>,
    /// What can be done to this deployment, the likely more than once.
    choices: Vec<FaultKind>,
    /// The armed faults that are set next: every pair of point and fault of every role, over and over.
    armed_faults: Vec<(Role, ArmedFault)>,
    /// The points in the middle of messages that are met next: every pair of point and fault, over and over.
    partial_messages: Vec<(PartialMessage, ProcessFault)>,
    last_outage: Instant,
}

/// A jump of a store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// So many seconds, and back again.
    AndBack(i64),
    /// Forward for good.
    ForGood(Duration),
}

/// The least time between two crashes of a store, which must come back in between.
const BETWEEN_OUTAGES: Duration = Duration::from_secs(4);

// === impl Nemesis ===

impl Nemesis {
    pub(super) fn new(seed: u64, every: Option<Duration>, has_server: bool) -> Self {
        let (gate, handler) = (Role::Gate(0), Role::Handler);
        let mut choices = vec![
            FaultKind::Kill(gate),
            FaultKind::Kill(gate),
            FaultKind::Kill(handler),
            FaultKind::Kill(Role::Broker),
            FaultKind::Pause(gate),
            FaultKind::Pause(gate),
            FaultKind::Pause(handler),
            FaultKind::Drain,
            FaultKind::Drain,
            FaultKind::Cut,
            FaultKind::Blackhole,
            FaultKind::PartialMessage,
            FaultKind::PartialMessage,
        ];
        if has_server {
            choices.extend([
                FaultKind::Cut,
                FaultKind::Cut,
                FaultKind::Outage,
                FaultKind::ClockJump,
            ]);
        }
        let now = Instant::now();
        Self {
            rng: StdRng::seed_from_u64(seed),
            every: every.unwrap_or_default(),
            next: every.map(|every| now + every),
            choices,
            armed_faults: Vec::new(),
            partial_messages: Vec::new(),
            last_outage: now,
        }
    }

    /// What is to be done now, if anything.
    pub(super) fn next_fault(&mut self, now: Instant) -> Option<FaultKind> {
        self.next.filter(|next| *next <= now)?;
        self.next = Some(now + self.every.mul_f64(self.rng.random_range(0.3..1.7)));
        let what = self.choices.choose(&mut self.rng).copied()?;
        if what == FaultKind::Outage {
            if now < self.last_outage + BETWEEN_OUTAGES {
                return None;
            }
            self.last_outage = now;
        }
        Some(what)
    }

    /// The armed fault for a process that starts.
    pub(super) fn armed_fault(&mut self, role: Role) -> Option<ArmedFault> {
        if !self.rng.random_bool(ARMED) {
            return None;
        }
        let same = |of: &Role| std::mem::discriminant(of) == std::mem::discriminant(&role);
        if !self.armed_faults.iter().any(|(of, _)| same(of)) {
            self.refill(role);
        }
        let position = self.armed_faults.iter().position(|(of, _)| same(of))?;
        Some(self.armed_faults.remove(position).1)
    }

    fn refill(&mut self, role: Role) {
        let mut fresh = Vec::new();
        for point in points(role) {
            for fault in ProcessFault::ALL {
                let armed_fault = ArmedFault {
                    point: point.to_owned(),
                    visit: match point {
                        DRAIN => 1,
                        _ => self.rng.random_range(VISITS),
                    },
                    fault,
                    again: false,
                };
                fresh.push((role, armed_fault));
            }
        }
        fresh.shuffle(&mut self.rng);
        self.armed_faults.extend(fresh);
    }

    pub(super) fn pause(&mut self, now: Instant, lease: Duration) -> Instant {
        now + lease.mul_f64(self.rng.random_range(PAUSE_LEASES))
    }

    /// The next point in the middle of a message.
    pub(super) fn partial_message(&mut self) -> Option<(PartialMessage, ProcessFault)> {
        if self.partial_messages.is_empty() {
            self.partial_messages = PartialMessage::faults();
            self.partial_messages.shuffle(&mut self.rng);
        }
        self.partial_messages.pop()
    }

    pub(super) fn jump(&mut self) -> Jump {
        if self.rng.random_bool(FOR_GOOD) {
            return Jump::ForGood(JUMP_FOR_GOOD);
        }
        let far = self.rng.random_range(JUMP_SECONDS);
        Jump::AndBack(if self.rng.random_bool(0.5) { far } else { -far })
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.choose(&mut self.rng).copied()
    }
}
