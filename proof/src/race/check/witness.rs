//! Answers, held against the history: each was true at some moment while its call was made.

use super::Rule;
use super::changes::{FAILED, PARKED, RUNNING, SUCCEEDED, WAITING};
use super::key_calls::KeyCalls;
use crate::harness::Verdict;
use crate::race::call::{Call, RecordedEnd, Request, Response, RunEnded, RunId, digest};
use crate::race::history::{Change, Effect, Version};
use semel::Fingerprint;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// A change is seen by others some time after it was written down: its commit goes to disk first.
const COMMIT_US_MAX: u64 = 300_000;

/// The changes of one key, to look answers up in.
struct Timeline<'a> {
    key_calls: &'a KeyCalls<'a>,
    changes: &'a [Change],
    by_run: HashMap<RunKey, Vec<&'a Change>>,
}

type RunKey = (u64, crate::race::call::OwnerId);

// === impl KeyCalls ===

impl KeyCalls<'_> {
    pub(super) fn check_answers(&self, changes: &[Change], verdict: &mut Verdict<Rule>) {
        let timeline = Timeline::new(self, changes);
        for call in &self.calls {
            if !timeline.bears_out(call) {
                let seen = format!("nothing in the history bears out {call:?}");
                verdict.convict(Rule::TrueAnswer, self.key, seen);
            }
        }
    }

    /// A handler's effect is committed if and only if its completion is, and once per incarnation.
    pub(super) fn check_effects(
        &self,
        changes: &[Change],
        effects: &[Effect],
        verdict: &mut Verdict<Rule>,
    ) {
        let mut by_born: HashMap<u64, &Effect> = HashMap::new();
        for effect in effects.iter().filter(|effect| effect.key == self.key) {
            if let Some(first) = by_born.insert(effect.born, effect) {
                let seen = format!("two effects in one incarnation: {first:?}, {effect:?}");
                verdict.convict(Rule::EffectWithRecord, self.key, seen);
            }
            if !changes.iter().any(|change| effect.is_of(change)) {
                let seen = format!("{effect:?} has no completion");
                verdict.convict(Rule::EffectWithRecord, self.key, seen);
            }
        }
        for call in &self.calls {
            if let (Request::End(run, RunEnded::CompleteIn(nonce)), Response::Applied(_)) =
                (&call.request, &call.response)
            {
                let effect = by_born.get(&run.born);
                if effect.is_none_or(|effect| effect.nonce != *nonce) {
                    let seen = format!("{call:?} has no effect");
                    verdict.convict(Rule::EffectWithRecord, self.key, seen);
                }
            }
        }
    }
}

// === impl Timeline ===

impl<'a> Timeline<'a> {
    fn new(key_calls: &'a KeyCalls<'a>, changes: &'a [Change]) -> Self {
        let mut by_run: HashMap<_, Vec<&Change>> = HashMap::new();
        for change in changes {
            if let Some(new) = &change.new {
                by_run
                    .entry((new.fence, new.owner))
                    .or_default()
                    .push(change);
            }
        }
        Self {
            key_calls,
            changes,
            by_run,
        }
    }

    fn bears_out(&self, call: &Call) -> bool {
        let window = call.began..=call.ended;
        let in_state = |state: u8| self.may_show(&window, |shown| shown.state == state);
        match (&call.request, &call.response) {
            (_, Response::Unknown(_) | Response::RolledBack(_) | Response::Wrong(_)) => true,
            (Request::Claim(_), Response::Granted(run)) => self.of_run(*run, |new| {
                new.state == RUNNING
                    && (new.attempts, new.born) == (run.attempt, run.born)
                    && new.in_doubt == run.in_doubt
            }),
            (Request::Claim(_), Response::Replayed(ending)) => {
                self.may_show(&window, |shown| shown.ends_as(ending))
            }
            // Somebody who changes the record at this moment is as good as somebody who runs it.
            (Request::Claim(_), Response::Busy) => in_state(RUNNING) || self.in_hand(&window),
            (Request::Claim(_), Response::NotYet) => in_state(WAITING),
            (Request::Claim(_), Response::Parked) => in_state(PARKED),
            (Request::Claim(terms), Response::Mismatched) => {
                let payload = digest(Fingerprint::of(&[terms.payload]).as_bytes());
                self.may_show(&window, |shown| shown.payload != payload)
            }
            (Request::Operate(_), Response::Acted) => self.changed(&window),
            (Request::Operate(_), Response::Refused) => in_state(RUNNING),
            // What is expired counts as absent, and nothing tells when it expired.
            (Request::Operate(_), Response::Gone(0)) => true,
            (Request::Operate(_), Response::Gone(state)) => in_state(*state),
            (_, told) => call
                .run()
                .is_some_and(|run| self.bears_out_run(run, told, &window)),
        }
    }

