//! Gates broken on purpose, and what brings each flaw to light. A checker that lets one of them pass has no teeth.

use super::fight::{Effort, Snares};
use super::flaw::GateFlaw;
use super::scene::Long;
use super::snare::{BEFORE_COMPLETE, Snare};
use super::suite::{Plan, Staged, Where, run};
use crate::bed::Flaw;
use crate::crash::{Fault, Mode, Promise};
use std::time::Duration;
use tokio::task::JoinSet;

/// What is broken on purpose may be stuck, and is judged all the same.
const HEAL_MAX: Duration = Duration::from_secs(4);

/// How often a paused gate must find its run taken over, where that is what brings a flaw to light.
const ZOMBIES_MIN: usize = 4;

/// Most work is delivered again after a lease.
const BROKER_FAULTS: [&str; 2] = ["duplicate-at-once=0.2", "overlap=0.8:1500ms"];

/// Every so-manieth visit springs a snare.
const VISITS: u32 = 3;

/// Most effects are still running when they are delivered again.
const ALL_LONG: Long = Long {
    first: 90,
    later: 90,
};

/// Something broken, and what brings it to light.
struct Tooth {
    flaw: GateFlaw,
    store: Where,
    promise: Promise,
    /// The fault that a gate runs into which comes by this point; what the broker does wrong may be enough.
    snare: Option<(&'static str, Fault)>,
    long: Long,
}

const TEETH: [Tooth; 4] = [
    Tooth {
        flaw: GateFlaw::FenceStandsStill,
        store: Where::Redis,
        promise: Promise::FencesRise,
        snare: Some(("resp_done", Fault::Kill)),
        long: ALL_LONG,
    },
    Tooth {
        flaw: GateFlaw::Store(Flaw::ClaimIgnoresTheLease),
        store: Where::Redis,
        promise: Promise::NoDuplicate,
        snare: None,
        long: ALL_LONG,
    },
    Tooth {
        flaw: GateFlaw::Store(Flaw::CompleteWithoutFence),
        store: Where::Postgres,
        promise: Promise::FencesRise,
        snare: Some((BEFORE_COMPLETE, Fault::Pause)),
        // The one that takes over is still running when the paused one goes on.
        long: Long {
            first: 0,
            later: 90,
        },
    },
    Tooth {
        flaw: GateFlaw::AnswersBeforeRecording,
        store: Where::Embedded,
        promise: Promise::NotStuck,
        snare: Some(("before_reply", Fault::Kill)),
        long: ALL_LONG,
    },
];

/// Fights what is broken on purpose; says for each how often the checker saw the promise broken.
///
/// # Errors
/// When a server or a process cannot be used, or something broken passed.
pub async fn show_teeth(plan: &Plan) -> anyhow::Result<Vec<String>> {
    let mut running = JoinSet::new();
    for (number, tooth) in (100..).zip(TEETH) {
        let seed = plan.seed.wrapping_mul(1_000).wrapping_add(number);
        let effort = Effort {
            storms: vec![2],
            strikes_every: None,
            heal_max: HEAL_MAX,
            snares: tooth.snares(),
            zombies_min: tooth.zombies_min(),
            ..plan.effort()
        };
        running.spawn(tooth.bite(seed, effort));
    }
    let mut convicted = Vec::new();
    while let Some(done) = running.join_next().await {
        convicted.push(done??);
    }
    Ok(convicted)
}

// === impl Tooth ===

impl Tooth {
    fn snares(&self) -> Snares {
        let Some((point, fault)) = self.snare else {
            return Snares::None;
        };
        Snares::Only(Snare {
            point: point.to_owned(),
            visit: VISITS,
            fault,
            again: true,
        })
    }

    const fn zombies_min(&self) -> usize {
        match self.snare {
            Some((_, Fault::Pause)) => ZOMBIES_MIN,
            Some((_, Fault::Kill)) | None => 0,
        }
    }

    async fn bite(self, seed: u64, effort: Effort) -> anyhow::Result<String> {
        let (promise, words, store) = (self.promise, self.flaw.words(), self.store.word());
        let staged = Staged {
            store: self.store,
            mode: Mode::Retry,
            flaw: Some(self.flaw),
            broker_faults: &BROKER_FAULTS,
            long: self.long,
        };
        let (_, fought, _, verdict) = run(staged, seed, effort).await?;
        let (zombies, needed) = (fought.zombies, self.zombies_min());
        anyhow::ensure!(
            zombies >= needed,
            "{words}: only {zombies} paused gates found their run taken over, {needed} are needed"
        );
        let (times, all) = (verdict.count(promise), verdict.broken.len());
        anyhow::ensure!(
            times > 0,
            "the checker has no teeth: {words} passed ({promise:?} was never seen broken; {all} others)"
        );
        Ok(format!(
            "{store}, {words}: convicted, {promise:?} broken {times} times"
        ))
    }
}
