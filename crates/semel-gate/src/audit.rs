//! The audit: who did what to a record or a letter, when, and why. Each act leaves one log line, target `audit`; the
//! latest are remembered for the page. The log has all of them, this memory only what fits.

use crate::invisible::has_visible;
use crate::label::cut;
use bytes::Bytes;
use semel::Key;
use semel::clock::{Clock, SystemClock, Time};
use semel::letter::LetterId;
use semel::protocol::act_by;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many acts are remembered; the log has those before.
pub(crate) const AUDIT_ITEMS_MAX: usize = 1000;

/// The longest reason that is taken: it goes into a log line and into the record's history.
pub const WHY_BYTES_MAX: usize = 500;

/// The latest acts, oldest first.
#[derive(Debug)]
pub struct Audit {
    clock: SystemClock,
    acts: Mutex<VecDeque<Arc<AuditedAct>>>,
}

/// One act: what was done, by whom, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditedAct {
    pub(crate) at: Time,
    pub(crate) act: &'static str,
    pub(crate) who: Who,
    pub(crate) key: Option<Key>,
    pub(crate) letter: Option<LetterId>,
    /// How the record stood, or why the letter was kept.
    pub(crate) before: String,
    pub(crate) after: String,
    /// What it does to what the route promises.
    pub(crate) promise: Option<String>,
    /// Of a redrive: whether the letter was closed, and whether it ran although nobody knows what became of it before.
    pub(crate) redrive: Option<Redriven>,
}

/// What the audit says of a redrive besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redriven {
    pub(crate) closed: bool,
    pub(crate) run_again: bool,
}

/// Who acts, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The address it came from, or the name of the command.
    pub by: String,
    /// By which way it came.
    pub via: Via,
    /// The reason it gave; empty is none.
    pub why: String,
}

/// By which way an act came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// The admin address, as JSON: a command or a program.
    #[default]
    Admin,
    /// The page.
    Page,
    /// A store that was opened without a gate.
    Store,
}

// === impl Audit ===

impl Audit {
    /// With nothing remembered.
    #[must_use]
    pub fn new() -> Self {
        Self {
            clock: SystemClock::new(),
            acts: Mutex::default(),
        }
    }

    /// The time of this machine.
    pub(crate) fn now(&self) -> Time {
        self.clock.wall()
    }

    /// Writes the line of an act and remembers it. Its time is set here.
    pub(crate) fn note(&self, act: AuditedAct) {
        act.log();
        let act = AuditedAct {
            at: self.now(),
            ..act
        };
        let mut acts = self.lock();
        if acts.len() == AUDIT_ITEMS_MAX {
            acts.pop_front();
        }
        acts.push_back(Arc::new(act));
    }

    /// The latest acts, the latest first.
    pub(crate) fn latest(&self) -> Vec<Arc<AuditedAct>> {
        self.lock().iter().rev().cloned().collect()
    }

    /// The acts on this key, oldest first.
    pub(crate) fn of_key(&self, key: &Key) -> Vec<Arc<AuditedAct>> {
        let acts = self.lock();
        let of_key = acts.iter().filter(|act| act.key.as_ref() == Some(key));
        of_key.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<AuditedAct>>> {
        self.acts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self::new()
    }
}

// === impl AuditedAct ===

impl AuditedAct {
    pub(crate) fn new(act: &'static str, who: &Who) -> Self {
        Self {
            at: Time(0),
            act,
            who: who.clone(),
            key: None,
            letter: None,
            before: String::new(),
            after: String::new(),
            promise: None,
            redrive: None,
        }
    }

    fn log(&self) {
        let key = self.key.map(|key| key.to_string());
        let letter = self.letter.map(|letter| letter.to_string());
        let why = Some(self.who.why.as_str()).filter(|why| !why.is_empty());
        tracing::info!(
            target: "audit",
            act = self.act,
            letter,
            key,
            before = self.before,
            after = self.after,
            closed = self.redrive.map(|it| it.closed),
            run_again = self.redrive.map(|it| it.run_again),
            promise = self.promise,
            by = self.who.by,
            via = self.who.via.word(),
            why,
            "act"
        );
    }
}

// === impl Who ===

impl Who {
    /// Somebody without a reason.
    #[must_use]
    pub fn new(by: impl Into<String>, via: Via) -> Self {
        Self {
            by: by.into(),
            via,
            why: String::new(),
        }
    }

    /// For this reason; what is longer than [`WHY_BYTES_MAX`] is cut, and what nobody can see is none.
    #[must_use]
    pub fn because(mut self, why: &str) -> Self {
        let why = Some(why.trim()).filter(|why| has_visible(why));
        self.why = cut(why.unwrap_or_default(), WHY_BYTES_MAX).into_owned();
        self
    }

    /// Who does this, as a record's history keeps it.
    #[must_use]
    pub fn of(&self, act: &str) -> Bytes {
        let who = format!("{} ({})", self.by, self.via.word());
        act_by(act, &who, &self.why)
    }
}

// === impl Via ===

impl Via {
    /// The word for it, in log lines and on the page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Page => "page",
            Self::Store => "store",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_acts_is_bounded_and_keeps_the_latest() {
        let audit = Audit::new();
        let who = Who::new("127.0.0.1:1", Via::Page).because(" it was refunded ");
        for number in 0..AUDIT_ITEMS_MAX + 3 {
            let act = AuditedAct {
                after: number.to_string(),
                ..AuditedAct::new("forget", &who)
            };
            audit.note(act);
        }
        let latest = audit.latest();
        assert_eq!(latest.len(), AUDIT_ITEMS_MAX);
        assert_eq!(latest[0].after, (AUDIT_ITEMS_MAX + 2).to_string());
        assert_eq!(
            who.of("resolve"),
            "resolve by 127.0.0.1:1 (page): it was refunded"
        );
    }

    #[test]
    fn a_reason_that_nobody_sees_is_none() {
        let page = |why| Who::new("x", Via::Page).because(why);
        for why in ["", "  ", "\u{200b}", " \u{202e}\u{a0}\u{feff}", "\u{7}"] {
            assert_eq!(page(why).why, "", "{why:?}");
        }
        assert_eq!(page("\u{200b}ok").why, "\u{200b}ok");
    }

    #[test]
    fn a_long_reason_is_cut() {
        let why = "ä".repeat(WHY_BYTES_MAX);
        let who = Who::new("x", Via::Admin).because(&why);
        assert!(who.why.len() <= WHY_BYTES_MAX && who.why.ends_with('…'));
    }
}
