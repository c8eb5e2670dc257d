//! The rules that every world must keep: the invariants of the protocol, and what the guarantees
//! add to them.

use std::fmt;

/// A rule. Those with a number are the protocol's invariants; I10 is a rule for the gate alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// At most one live lease per key, by the store's clock.
    OneLiveLease,
    /// Fences rise from grant to grant, also across sweep and forget.
    FencesRise,
    /// A run that is not the owner changes nothing, and only such a run is told `stale`.
    StaleChangesNothing,
    /// At most one accepted completion per incarnation; an end absorbs.
    OneCompletion,
    /// What is replayed is what was accepted, byte for byte.
    SameReplay,
    /// Another payload under the same key is `mismatched` and disturbs nothing.
    MismatchDisturbsNothing,
    /// A record outlives its lease by the retention, and its end never moves backwards.
    RetentionOutlivesLease,
    /// Parked stays parked until an operator acts or the run itself speaks.
    ParkedStays,
    /// Guarded effects: at most one per incarnation, committed if and only if the completion is.
    GuardedOnce,
    /// A step that was done is remembered in its incarnation, and in no other.
    StepsRemembered,
    /// Under `park`, each start beyond the first whose outcome is unknown needs an operator's act.
    OneUnknownStart,
    /// No run beyond `max_attempts` without an operator's act.
    AttemptsBounded,
    /// Every run that ended in doubt is counted and no other; such an end parks at `max_in_doubt` if the first of them is old,
    /// and not before.
    DoubtsBounded,
    /// Under `probe`, one effect at most, unless an operator said that it had not happened.
    OneProbedEffect,
    /// A release parks old work, and no other.
    ReleaseParksOld,
    /// A keeper prolongs the retention of unfinished work, and changes nothing else.
    KeeperRetains,
    /// A run's success is recorded only where an effect has happened.
    SuccessHasEffect,
    /// As soon as its lease or its delay is over, a key can be claimed, unless it is settled or parked.
    NeverStuck,
}

impl Invariant {
    /// All rules.
    pub const ALL: [Self; 18] = [
        Self::OneLiveLease,
        Self::FencesRise,
        Self::StaleChangesNothing,
        Self::OneCompletion,
        Self::SameReplay,
        Self::MismatchDisturbsNothing,
        Self::RetentionOutlivesLease,
        Self::ParkedStays,
        Self::GuardedOnce,
        Self::StepsRemembered,
        Self::OneUnknownStart,
        Self::AttemptsBounded,
        Self::DoubtsBounded,
        Self::OneProbedEffect,
        Self::ReleaseParksOld,
        Self::KeeperRetains,
        Self::SuccessHasEffect,
        Self::NeverStuck,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneLiveLease => "I1 one live lease",
            Self::FencesRise => "I2 fences rise",
            Self::StaleChangesNothing => "I3 stale changes nothing",
            Self::OneCompletion => "I4 one completion",
            Self::SameReplay => "I5 same replay",
            Self::MismatchDisturbsNothing => "I6 mismatch disturbs nothing",
            Self::RetentionOutlivesLease => "I7 retention outlives the lease",
            Self::ParkedStays => "I8 parked stays",
            Self::GuardedOnce => "I9 guarded once",
            Self::StepsRemembered => "I11 steps remembered",
            Self::OneUnknownStart => "one unknown start",
            Self::AttemptsBounded => "attempts bounded",
            Self::DoubtsBounded => "doubts bounded",
            Self::OneProbedEffect => "one probed effect",
            Self::ReleaseParksOld => "release parks old work",
            Self::KeeperRetains => "keeper retains",
            Self::SuccessHasEffect => "success has an effect",
            Self::NeverStuck => "never stuck",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
