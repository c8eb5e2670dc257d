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
use semel::clock::Time;
use semel::protocol::{
    Answer, Claimed, Decision, FailKind, Fence, Held, InDoubt, Lease, Operation, Record, State,
    StepRecord, sweepable,
};
use std::time::Duration;

/// A mutant before anything is changed.
struct Unchanged {
    name: &'static str,
    settings: Settings,
    invariant: Invariant,
}

pub(super) const FAULTS: &[DeliberateFault] = &[
    retry("claim ignores the lease", Invariant::OneLiveLease)
        .input(|input| input.on_claim(Input::lapse))
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
                    mode: Mode::Retry,
                    promise: Promise::NoDuplicate,
                    armed: None,
                    long: LongEffects::NEARLY_ALL,
                },
            ],
        ),
    retry("forget takes a live lease", Invariant::OneLiveLease).input(|input| {
        if let Operation::Forget(_) = input.operation {
            input.lapse();
        }
    }),
    retry("fence from the clock alone", Invariant::FencesRise).decision(|input, decision| {
        if let Some((lease, record)) = granted(decision) {
            record.fence = Fence(input.now.0);
            lease.fence = record.fence;
        }
    }),
    mutant(
        "sweep without grace",
        Settings::UNSTEADY_CLOCK,
        Invariant::FencesRise,
    )
    .sweepable(|record, _, now| sweepable(record, Duration::ZERO, now)),
    retry("complete without fence", Invariant::StaleChangesNothing)
        .input(|input| input.on_completion(Input::speak_for_record))
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
                    mode: Mode::Retry,
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
    retry("renew without fence", Invariant::StaleChangesNothing).input(|input| {
        if let Operation::Renew { .. } = input.operation {
            input.speak_for_record();
        }
    }),
    park("parking takes the fence", Invariant::StaleChangesNothing).decision(|input, decision| {
        if let Some(record) = decision.write.as_mut().filter(|_| input.is_claim())
            && record.state == State::Parked
        {
            record.fence.0 += 1;
        }
    }),
    retry("lapse revokes", Invariant::StaleChangesNothing).decision(|input, decision| {
        if input.has_lapsed() && input.is_completion() {
            *decision = Decision::unchanged(Answer::Held(Held::Stale));
        }
    }),
    retry("success does not absorb", Invariant::OneCompletion)
        .input(|input| input.on_claim(|it| it.show(State::Succeeded, State::Waiting)))
        .planted(
            Defect::SuccessDoesNotAbsorb,
            &[race(&[Rule::OneEnd, Rule::Accounted])],
        ),
    retry("completion is overwritten", Invariant::OneCompletion)
        .input(|input| input.on_completion(|it| it.show(State::Succeeded, State::Running))),
    retry("replay loses the result", Invariant::SameReplay).decision(|_, decision| {
        if let Answer::Claimed(Claimed::Replayed(settled)) = &mut decision.answer {
            settled.result = Bytes::new();
        }
    }),
    retry("mismatch is ignored", Invariant::MismatchDisturbsNothing).input(|input| {
        if let Some(fingerprint) = input.record.as_ref().map(|record| record.fingerprint) {
            input.change_claim(|claim| claim.fingerprint = fingerprint);
        }
    }),
    retry("expires_at goes back", Invariant::RetentionOutlivesLease).decision(|input, decision| {
        if let Operation::Complete { retention, .. } = input.operation
            && let Some(record) = &mut decision.write
        {
            record.expires_at = input.now.plus(retention);
        }
    }),
    retry("sweep takes running", Invariant::RetentionOutlivesLease).sweepable(
        |record, grace, now| {
            let lapsed = record.state == State::Running && record.lease_until <= now;
            lapsed || sweepable(record, grace, now)
        },
    ),
    park("parked expires", Invariant::ParkedStays).input(|input| {
        let record = input.record.as_ref();
        if record.is_some_and(|it| in_state(it, State::Waiting).expired(input.now)) {
            input.on_claim(|it| it.show(State::Parked, State::Waiting));
        }
    }),
    park("sweep takes parked", Invariant::ParkedStays)
        .sweepable(|record, grace, now| sweepable(&in_state(record, State::Waiting), grace, now)),
    retry(
        "completion is answered, not written",
        Invariant::GuardedOnce,
    )
    .decision(|input, decision| {
        if input.is_completion() {
            *decision = Decision::unchanged(decision.answer.clone());
        }
    }),
    retry("take-over gives a new born", Invariant::StepsRemembered).decision(|_, decision| {
        if let Some((lease, record)) = granted(decision) {
            record.born = record.fence;
            lease.born = record.fence;
        }
    }),
    retry("take-over ends the incarnation", Invariant::StepsRemembered).decision(
        |input, decision| {
            if granted(decision).is_some() {
                decision.ended = input.record.as_ref().map(|old| old.born);
            }
        },
    ),
    retry("step without born", Invariant::StepsRemembered).change(Mutation::StepFound(
        |steps, lease| steps.get(&lease.born).or_else(|| steps.values().next()),
    )),
    retry("step done runs again", Invariant::StepsRemembered).input(|input| {
        let begins = input.begins_step();
        input.step.take_if(|step| begins && step.result.is_some());
    }),
    park("step in doubt runs under park", Invariant::OneUnknownStart).input(|input| {
        let asking = input.operation.lease().filter(|_| input.begins_step());
        let asking = asking.map(|lease| lease.fence);
        let in_doubt = |step: &mut StepRecord| {
            step.result.is_none() && asking.is_some_and(|fence| fence != step.fence)
        };
        input.step.take_if(in_doubt);
    }),
    park("in doubt retries under park", Invariant::OneUnknownStart)
        .input(|input| input.change_failure(|how| how.in_doubt = InDoubt::Retry)),
    park("lapse retries under park", Invariant::OneUnknownStart)
        .input(|input| input.change_claim(|claim| claim.in_doubt = InDoubt::Retry)),
    mutant(
        "attempts are not counted",
        Settings::TWO_ATTEMPTS,
        Invariant::AttemptsBounded,
    )
    .input(|input| input.change_claim(|claim| claim.max_attempts = None)),
    doubts("doubts are not counted")
        .decision(|_, decision| {
            if let Some(record) = &mut decision.write {
                record.doubts = 0;
            }
        })
        .planted(
            Defect::DoubtsAreNotCounted,
            &[Trial::Race {
                stores: &[StoreKind::Postgres],
                rules: &[Rule::DoubtKnown, Rule::Accounted],
                operator_percent: OPERATOR_PERCENT,
            }],
        ),
    doubts("answered failures count as doubts").decision(|input, decision| {
        if let (Some(FailKind::Retryable { .. }), Some(record)) =
            (input.fails(), &mut decision.write)
        {
            record.doubts += 1;
        }
    }),
    doubts("a repeated doubt is counted twice").decision(|input, decision| {
        if let (Some(FailKind::InDoubt { .. }), Some(record)) = (input.fails(), &mut decision.write)
            && input.is(State::Parked)
        {
            record.doubts += 1;
        }
    }),
    doubts("lapses in doubt are not limited")
        .input(|input| input.change_claim(|claim| claim.max_in_doubt = None)),
    doubts("failures in doubt are not limited")
        .input(|input| input.change_failure(|how| how.max_in_doubt = None)),
    probe("probed while the run may act")
        .input(|input| {
            input.on_claim(|it| it.change_record(|record| record.acts_until = None));
        })
        .planted(
            Defect::ForgetsHowLongRunsAct,
            &[
                Trial::Race {
                    stores: &[StoreKind::Postgres],
                    rules: &[Rule::DoubtKnown],
                    operator_percent: OPERATOR_PERCENT,
                },
                Trial::Gate {
                    store: StoreKind::Embedded,
                    mode: Mode::Probe,
                    promise: Promise::NoDuplicate,
                    armed: None,
                    long: LongEffects::NEARLY_ALL,
                },
            ],
        ),
    probe("a failure is probed while its handler may act").decision(|input, decision| {
        if let (Some(FailKind::InDoubt { .. }), Some(record)) = (input.fails(), &mut decision.write)
        {
            record.acts_until = None;
        }
    }),
    probe("a prober is not told")
        .decision(|_, decision| {
            if let Answer::Claimed(Claimed::Granted(lease)) = &mut decision.answer {
                lease.in_doubt = false;
            }
        })
        .planted(Defect::DoubtIsNotTold, &[race(&[Rule::DoubtKnown])]),
    probe("a lapse is not in doubt").decision(|input, decision| {
        if let Some((lease, record)) = granted(decision).filter(|_| input.is(State::Running)) {
            (lease.in_doubt, record.in_doubt) = (false, false);
        }
    }),
    mutant(
        "an unanswered probe ends the doubt",
        Settings::PROBE,
        Invariant::OneProbedEffect,
    )
    .decision(|input, decision| {
        if let (Some(FailKind::StillInDoubt { .. }), Some(record)) =
            (input.fails(), &mut decision.write)
        {
            record.in_doubt = false;
        }
    }),
    probe("a run taken away is not in doubt").decision(|input, decision| {
        if let (Operation::ReleaseByOperator { .. }, Some(record)) =
            (&input.operation, &mut decision.write)
        {
            record.in_doubt = false;
        }
    }),
    mutant("two probers", Settings::PROBE, Invariant::OneLiveLease).input(|input| {
        if input.record.as_ref().is_some_and(|record| record.in_doubt) {
            input.on_claim(|it| {
                it.lapse();
                it.change_record(|record| record.acts_until = None);
            });
        }
    }),
    doubts("doubts park however young")
        .input(|input| input.change_doubt_limit(|max| max.age = Duration::ZERO)),
    doubts("doubts age from the latest").decision(|input, decision| {
        if let (Some(old), Some(new)) = (&input.record, &mut decision.write)
            && new.doubts > old.doubts
        {
            new.doubted_at = Some(input.now);
        }
    }),
    mutant(
        "a release leaves old work",
        Settings::KEEPER,
        Invariant::ReleaseParksOld,
    )
    .decision(|input, decision| {
        if let (Operation::Release { .. }, Some(record)) = (&input.operation, &mut decision.write) {
            record.state = State::Waiting;
        }
    }),
    mutant(
        "a release parks young work",
        Settings::KEEPER,
        Invariant::ReleaseParksOld,
    )
    .decision(|input, decision| {
        if let (Operation::Release { .. }, Some(record)) = (&input.operation, &mut decision.write) {
            record.state = State::Parked;
        }
    }),
    keeper("a keeper shortens").decision(|input, decision| {
        if let (Operation::Retain { retention, .. }, Some(record)) =
            (&input.operation, &mut decision.write)
        {
            record.expires_at = input.now.plus(*retention);
        }
    }),
    keeper("a keeper takes the fence").decision(|input, decision| {
        if let (Operation::Retain { .. }, Some(record)) = (&input.operation, &mut decision.write) {
            record.fence.0 += 1;
        }
    }),
    keeper("a keeper retains what succeeded").input(|input| {
        if let Operation::Retain { .. } = input.operation {
            input.show(State::Succeeded, State::Failed);
        }
    }),
    keeper("a keeper retains nothing").decision(|input, decision| {
        if let Operation::Retain { .. } = input.operation {
            decision.write = None;
        }
    }),
    retry("release counts as success", Invariant::SuccessHasEffect).decision(|input, decision| {
        if let (Operation::Release { .. }, Some(record)) = (&input.operation, &mut decision.write) {
            record.state = State::Succeeded;
        }
    }),
    retry("lapse stays busy", Invariant::NeverStuck).decision(|input, decision| {
        let record = input.record.as_ref();
        let expired = record.is_some_and(|record| record.expired(input.now));
        if input.is_claim() && input.is(State::Running) && !expired {
            let retry_after = Duration::ZERO;
            *decision = Decision::unchanged(Answer::Claimed(Claimed::Busy { retry_after }));
        }
    }),
];

