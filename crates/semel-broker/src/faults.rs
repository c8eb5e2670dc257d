//! Misbehaviour on request, and the dice for it.
//!
//! Whether a fault strikes is decided by the seed, the resource, the number of the task or message there, and the
//! attempt: never by time or by who was first. The same seed and the same sequence of tasks make the same choices.

mod fault;

pub use fault::{BadFault, Fault, Kind};

use sha2::{Digest, Sha256};
use std::sync::RwLock;
use std::time::Duration;

/// What is to go wrong, and how often. It can be changed while the broker runs.
#[derive(Debug)]
pub(crate) struct Faults {
    seed: u64,
    list: RwLock<Vec<Fault>>,
}

/// What goes wrong with one attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Deliver once more after the first succeeded.
    pub(crate) duplicate: bool,
    /// Deliver twice at the same time.
    pub(crate) duplicate_at_once: bool,
    /// Wait first.
    pub(crate) delay: Option<Duration>,
    /// Let others of the same queue or subscription go first.
    pub(crate) reorder: bool,
    /// Deliver, then behave as if no answer had come.
    pub(crate) lose_answer: bool,
    /// Break the connection after so many bytes of the request's body.
    pub(crate) cut: Option<usize>,
    /// After this long, behave as if the deadline had passed, and leave the handler running.
    pub(crate) overlap: Option<Duration>,
}

// === impl Faults ===

impl Faults {
    pub(crate) fn new(seed: u64, list: Vec<Fault>) -> Self {
        Self {
            seed,
            list: RwLock::new(list),
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn list(&self) -> Vec<Fault> {
        self.list.read().expect("nobody panics holding it").clone()
    }

    /// What is to go wrong from now on, instead of what was.
    pub(crate) fn replace(&self, list: Vec<Fault>) {
        *self.list.write().expect("nobody panics holding it") = list;
    }

    /// What goes wrong with this attempt. The `resources` are full names, the most particular first (a
    /// subscription, then its topic); a fault named for an earlier one wins over a later one, and over one
    /// for all. `sequence` numbers the task in its queue, or the message in its topic; `attempt` begins
    /// with 1.
    pub(crate) fn plan(&self, resources: &[&str], sequence: u64, attempt: u32) -> Plan {
        let list = self.list.read().expect("nobody panics holding it");
        let mut plan = Plan::default();
        if list.is_empty() {
            return plan;
        }
        let place = resources.last().copied().unwrap_or_default();
        for kind in Kind::ALL {
            let Some(fault) = chosen(&list, kind, resources) else {
                continue;
            };
            if self.roll(kind, place, sequence, attempt) < fault.rate() {
                plan.add(fault);
            }
        }
        plan
    }

    /// A number from 0 to 1, below 1.
    fn roll(&self, kind: Kind, place: &str, sequence: u64, attempt: u32) -> f64 {
        let digest = Sha256::new()
            .chain_update(self.seed.to_be_bytes())
            .chain_update(kind.name())
            .chain_update([0])
            .chain_update(place)
            .chain_update([0])
            .chain_update(sequence.to_be_bytes())
            .chain_update(attempt.to_be_bytes())
            .finalize();
        let mut first = [0; 4];
        first.copy_from_slice(digest.get(..4).expect("a digest has 32 bytes"));
        f64::from(u32::from_be_bytes(first)) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The fault of a kind that is meant for these resources most closely.
fn chosen<'a>(list: &'a [Fault], kind: Kind, resources: &[&str]) -> Option<&'a Fault> {
    let of_kind = || list.iter().rev().filter(|fault| fault.kind() == kind);
    let named = resources
        .iter()
        .find_map(|resource| of_kind().find(|fault| fault.names(resource)));
    named.or_else(|| of_kind().find(|fault| fault.is_for_all()))
}

// === impl Plan ===

impl Plan {
    fn add(&mut self, fault: &Fault) {
        match fault.kind() {
            Kind::Duplicate => self.duplicate = true,
            Kind::DuplicateAtOnce => self.duplicate_at_once = true,
            Kind::Delay => self.delay = Some(fault.span()),
            Kind::Reorder => self.reorder = true,
            Kind::LoseAnswer => self.lose_answer = true,
            Kind::Cut => self.cut = Some(fault.bytes()),
            Kind::Overlap => self.overlap = Some(fault.span()),
        }
    }

    /// The names of what goes wrong, for the history.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let all = [
            (self.duplicate, Kind::Duplicate),
            (self.duplicate_at_once, Kind::DuplicateAtOnce),
            (self.delay.is_some(), Kind::Delay),
            (self.reorder, Kind::Reorder),
            (self.lose_answer, Kind::LoseAnswer),
            (self.cut.is_some(), Kind::Cut),
            (self.overlap.is_some(), Kind::Overlap),
        ];
        let striking = all.into_iter().filter(|(strikes, _)| *strikes);
        striking.map(|(_, kind)| kind.name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(seed: u64, list: &[&str]) -> Faults {
        let list = list.iter().map(|text| text.parse().unwrap());
        Faults::new(seed, list.collect())
    }

    #[test]
    fn the_same_seed_makes_the_same_choices_and_another_one_does_not() {
        let choices = |seed| {
            let faults = faults(seed, &["duplicate=0.5", "lose-answer=0.5"]);
            let of = |sequence| faults.plan(&["projects/p/topics/t"], sequence, 1);
            (0..200).map(of).collect::<Vec<_>>()
        };
        assert_eq!(choices(7), choices(7));
        assert_ne!(choices(7), choices(8));
    }

    #[test]
    fn a_rate_is_met() {
        let faults = faults(1, &["duplicate=0.05"]);
        let struck = (0..10_000).filter(|n| faults.plan(&["q"], *n, 1).duplicate);
        let count = struck.count();
        assert!((400..600).contains(&count), "{count}");
    }

    #[test]
    fn the_closest_name_wins() {
        let queue = "projects/p/locations/l/queues/orders";
        let faults = faults(
            1,
            &["duplicate=1", "duplicate=0@orders", "delay=1:2s@other"],
        );
        assert!(!faults.plan(&[queue], 1, 1).duplicate);
        assert!(faults.plan(&["projects/p/topics/t"], 1, 1).duplicate);
        let other = faults.plan(&["projects/p/locations/l/queues/other"], 1, 1);
        assert_eq!(other.delay, Some(Duration::from_secs(2)));
        assert_eq!(other.names(), ["duplicate", "delay"]);
    }
}
