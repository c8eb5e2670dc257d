//! The parts of the suite, which can be judged one by one, and what they need of a store.

use super::behaviour::Behaviour;
use super::{
    Subject, claim, history, incarnation, index, invalid, label, lease, letter, list, operator,
    outcome,
};
use super::{keeper, limit, park, probe, race, retention, stale, step, tombstone};

/// A part of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuitePart {
    /// Who may run.
    Claim,
    /// Keeping the right to run.
    Lease,
    /// How runs end.
    Outcome,
    /// Runs that are no longer the owner.
    Stale,
    /// Work that a person must look at.
    Park,
    /// How often work is repeated before a person must look.
    Limit,
    /// Runs that find out what became of the one before.
    Probe,
    /// Named parts of a run.
    Step,
    /// What operators do to records.
    Operator,
    /// What keepers do to records.
    Keeper,
    /// How long is remembered.
    Retention,
    /// How one incarnation of a key ends and the next begins.
    Incarnation,
    /// What records say for people.
    Label,
    /// What records remember of attempts that are over.
    History,
    /// Finding keys by transport ids.
    Index,
    /// Listing records.
    List,
    /// Calls that must be refused.
    Invalid,
    /// Many callers at once.
    Race,
    /// Keeping letters.
    Letter,
    /// Letters that were closed.
    Tombstone,
}

/// What behaviours need besides records and steps.
#[derive(Clone, Copy, Debug)]
enum Needs {
    Nothing,
    Operators,
    Letters,
}

// === impl SuitePart ===

impl SuitePart {
    /// All parts, in the order in which [`suite`](super::suite) judges them.
    pub const ALL: [Self; 20] = [
        Self::Claim,
        Self::Lease,
        Self::Outcome,
        Self::Stale,
        Self::Park,
        Self::Limit,
        Self::Probe,
        Self::Step,
        Self::Operator,
        Self::Keeper,
        Self::Retention,
        Self::Incarnation,
        Self::Label,
        Self::History,
        Self::Index,
        Self::List,
        Self::Invalid,
        Self::Race,
        Self::Letter,
        Self::Tombstone,
    ];

    /// The word for it: names of behaviours begin with it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Lease => "lease",
            Self::Outcome => "outcome",
            Self::Stale => "stale",
            Self::Park => "park",
            Self::Limit => "limit",
            Self::Probe => "probe",
            Self::Step => "step",
            Self::Operator => "operator",
            Self::Keeper => "keeper",
            Self::Retention => "retention",
            Self::Incarnation => "incarnation",
            Self::Label => "label",
            Self::History => "history",
            Self::Index => "index",
            Self::List => "list",
            Self::Invalid => "invalid",
            Self::Race => "race",
            Self::Letter => "letter",
            Self::Tombstone => "tombstone",
        }
    }

    /// Its behaviours that can be asked of this store.
    pub(super) fn behaviours(self, subject: &dyn Subject) -> Vec<&'static Behaviour> {
        let asked = |needs: &Needs| match needs {
            Needs::Nothing => true,
            Needs::Operators => subject.has_operators(),
            Needs::Letters => subject.letters().is_some(),
        };
        let lists = self.lists().into_iter();
        lists
            .filter(|(needs, _)| asked(needs))
            .flat_map(|(_, list)| list)
            .collect()
    }

    fn lists(self) -> Vec<(Needs, &'static [Behaviour])> {
        use Needs::{Letters, Nothing, Operators};
        match self {
            Self::Claim => vec![(Nothing, claim::BEHAVIOURS)],
            Self::Lease => vec![(Nothing, lease::BEHAVIOURS), (Operators, lease::OPERATORS)],
            Self::Outcome => vec![
                (Nothing, outcome::BEHAVIOURS),
                (Operators, outcome::OPERATORS),
            ],
            Self::Stale => vec![(Nothing, stale::BEHAVIOURS)],
            Self::Park => vec![(Nothing, park::BEHAVIOURS)],
            Self::Limit => vec![(Nothing, limit::BEHAVIOURS)],
            Self::Probe => vec![(Nothing, probe::BEHAVIOURS), (Operators, probe::OPERATORS)],
            Self::Step => vec![(Nothing, step::BEHAVIOURS), (Operators, step::OPERATORS)],
            Self::Operator => vec![(Operators, operator::BEHAVIOURS)],
            Self::Keeper => vec![(Operators, keeper::OPERATORS)],
            Self::Retention => vec![
                (Nothing, retention::BEHAVIOURS),
                (Operators, retention::OPERATORS),
            ],
            Self::Incarnation => vec![
                (Nothing, incarnation::BEHAVIOURS),
                (Operators, incarnation::OPERATORS),
            ],
            Self::Label => vec![(Nothing, label::BEHAVIOURS), (Operators, label::OPERATORS)],
            Self::History => vec![
                (Nothing, history::BEHAVIOURS),
                (Operators, history::OPERATORS),
            ],
            Self::Index => vec![(Nothing, index::BEHAVIOURS), (Operators, index::OPERATORS)],
            Self::List => vec![(Nothing, list::BEHAVIOURS), (Operators, list::OPERATORS)],
            Self::Invalid => vec![(Nothing, invalid::BEHAVIOURS), (Letters, invalid::LETTERS)],
            Self::Race => vec![
                (Nothing, race::BEHAVIOURS),
                (Nothing, race::once::BEHAVIOURS),
                (Operators, race::once::OPERATORS),
                (Operators, race::storm::BEHAVIOURS),
                (Letters, race::once::LETTERS),
            ],
            Self::Letter => vec![(Letters, letter::BEHAVIOURS)],
            Self::Tombstone => vec![(Letters, tombstone::BEHAVIOURS)],
        }
    }
}