/// A mutant that shows where doubt runs again.
const fn retry(name: &'static str, invariant: Invariant) -> Unchanged {
    mutant(name, Settings::RETRY.with_grants(2), invariant)
}

/// A mutant that shows where doubt parks.
const fn park(name: &'static str, invariant: Invariant) -> Unchanged {
    mutant(name, Settings::PARK.with_grants(2), invariant)
}

/// A mutant that shows where runs in doubt are limited.
const fn doubts(name: &'static str) -> Unchanged {
    mutant(name, Settings::TWO_DOUBTS, Invariant::DoubtsBounded)
}

/// A mutant that shows where runs in doubt are probed.
const fn probe(name: &'static str) -> Unchanged {
    mutant(
        name,
        Settings::PROBE.with_grants(2),
        Invariant::OneProbedEffect,
    )
}

/// A mutant that shows where a keeper retains.
const fn keeper(name: &'static str) -> Unchanged {
    mutant(name, Settings::KEEPER, Invariant::KeeperRetains)
}

const fn mutant(name: &'static str, settings: Settings, invariant: Invariant) -> Unchanged {
    Unchanged {
        name,
        settings,
        invariant,
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

// === impl Unchanged ===

impl Unchanged {
    const fn input(self, change: fn(&mut Input)) -> DeliberateFault {
        self.change(Mutation::Input(change))
    }

    const fn decision(self, change: fn(&Input, &mut Decision)) -> DeliberateFault {
        self.change(Mutation::Decision(change))
    }

    const fn sweepable(self, change: fn(&Record, Duration, Time) -> bool) -> DeliberateFault {
        self.change(Mutation::Sweepable(change))
    }

    const fn change(self, change: Mutation) -> DeliberateFault {
        DeliberateFault {
            name: self.name,
            mutant: Some(Mutant {
                settings: self.settings,
                invariant: self.invariant,
                change,
            }),
            defect: None,
            trials: &[],
        }
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
