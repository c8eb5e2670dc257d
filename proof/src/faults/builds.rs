//! Faults that no single decision shows: in how a process uses its store, in how a handler takes effect, and in what
//! PostgreSQL's statements write.

use super::{Defect, DeliberateFault, Trial};
use crate::crash::{ArmedPoint, LongEffects, Mode, Point, Promise};
use crate::harness::{ProcessFault, StoreKind};
use crate::race::{OPERATOR_PERCENT, Rule};

pub(super) const FAULTS: &[DeliberateFault] = &[
    build(
        "effect before the claim",
        Defect::EffectBeforeClaim,
        &[Trial::Crash {
            store: StoreKind::Redis,
            mode: Mode::Retry,
            promise: Promise::NoDuplicate,
            armed: None,
        }],
    ),
    build(
        "effect commits apart",
        Defect::CompletesApart,
        &[Trial::Crash {
            store: StoreKind::Postgres,
            mode: Mode::Transaction,
            promise: Promise::NoDuplicate,
            armed: Some(ArmedPoint {
                point: Point::TransactionCompleted,
                fault: ProcessFault::Kill,
            }),
        }],
    ),
    build(
        "fence off",
        Defect::FenceStandsStill,
        &[Trial::Gate {
            store: StoreKind::Redis,
            mode: Mode::Retry,
            promise: Promise::FencesRise,
            armed: Some(("resp_done", ProcessFault::Kill)),
            long: LongEffects::NEARLY_ALL,
        }],
    ),
    build(
        "acknowledged before recorded",
        Defect::AnswersBeforeRecording,
        &[Trial::Gate {
            store: StoreKind::Embedded,
            mode: Mode::Retry,
            promise: Promise::NotStuck,
            armed: Some(("before_reply", ProcessFault::Kill)),
            long: LongEffects::NEARLY_ALL,
        }],
    ),
    build(
        "an unclear probe means no effect",
        Defect::UnclearProbeIsNo,
        &[Trial::Gate {
            store: StoreKind::Embedded,
            mode: Mode::Probe,
            promise: Promise::NoDuplicate,
            armed: None,
            long: LongEffects::NEARLY_ALL,
        }],
    ),
    build(
        "an operator's act keeps the fence",
        Defect::OperatorKeepsTheFence,
        &[Trial::Race {
            stores: &[StoreKind::Postgres],
            rules: &[Rule::StaleChangesNothing, Rule::Accounted],
            operator_percent: 30,
        }],
    ),
    build(
        "a completion shortens retention",
        Defect::RetentionShrinks,
        &[Trial::Race {
            stores: &[StoreKind::Postgres],
            rules: &[Rule::RetentionHolds, Rule::OneEnd],
            operator_percent: OPERATOR_PERCENT,
        }],
    ),
    build(
        "doubt is not parked",
        Defect::DoubtIsNotParked,
        &[Trial::Race {
            stores: &[StoreKind::Postgres],
            rules: &[Rule::StaleChangesNothing],
            operator_percent: OPERATOR_PERCENT,
        }],
    ),
];

const fn build(name: &'static str, defect: Defect, trials: &'static [Trial]) -> DeliberateFault {
    DeliberateFault {
        name,
        mutant: None,
        defect: Some(defect),
        trials,
    }
}
