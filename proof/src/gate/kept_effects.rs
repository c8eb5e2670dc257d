//! What a handler that can be asked keeps: each effect under its work, and the highest fence that it has seen of it.
//!
//! The ledgers are where it commits: an effect is a line, and so is a fence that it has answered about. Handlers follow
//! each other, so the next one reads what those before it wrote.

use crate::harness::{Attempt, Event, Ledger, WorkId};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// The effects and fences of all work.
#[derive(Debug)]
pub(super) struct KeptEffects {
    ledger: Ledger,
    /// Whether runs below a fence that was answered about are refused.
    fences: bool,
    kept: Mutex<HashMap<WorkId, Kept>>,
}

/// What is known of one piece of work.
#[derive(Debug, Default)]
struct Kept {
    /// Runs below it do nothing.
    fence: u64,
    /// What the effect answered.
    effect: Option<String>,
}

// === impl KeptEffects ===

impl KeptEffects {
    /// What all processes before this one left behind.
    pub(super) fn read(
        dir: &Path,
        before: u32,
        ledger: Ledger,
        fences: bool,
    ) -> anyhow::Result<Self> {
        let mut kept: HashMap<WorkId, Kept> = HashMap::new();
        for process in 0..before {
            for event in Ledger::read(dir, process)? {
                if let Event::Effect { attempt, nonce, .. } = event {
                    kept.entry(attempt.work).or_default().acted(attempt, nonce);
                } else if let Event::Probed {
                    work,
                    fence,
                    status: 404,
                } = event
                {
                    kept.entry(work).or_default().refuse_below(fence);
                }
            }
        }
        Ok(Self {
            ledger,
            fences,
            kept: Mutex::new(kept),
        })
    }

    /// Takes effect, unless somebody was told that this run never will.
    pub(super) fn act(
        &self,
        attempt: Attempt,
        take_effect: impl FnOnce() -> String,
    ) -> Option<String> {
        let mut all = self.lock();
        let kept = all.entry(attempt.work).or_default();
        if self.fences && attempt.fence < kept.fence {
            return None;
        }
        let nonce = take_effect();
        kept.acted(attempt, nonce.clone());
        Some(nonce)
    }

    /// What the effect answered, if there was one. If there was none, no run below this fence will have one.
    pub(super) fn ask(&self, work: WorkId, fence: u64) -> Option<String> {
        let mut all = self.lock();
        let kept = all.entry(work).or_default();
        if kept.effect.is_some() {
            self.note(work, fence, 200);
        } else {
            self.note(work, fence, 404);
            kept.refuse_below(fence);
        }
        kept.effect.clone()
    }

    /// Writes down what is answered.
    pub(super) fn note(&self, work: WorkId, fence: u64, status: u16) {
        self.ledger.write(&Event::Probed {
            work,
            fence,
            status,
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkId, Kept>> {
        self.kept.lock().expect("no holder of this lock panics")
    }
}

// === impl Kept ===

impl Kept {
    fn acted(&mut self, attempt: Attempt, nonce: String) {
        self.refuse_below(attempt.fence);
        self.effect = Some(nonce);
    }

    fn refuse_below(&mut self, fence: u64) {
        self.fence = self.fence.max(fence);
    }
}
