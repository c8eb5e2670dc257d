//! Which claims come next, by which came last. A bet that is lost costs a statement, never an answer.

use std::sync::atomic::{AtomicU32, Ordering};

/// How sure a bet can become: after so many first deliveries in a row.
const SURE: u32 = 16;

/// From where on it is placed.
const ON: u32 = 8;

/// A bet that the next keys are new ones.
#[derive(Debug)]
pub(super) struct Bet {
    placed: bool,
    sure: AtomicU32,
}

// === impl Bet ===

impl Bet {
    /// A bet; `placed` is whether it ever is.
    pub(super) const fn new(placed: bool) -> Self {
        Self {
            placed,
            sure: AtomicU32::new(SURE),
        }
    }

    pub(super) fn is_on_fresh(&self) -> bool {
        self.placed && self.sure.load(Ordering::Relaxed) >= ON
    }

    /// Learns that `fresh` of `all` keys were new. One group in the dark is forgiven, two are not.
    pub(super) fn note(&self, fresh: usize, all: usize) {
        let sure = self.sure.load(Ordering::Relaxed);
        let sure = if fresh * 8 >= all * 7 {
            (sure + 1).min(SURE)
        } else {
            sure.saturating_sub(SURE - ON)
        };
        self.sure.store(sure, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_end_the_bet_and_first_deliveries_bring_it_back() {
        let bet = Bet::new(true);
        assert!(bet.is_on_fresh());
        bet.note(0, 1);
        assert!(bet.is_on_fresh(), "one is forgiven");
        bet.note(1, 2);
        assert!(!bet.is_on_fresh());
        for _ in 0..ON {
            assert!(!bet.is_on_fresh());
            bet.note(64, 64);
        }
        assert!(bet.is_on_fresh());
        assert!(!Bet::new(false).is_on_fresh());
    }
}
