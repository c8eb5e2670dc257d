//! The rules that can be checked by looking at a world at rest, and by asking it what it would answer.

use super::Semel;
use super::canonical::{ACTS, DELAY, LEASE, NOW, ticks};
use super::ghost::By;
use super::invariant::Invariant;
use super::world::{Work, World};
use semel::Fingerprint;
use semel::clock::Time;
use semel::protocol::{
    Answer, Claim, Claimed, Decision, Ending, InDoubt, Operation, Owner, Record, State, look,
};

/// Whether a world at rest keeps a rule.
type StateCheck = fn(&Semel, &World) -> bool;

const RULES: [(Invariant, StateCheck); 7] = [
    (Invariant::GuardedOnce, guarded_once),
    (Invariant::SuccessHasEffect, success_has_effect),
    (Invariant::SameReplay, same_replay),
    (
        Invariant::MismatchDisturbsNothing,
        mismatch_disturbs_nothing,
    ),
    (Invariant::RetentionOutlivesLease, retention_outlives_lease),
    (Invariant::OneProbedEffect, one_probed_effect),
    (Invariant::NeverStuck, never_stuck),
];

/// The owner of claims that are asked for the sake of the answer.
const NOBODY: Owner = Owner([0xff; 16]);

fn guarded_once(_: &Semel, world: &World) -> bool {
    let commits = world.ghost.present().commits;
    let same_fate = match &world.record {
        Some(record) if world.work == Work::Guarded && !world.ghost.present().forgotten => {
            succeeded_by_run(world, record) == (commits == 1)
        }
        Some(_) | None => true,
    };
    same_fate
        && world
            .ghost
            .incarnations
            .values()
            .all(|incarnation| incarnation.commits <= 1)
}

fn success_has_effect(_: &Semel, world: &World) -> bool {
    let incarnation = world.ghost.present();
    let succeeded = world.has_record(|record| succeeded_by_run(world, record));
    !succeeded || incarnation.effects + incarnation.commits > 0
}

fn same_replay(model: &Semel, world: &World) -> bool {
    let Some(record) = look(world.record.as_ref(), NOW) else {
        return true;
    };
    let Some(ending) = record.state.ending() else {
        return true;
    };
    let answer = model.would_claim(world, model.claim(NOBODY), NOW).answer;
    let Answer::Claimed(Claimed::Replayed(replayed)) = answer else {
        return false;
    };
    world.ghost.present().end.as_ref().is_some_and(|end| {
        (end.ending, end.fence) == (ending, record.fence)
            && (end.ending, &end.result) == (replayed.ending, &replayed.result)
    })
}

fn mismatch_disturbs_nothing(model: &Semel, world: &World) -> bool {
    if look(world.record.as_ref(), NOW).is_none() {
        return true;
    }
    let other = Claim {
        fingerprint: Fingerprint::from_bytes([0xff; 32]),
        ..model.claim(NOBODY)
    };
    let decision = model.would_claim(world, other, NOW);
    decision == Decision::unchanged(Answer::Claimed(Claimed::Mismatched))
}

fn retention_outlives_lease(model: &Semel, world: &World) -> bool {
    world.record.as_ref().is_none_or(|record| {
        let live = record.state == State::Running && record.lease_until > NOW;
        !live || !record.expired(NOW) && !model.sweepable(record)
    })
}

fn one_probed_effect(model: &Semel, world: &World) -> bool {
    let incarnation = world.ghost.present();
    model.settings.in_doubt != InDoubt::Probe || incarnation.effects <= 1 + incarnation.findings
}

fn never_stuck(model: &Semel, world: &World) -> bool {
    let clock_back = ticks(u64::from(model.settings.budget.clock_back));
    let lapsed = NOW.plus(LEASE.max(DELAY).max(ACTS)).plus(clock_back);
    matches!(
        model.would_claim(world, model.claim(NOBODY), lapsed).answer,
        Answer::Claimed(Claimed::Granted(_) | Claimed::Replayed(_) | Claimed::Parked)
    )
}

fn succeeded_by_run(world: &World, record: &Record) -> bool {
    let end = world.ghost.present().end.as_ref();
    record.state == State::Succeeded
        && end.is_none_or(|end| (end.by, end.ending) == (By::Run, Ending::Succeeded))
}

// === impl Semel ===

impl Semel {
    /// Whether a world keeps this rule, by what was done to it and by what it is.
    pub(super) fn keeps(&self, world: &World, invariant: Invariant) -> bool {
        let mut standing = RULES.iter().filter(|(other, _)| *other == invariant);
        !world.broken.contains(&invariant) && standing.all(|(_, keeps)| keeps(self, world))
    }

    /// What a claim would be answered, without making it.
    pub(super) fn would_claim(&self, world: &World, claim: Claim, now: Time) -> Decision {
        self.decide(world, &Operation::Claim(claim), now)
    }
}