    fn bears_out_run(&self, run: RunId, response: &Response, window: &RangeInclusive<u64>) -> bool {
        let mine = |shown: &Version| shown.fence == run.fence && shown.owner == run.owner;
        if let Response::Applied(state) | Response::Already(state) = response {
            return self.of_run(run, |new| new.state == *state);
        }
        if let Response::Settled(ending) = response {
            return self.of_run(run, |new| new.ends_as(ending));
        }
        let in_step = matches!(
            response,
            Response::StepRun | Response::Memo(..) | Response::StepInDoubt(_)
        );
        let overtaken = |change: &Change| {
            let lost = |new: &Version| !mine(new) || new.state == WAITING;
            let since = change.at >= run.fence.saturating_sub(COMMIT_US_MAX);
            since && change.at <= *window.end() && change.new.as_ref().is_none_or(lost)
        };
        *response == Response::Parked && self.of_run(run, |new| new.state == PARKED)
            || *response == Response::Stale && self.changes.iter().any(overtaken)
            || in_step && self.may_show(window, |shown| mine(shown) && shown.state == RUNNING)
    }

    /// Whether this run's record ever was so.
    fn of_run(&self, run: RunId, so: impl Fn(&Version) -> bool) -> bool {
        let changes = self.by_run.get(&(run.fence, run.owner));
        let mut versions = changes
            .into_iter()
            .flatten()
            .filter_map(|change| change.new.as_ref());
        versions.any(so)
    }

    /// Whether the record may have been seen so in this window.
    fn may_show(&self, window: &RangeInclusive<u64>, so: impl Fn(&Version) -> bool) -> bool {
        let end = self
            .changes
            .partition_point(|change| change.at <= *window.end());
        let mut until = u64::MAX;
        for change in self.changes.iter().take(end).rev() {
            if until < *window.start() {
                return false;
            }
            if change.new.as_ref().is_some_and(&so) {
                return true;
            }
            until = change.at.saturating_add(COMMIT_US_MAX);
        }
        false
    }

    /// Whether the record was changed in this window.
    fn changed(&self, window: &RangeInclusive<u64>) -> bool {
        let first = self
            .changes
            .partition_point(|change| change.at < *window.start());
        self.changes
            .get(first)
            .is_some_and(|change| change.at <= *window.end())
    }

    /// Whether anybody may have had the record in hand in this window.
    fn in_hand(&self, window: &RangeInclusive<u64>) -> bool {
        let late = window.start().saturating_sub(COMMIT_US_MAX)
            ..=window.end().saturating_add(COMMIT_US_MAX);
        let transaction = |call: &&Call| {
            matches!(call.request, Request::End(_, RunEnded::CompleteIn(_)))
                && call.overlaps(window)
        };
        self.changed(&late) || self.key_calls.calls.iter().any(transaction)
    }
}

// === impl Version ===

impl Version {
    fn ends_as(&self, ending: &RecordedEnd) -> bool {
        let state = if ending.succeeded { SUCCEEDED } else { FAILED };
        self.state == state && self.result == Some(ending.result)
    }
}

// === impl Effect ===

impl Effect {
    fn is_of(&self, change: &Change) -> bool {
        change.new.is_some_and(|new| {
            let nonce = new.result.map(|result| result.nonce);
            new.state == SUCCEEDED && new.fence == self.fence && nonce == Some(self.nonce)
        })
    }
}
