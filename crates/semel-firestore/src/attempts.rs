//! What an operation has tried to write and may have written: nobody heard.
//!
//! A run's own words need none of this: `decide` finds their owner and fence in the record, and answers them again. An
//! operator's act, or a letter's mark, leaves nothing that says whose it was; decided once more it would be refused, or done to
//! what has come since.

use crate::writes::Version;

/// What was tried, all of it on one version.
#[derive(Debug)]
pub(crate) struct Attempts<T, A> {
    on: Option<Version>,
    tried: Vec<(T, A)>,
}

/// What a look says of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<A> {
    /// There are none, or none was made so far: decide, and write.
    Open,
    /// One was made; its answer.
    Made(A),
    /// Something else is there by now, so nobody can say whether one was made.
    Unknown,
}

// === impl Attempts ===

impl<T, A> Default for Attempts<T, A> {
    fn default() -> Self {
        Self {
            on: None,
            tried: Vec::new(),
        }
    }
}

impl<T: PartialEq, A: Clone> Attempts<T, A> {
    /// This is about to be written on this version; none is what is not there.
    pub(crate) fn begin(&mut self, on: Option<Version>, what: T, answer: A) {
        self.on = on;
        self.tried.push((what, answer));
    }

    /// The last one was refused, so it was not made.
    pub(crate) fn refused(&mut self) {
        self.tried.pop();
    }

    /// What is there now, and in which version.
    pub(crate) fn compare(&self, seen: Option<(&T, Version)>) -> Outcome<A> {
        if self.tried.is_empty() || seen.map(|(_, version)| version) == self.on {
            return Outcome::Open;
        }
        let made = seen.and_then(|(seen, _)| self.tried.iter().find(|(tried, _)| tried == seen));
        match made {
            Some((_, answer)) => Outcome::Made(answer.clone()),
            None => Outcome::Unknown,
        }
    }

    /// Whether one may still be made: it is late.
    pub(crate) fn may_be_late(&self) -> bool {
        !self.tried.is_empty()
    }
}
