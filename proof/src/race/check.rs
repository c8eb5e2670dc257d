//! The checker: knows the rules of the protocol, not its statements.

mod key_calls;
mod grants;
mod ends;
mod replays;
mod steps;
mod changes;
mod witness;

use super::call::Call;
use super::history::History;
use crate::harness::Verdict;
use key_calls::KeyCalls;
use std::collections::BTreeMap;

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rule {
    /// At most one live lease per key, by the store's clock.
    OneLease,
    /// Fences rise in the order of grants, also across sweep and forget.
    FencesRise,
    /// A run that was overtaken changes nothing, and only such a run is told so.
    StaleChangesNothing,
    /// One end per incarnation, and an end absorbs.
    OneEnd,
    /// A replay has the bytes that were recorded.
    SameReplay,
    /// Another payload is never run, and never answered.
    OnePayload,
    /// Retention outlasts the lease, and never shrinks within an incarnation.
    RetentionHolds,
    /// What is parked stays so until a person or the run itself speaks.
    ParkedStays,
    /// A run in doubt is counted, is followed by one that is told so, and under `probe` not before it acts no more.
    DoubtKnown,
    /// An effect is committed if and only if its completion is.
    EffectWithRecord,
    /// A step that is done is not done again.
    StepsOnce,
    /// An answer was true at some moment while the call was made.
    TrueAnswer,
    /// Every change was asked for by somebody who may.
    Accounted,
}

/// Checks every answer: by the answers alone, and where there is a history, by that too; and every change in it.
pub(crate) fn check(calls: &[Call], history: Option<&History>) -> Verdict<Rule> {
    let mut by_key: BTreeMap<u32, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        by_key.entry(call.key).or_default().push(call);
    }
    let mut verdict = Verdict::default();
    for (key, calls) in by_key {
        let key_calls = KeyCalls::new(key, calls);
        key_calls.check_grants(&mut verdict);
        key_calls.check_ends(&mut verdict);
        key_calls.check_replays(&mut verdict);
        key_calls.check_steps(&mut verdict);
        if let Some(history) = history {
            let changes = history.changes.get(&key).map_or(&[][..], Vec::as_slice);
            key_calls.check_changes(changes, &mut verdict);
            key_calls.check_answers(changes, &mut verdict);
            key_calls.check_effects(changes, &history.effects, &mut verdict);
        }
    }
    verdict
}
