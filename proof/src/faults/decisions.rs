//! Faults in what the protocol decides, ordered by the invariant that convicts the model's mutant. Three of them are
//! planted in processes as well.

use super::{Defect, DeliberateFault, Trial};
use crate::crash::{ArmedPoint, LongEffects, Mode, Point, Promise};
use crate::harness::{ProcessFault, StoreKind};
use crate::model::Settings;
use crate::model::invariant::Invariant;
use crate::model::mutant::{Input, Mutant, Mutation};
use crate::race::{OPERATOR_PERCENT, Rule};
use bytes::Bytes;
use semel::protocol::{
    Answer, Claimed, Decision, Fence, Held, InDoubt, Lease, Operation, Record, State, StepRecord,
    sweepable,
};
use std::time::Duration;

const RETRY: Settings = Settings::RETRY.with_grants(2);
const PARK: Settings = Settings::PARK.with_grants(2);

pub(super) const FAULTS: &[DeliberateFault] = &[
    mutant(
        "claim ignores the lease",
        RETRY,
        Invariant::OneLiveLease,
        Mutation::Input(|input| input.on_claim(Input::lapse)),
    )
    .planted(
        Defect::ClaimIgnoresTheLease,
        &[
            Trial::Crash {
                store: StoreKind::Redis,
                mode: Mode::Park,
                promise: Promise::NoDuplicate,
                armed: None,
            },
            race(&[Rule::OneLease, Rule::Accounted]),
            Trial::Gate {
                store: StoreKind::Redis,
                promise: Promise::NoDuplicate,
                armed: None,
                long: LongEffects::NEARLY_ALL,
            },
        ],
    ),
    mutant(
        "forget takes a live lease",
        RETRY,
        Invariant::OneLiveLease,
        Mutation::Input(|input| {
            if let Operation::Forget(_) = input.operation {
                input.lapse();
            }
        }),
    ),
    mutant(
        "fence from the clock alone",
        RETRY,
        Invariant::FencesRise,
        Mutation::Decision(|input, decision| {
            if let Some((lease, record)) = granted(decision) {
                record.fence = Fence(input.now.0);
                lease.fence = record.fence;
            }
        }),
    ),
    mutant(
        "sweep without grace",
        Settings::UNSTEADY_CLOCK,
        Invariant::FencesRise,
        Mutation::Sweepable(|record, _, now| sweepable(record, Duration::ZERO, now)),
    ),
    mutant(
        "complete without fence",
        RETRY,
        Invariant::StaleChangesNothing,
        Mutation::Input(|input| input.on_completion(Input::speak_for_record)),
    )
    .planted(
        Defect::CompleteWithoutFence,
        &[
            Trial::Crash {
                store: StoreKind::Postgres,
                mode: Mode::Retry,
                promise: Promise::SameAnswer,
                armed: Some(ArmedPoint {
                    point: Point::EffectDone,
                    fault: ProcessFault::Pause,
                }),
            },
            race(&[Rule::StaleChangesNothing]),
            Trial::Gate {
                store: StoreKind::Postgres,
                promise: Promise::FencesRise,
                armed: Some(("before_complete", ProcessFault::Pause)),
                // The one that takes over is still running when the paused one goes on.
                long: LongEffects {
                    first: 0,
                    later: 90,
                },
            },
        ],
    ),
    mutant(
        "renew without fence",
        RETRY,
        Invariant::StaleChangesNothing,
        Mutation::Input(|input| {
            if let Operation::Renew { .. } = input.operation {
                input.speak_for_record();
            }
        }),
    ),
    mutant(
        "parking takes the fence",
        PARK,
        Invariant::StaleChangesNothing,
        Mutation::Decision(|input, decision| {
            if let Some(record) = decision.write.as_mut().filter(|_| input.is_claim())
                && record.state == State::Parked
            {
                record.fence.0 += 1;
            }
        }),
    ),
    mutant(
        "lapse revokes",
        RETRY,
        Invariant::StaleChangesNothing,
        Mutation::Decision(|input, decision| {
            if input.has_lapsed() && input.is_completion() {
                *decision = Decision::unchanged(Answer::Held(Held::Stale));
            }
        }),
    ),
    mutant(
        "success does not absorb",
        RETRY,
        Invariant::OneCompletion,
        Mutation::Input(|input| input.on_claim(|it| it.show(State::Succeeded, State::Waiting))),
    )
    .planted(
        Defect::SuccessDoesNotAbsorb,
        &[race(&[Rule::OneEnd, Rule::Accounted])],
    ),
    mutant(
        "completion is overwritten",
        RETRY,
        Invariant::OneCompletion,
        Mutation::Input(|input| {
            input.on_completion(|it| it.show(State::Succeeded, State::Running))
        }),
    ),
    mutant(
        "replay loses the result",
        RETRY,
        Invariant::SameReplay,
        Mutation::Decision(|_, decision| {
            if let Answer::Claimed(Claimed::Replayed(settled)) = &mut decision.answer {
                settled.result = Bytes::new();
            }
        }),
    ),
    mutant(
        "mismatch is ignored",
        RETRY,
        Invariant::MismatchDisturbsNothing,
        Mutation::Input(|input| {
            if let Some(fingerprint) = input.record.as_ref().map(|record| record.fingerprint) {
                input.change_claim(|claim| claim.fingerprint = fingerprint);
            }
        }),
    ),
    mutant(
        "expires_at goes back",
        RETRY,
        Invariant::RetentionOutlivesLease,
        Mutation::Decision(|input, decision| {
            if let Operation::Complete { retention, .. } = input.operation
                && let Some(record) = &mut decision.write
            {
                record.expires_at = input.now.plus(retention);
            }
        }),
    ),
    mutant(
        "sweep takes running",
        RETRY,
        Invariant::RetentionOutlivesLease,
        Mutation::Sweepable(|record, grace, now| {
            let lapsed = record.state == State::Running && record.lease_until <= now;
            lapsed || sweepable(record, grace, now)
        }),
    ),
    mutant(
        "parked expires",
        PARK,
        Invariant::ParkedStays,
        Mutation::Input(|input| {
            let record = input.record.as_ref();
            if record.is_some_and(|it| in_state(it, State::Waiting).expired(input.now)) {
                input.on_claim(|it| it.show(State::Parked, State::Waiting));
            }
        }),
    ),
    mutant(
        "sweep takes parked",
        PARK,
        Invariant::ParkedStays,
        Mutation::Sweepable(|record, grace, now| {
            sweepable(&in_state(record, State::Waiting), grace, now)
        }),
    ),
    mutant(
        "completion is answered, not written",
        RETRY,
        Invariant::GuardedOnce,
        Mutation::Decision(|input, decision| {
            if input.is_completion() {
                *decision = Decision::unchanged(decision.answer.clone());
            }
        }),
    ),
    mutant(
        "take-over gives a new born",
        RETRY,
        Invariant::StepsRemembered,
        Mutation::Decision(|_, decision| {
            if let Some((lease, record)) = granted(decision) {
                record.born = record.fence;
                lease.born = record.fence;
            }
        }),
    ),
    mutant(
        "take-over ends the incarnation",
        RETRY,
        Invariant::StepsRemembered,
        Mutation::Decision(|input, decision| {
            if granted(decision).is_some() {
                decision.ended = input.record.as_ref().map(|old| old.born);
            }
        }),
    ),
    mutant(
        "step without born",
        RETRY,
        Invariant::StepsRemembered,
        Mutation::StepFound(|steps, lease| {
            steps.get(&lease.born).or_else(|| steps.values().next())
        }),
    ),
    mutant(
        "step done runs again",
        RETRY,
        Invariant::StepsRemembered,
        Mutation::Input(|input| {
            let begins = input.begins_step();
            input.step.take_if(|step| begins && step.result.is_some());
        }),
    ),
    mutant(
        "step in doubt runs under park",
        PARK,
        Invariant::OneUnknownStart,
        Mutation::Input(|input| {
            let asking = input.operation.lease().filter(|_| input.begins_step());
            let asking = asking.map(|lease| lease.fence);
            let in_doubt = |step: &mut StepRecord| {
                step.result.is_none() && asking.is_some_and(|fence| fence != step.fence)
            };
            input.step.take_if(in_doubt);
        }),
    ),
    mutant(
        "in doubt retries under park",
        PARK,
        Invariant::OneUnknownStart,
        Mutation::Input(|input| input.change_failure(|how| how.in_doubt = InDoubt::Retry)),
    ),
    mutant(
        "lapse retries under park",
        PARK,
        Invariant::OneUnknownStart,
        Mutation::Input(|input| input.change_claim(|claim| claim.in_doubt = InDoubt::Retry)),
    ),
    mutant(
        "attempts are not counted",
        Settings::TWO_ATTEMPTS,
        Invariant::AttemptsBounded,
        Mutation::Input(|input| input.change_claim(|claim| claim.max_attempts = None)),
    ),
    mutant(
        "release counts as success",
        RETRY,
        Invariant::SuccessHasEffect,
        Mutation::Decision(|input, decision| {
            if let (Operation::Release(_), Some(record)) = (&input.operation, &mut decision.write) {
                record.state = State::Succeeded;
            }
        }),
    ),
    mutant(
        "lapse stays busy",
        RETRY,
        Invariant::NeverStuck,
        Mutation::Decision(|input, decision| {
            let record = input.record.as_ref();
            let expired = record.is_some_and(|record| record.expired(input.now));
            if input.is_claim() && input.is(State::Running) && !expired {
                let retry_after = Duration::ZERO;
                *decision = Decision::unchanged(Answer::Claimed(Claimed::Busy { retry_after }));
            }
        }),
    ),
];

