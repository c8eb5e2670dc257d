//! Gates broken on purpose, and what brings each flaw to light. A checker that lets one of them pass has no teeth.

use super::armed_fault::{ArmedFault, BEFORE_COMPLETE};
use super::attack::{ArmedFaults, AttackSettings};
use super::deployment::LongEffects;
use super::flaw::GateFlaw;
use super::suite::{DeploymentPlan, GateStore, Plan, run};
use crate::crash::{Mode, ProcessFault, Promise};
use crate::harness::Flaw;
use std::time::Duration;
use tokio::task::JoinSet;

/// What is broken on purpose may be stuck, and is checked all the same.
const HEAL_MAX: Duration = Duration::from_secs(4);

/// How often a paused gate must find its run taken over, where that is what brings a flaw to light.
const ZOMBIES_MIN: usize = 4;

/// Most work is delivered again after a lease.
const BROKER_FAULTS: [&str; 2] = ["duplicate-at-once=0.2", "overlap=0.8:1500ms"];

/// Every nth visit springs an armed fault.
const VISITS: u32 = 3;

/// Most effects are still running when they are delivered again.
const ALL_LONG: LongEffects = LongEffects {
    first: 90,
    later: 90,
};

/// Something broken, and what brings it to light.
struct BrokenGate {
    flaw: GateFlaw,
    store: GateStore,
    promise: Promise,
    /// The fault that a gate runs into which comes by this point; what the broker does wrong may be enough.
    armed_fault: Option<(&'static str, ProcessFault)>,
    long: LongEffects,
}

const BROKEN_GATES: [BrokenGate; 4] = [
    BrokenGate {
        flaw: GateFlaw::FenceStandsStill,
        store: GateStore::Redis,
        promise: Promise::FencesRise,
        armed_fault: Some(("resp_done", ProcessFault::Kill)),
        long: ALL_LONG,
    },
    BrokenGate {
        flaw: GateFlaw::Store(Flaw::ClaimIgnoresTheLease),
        store: GateStore::Redis,
        promise: Promise::NoDuplicate,
        armed_fault: None,
        long: ALL_LONG,
    },
    BrokenGate {
        flaw: GateFlaw::Store(Flaw::CompleteWithoutFence),
        store: GateStore::Postgres,
        promise: Promise::FencesRise,
        armed_fault: Some((BEFORE_COMPLETE, ProcessFault::Pause)),
        // The one that takes over is still running when the paused one goes on.
        long: LongEffects {
            first: 0,
            later: 90,
        },
    },
    BrokenGate {
        flaw: GateFlaw::AnswersBeforeRecording,
        store: GateStore::Embedded,
        promise: Promise::NotStuck,
        armed_fault: Some(("before_reply", ProcessFault::Kill)),
        long: ALL_LONG,
    },
];

/// Attacks what is broken on purpose; says for each how often the checker saw the promise broken.
///
/// # Errors
/// When a server or a process cannot be used, or something broken passed.
pub async fn convict_broken_gates(plan: &Plan) -> anyhow::Result<Vec<String>> {
    let mut running = JoinSet::new();
    for (number, gate) in (100..).zip(BROKEN_GATES) {
        let seed = plan.seed.wrapping_mul(1_000).wrapping_add(number);
        let settings = AttackSettings {
            storms: vec![2],
            faults_every: None,
            heal_max: HEAL_MAX,
            armed_faults: gate.armed_faults(),
            zombies_min: gate.zombies_min(),
            ..plan.settings()
        };
        running.spawn(gate.convict(seed, settings));
    }
    let mut convicted = Vec::new();
    while let Some(done) = running.join_next().await {
        convicted.push(done??);
    }
    Ok(convicted)
}

// === impl BrokenGate ===

impl BrokenGate {
    fn armed_faults(&self) -> ArmedFaults {
        let Some((point, fault)) = self.armed_fault else {
            return ArmedFaults::None;
        };
        ArmedFaults::Only(ArmedFault {
            point: point.to_owned(),
            visit: VISITS,
            fault,
            again: true,
        })
    }

    const fn zombies_min(&self) -> usize {
        match self.armed_fault {
            Some((_, ProcessFault::Pause)) => ZOMBIES_MIN,
            Some((_, ProcessFault::Kill)) | None => 0,
        }
    }

    async fn convict(self, seed: u64, settings: AttackSettings) -> anyhow::Result<String> {
        let (promise, words, store) = (self.promise, self.flaw.name(), self.store.name());
        let planned = DeploymentPlan {
            store: self.store,
            mode: Mode::Retry,
            flaw: Some(self.flaw),
            broker_faults: &BROKER_FAULTS,
            long: self.long,
        };
        let (_, log, _, verdict) = run(planned, seed, settings).await?;
        let (zombies, needed) = (log.zombies, self.zombies_min());
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
