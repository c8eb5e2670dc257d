//! Which claims come next, by which came last. A wrong prediction costs a statement, never an
//! answer.

use std::sync::atomic::{AtomicU32, Ordering};

/// How high confidence can become: by so many first deliveries in a row.
const CONFIDENCE_MAX: u32 = 16;

/// From where on new keys are expected.
const CONFIDENCE_MIN: u32 = 8;

/// Whether the next keys are expected to be new ones.
#[derive(Debug)]
pub(super) struct FreshKeys {
    enabled: bool,
    confidence: AtomicU32,
}

// === impl FreshKeys ===

impl FreshKeys {
    /// They are at first; never if not `enabled`.
    pub(super) const fn new(enabled: bool) -> Self {
        Self {
            enabled,
            confidence: AtomicU32::new(CONFIDENCE_MAX),
        }
    }

    pub(super) fn are_expected(&self) -> bool {
        self.enabled && self.confidence.load(Ordering::Relaxed) >= CONFIDENCE_MIN
    }

    /// Learns that `fresh` of `all` keys were new. One group in the dark is forgiven, two are not.
    pub(super) fn note(&self, fresh: usize, all: usize) {
        let confidence = self.confidence.load(Ordering::Relaxed);
        let confidence = if fresh * 8 >= all * 7 {
            (confidence + 1).min(CONFIDENCE_MAX)
        } else {
            confidence.saturating_sub(CONFIDENCE_MAX - CONFIDENCE_MIN)
        };
        self.confidence.store(confidence, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_end_the_expectation_and_first_deliveries_bring_it_back() {
        let fresh = FreshKeys::new(true);
        assert!(fresh.are_expected());
        fresh.note(0, 1);
        assert!(fresh.are_expected(), "one is forgiven");
        fresh.note(1, 2);
        assert!(!fresh.are_expected());
        for _ in 0..CONFIDENCE_MIN {
            assert!(!fresh.are_expected());
            fresh.note(64, 64);
        }
        assert!(fresh.are_expected());
        assert!(!FreshKeys::new(false).are_expected());
    }
}