const fn mutant(
    name: &'static str,
    settings: Settings,
    invariant: Invariant,
    change: Mutation,
) -> DeliberateFault {
    DeliberateFault {
        name,
        mutant: Some(Mutant {
            settings,
            invariant,
            change,
        }),
        defect: None,
        trials: &[],
    }
}

/// A race on every store that processes can share.
const fn race(rules: &'static [Rule]) -> Trial {
    Trial::Race {
        stores: &[StoreKind::Postgres, StoreKind::Redis],
        rules,
        operator_percent: OPERATOR_PERCENT,
    }
}

/// The lease that was granted, and its new record.
fn granted(decision: &mut Decision) -> Option<(&mut Lease, &mut Record)> {
    match (&mut decision.answer, &mut decision.write) {
        (Answer::Claimed(Claimed::Granted(lease)), Some(record)) => Some((lease, record)),
        _ => None,
    }
}

fn in_state(record: &Record, state: State) -> Record {
    Record {
        state,
        ..record.clone()
    }
}

// === impl DeliberateFault ===

impl DeliberateFault {
    /// The same fault, planted in processes as well.
    const fn planted(self, defect: Defect, trials: &'static [Trial]) -> Self {
        Self {
            defect: Some(defect),
            trials,
            ..self
        }
    }
}
