//! Changes: each one is a transition of the protocol, at a time it may happen, asked for by somebody who may.

use super::Rule;
use super::key_calls::KeyCalls;
use crate::harness::{GRACE, Verdict};
use crate::race::call::{
    Call, ClaimTerms, FailureTerms, OperatorCall, OwnerId, Request, ResultId, RunEnded, digest,
    micros,
};
use crate::race::history::{Change, GRACE_US, Version};
use semel::Fingerprint;
use std::collections::HashMap;

pub(super) const RUNNING: u8 = 1;
pub(super) const SUCCEEDED: u8 = 2;
pub(super) const FAILED: u8 = 3;
pub(super) const WAITING: u8 = 4;
pub(super) const PARKED: u8 = 5;

/// Checks the changes of one key, one after the other.
struct ChangeChecker<'a> {
    key_calls: &'a KeyCalls<'a>,
    terms: HashMap<OwnerId, &'a ClaimTerms>,
    by_run: HashMap<(u64, OwnerId), Vec<&'a Call>>,
    /// The highest fence so far, also of records that are gone.
    floor: u64,
}

type CheckResult = Result<(), (Rule, String)>;

// === impl KeyCalls ===

impl KeyCalls<'_> {
    pub(super) fn check_changes(&self, changes: &[Change], verdict: &mut Verdict<Rule>) {
        let mut checker = ChangeChecker::new(self);
        let mut last = None;
        for change in changes {
            if change.old != last {
                let seen = format!("between two changes: {last:?}, then {:?}", change.old);
                verdict.convict(Rule::Accounted, self.key, seen);
            }
            if let Err((rule, why)) = checker.change(change) {
                let (old, new) = (&change.old, &change.new);
                let seen = format!("{why}: {old:?} → {new:?} at {}", change.at);
                verdict.convict(rule, self.key, seen);
            }
            last = change.new;
        }
    }
}

// === impl ChangeChecker ===

impl<'a> ChangeChecker<'a> {
    fn new(key_calls: &'a KeyCalls<'a>) -> Self {
        let mut terms = HashMap::new();
        let mut by_run: HashMap<_, Vec<&Call>> = HashMap::new();
        for call in &key_calls.calls {
            if let Request::Claim(asked) = &call.request {
                terms.insert(asked.owner, asked);
            }
            if let Some(run) = call.run() {
                by_run.entry((run.fence, run.owner)).or_default().push(call);
            }
        }
        Self {
            key_calls,
            terms,
            by_run,
            floor: 0,
        }
    }

    fn change(&mut self, change: &Change) -> CheckResult {
        let at = change.at;
        match (&change.old, &change.new) {
            (None, None) => Err((Rule::Accounted, "nothing changed into nothing".into())),
            (Some(old), _) if change.aged => Rule::Accounted.needs(
                old.state != PARKED && old.expires_at + GRACE_US <= at,
                "the test aged a record that had not expired",
            ),
            (Some(old), None) => swept(old, at),
            (None, Some(new)) => self.granted(None, new),
            (Some(old), Some(new)) if old.fence == new.fence && old.owner == new.owner => {
                self.kept(old, new, at)
            }
            (Some(old), Some(new)) if old.owner == new.owner && new.state != RUNNING => {
                self.operated(old, new, at)
            }
            // Also to an owner who asks again after its own lease has lapsed.
            (Some(old), Some(new)) => self.granted(Some(old), new),
        }
    }

    /// A grant: to a claim that was made, of a record that was absent, due or lapsed.
    fn granted(&mut self, old: Option<&Version>, new: &Version) -> CheckResult {
        let Some(terms) = self.terms.get(&new.owner).copied() else {
            return Err((Rule::Accounted, "a grant to nobody".into()));
        };
        let now = new.lease_until.saturating_sub(terms.lease);
        let least = old.map_or(now, |old| now.max(old.fence + 1));
        Rule::FencesRise.needs(
            new.fence > self.floor && new.fence == least,
            "the fence is not the next one",
        )?;
        self.floor = new.fence;
        let right_payload = digest(Fingerprint::of(&[terms.payload]).as_bytes());
        Rule::OnePayload.needs(new.payload == right_payload, "not the claim's payload")?;
        Rule::Accounted.needs(
            new.state == RUNNING && new.result.is_none(),
            "a new owner without a run",
        )?;
        Rule::RetentionHolds.needs(
            new.expires_at >= new.lease_until + terms.retention,
            "retention does not outlast the lease",
        )?;
        match old.filter(|old| !old.expired(now)) {
            None => Rule::FencesRise.needs(
                new.attempts == 1 && new.born == new.fence,
                "a new incarnation does not begin anew",
            ),
            Some(old) => taken_over(old, new, terms, now),
        }
    }

    /// A new fence under the old owner: an operator's act.
    fn operated(&mut self, old: &Version, new: &Version, at: u64) -> CheckResult {
        Rule::FencesRise.needs(new.fence > self.floor, "an operator's fence does not rise")?;
        self.floor = new.fence;
        unchanged(old, new)?;
        Rule::Accounted.needs(
            old.attempts == new.attempts,
            "an operator changed the attempts",
        )?;
        Rule::Accounted.needs(
            !old.expired(new.lease_until),
            "an operator acted on what was expired",
        )?;
        let fits = |act: &OperatorCall| match (old.state, new.state, act) {
            (PARKED, SUCCEEDED, OperatorCall::ResolveSucceeded(result))
            | (PARKED, FAILED, OperatorCall::ResolveFailed(result)) => new.result == Some(*result),
            (PARKED, WAITING, OperatorCall::ResolveRetry | OperatorCall::Redrive)
            | (FAILED, WAITING, OperatorCall::Redrive)
            | (RUNNING | WAITING, WAITING, OperatorCall::Release) => true,
            _ => false,
        };
        self.asked_by_operator(at, fits)
    }

    /// The same fence and owner: the run's own word, a lapse, or the end of the incarnation.
    fn kept(&self, old: &Version, new: &Version, at: u64) -> CheckResult {
        if new.state == WAITING && new.expires_at <= new.lease_until && new.result.is_none() {
            Rule::OneLease.needs(
                old.state != RUNNING || old.lease_until <= new.lease_until,
                "a live lease was forgotten",
            )?;
            return self.asked_by_operator(at, |act| matches!(act, OperatorCall::Forget));
        }
        unchanged(old, new)?;
        match (old.state, new.state) {
            (RUNNING, RUNNING) => {
                Rule::OneLease.needs(
                    new.lease_until >= old.lease_until,
                    "a renewal shortened the lease",
                )?;
                self.asked_by_run(new, at, |asked| matches!(asked, Request::Renew(..)))
            }
            (RUNNING, PARKED) if new.result.is_none() => self.lapsed(old, at),
            (RUNNING | PARKED, SUCCEEDED | FAILED | WAITING | PARKED) => self.asked_by_run(
                new,
                at,
                |asked| matches!(asked, Request::End(_, ended) if leads_to(ended, old, new)),
            ),
            (SUCCEEDED | FAILED, _) => Err((Rule::OneEnd, "an end was changed".into())),
            _ => Err((Rule::Accounted, "no such transition".into())),
        }
    }

    /// A lapsed lease was parked by a claim that does not retry.
    fn lapsed(&self, old: &Version, at: u64) -> CheckResult {
        Rule::OneLease.needs(old.lease_until <= at, "a live lease was parked")?;
        let parks = |terms: &ClaimTerms| terms.park || !below(old.attempts, terms.max_attempts);
        let asked = self.key_calls.calls.iter().any(|call| {
            call.overlaps(&(at..=at))
                && matches!(&call.request, Request::Claim(terms) if parks(terms))
        });
        Rule::Accounted.needs(asked, "nobody's claim parks it")
    }

    fn asked_by_run(&self, of: &Version, at: u64, fits: impl Fn(&Request) -> bool) -> CheckResult {
        let calls = self.by_run.get(&(of.fence, of.owner));
        let mut calls = calls.into_iter().flatten();
        let asked = calls.any(|call| {
            call.overlaps(&(at..=at)) && call.may_have_been_done() && fits(&call.request)
        });
        let why = "the run that holds the lease did not ask for it";
        Rule::StaleChangesNothing.needs(asked, why)
    }

    fn asked_by_operator(&self, at: u64, fits: impl Fn(&OperatorCall) -> bool) -> CheckResult {
        let asked = self.key_calls.may_be_operated(&(at..=at), fits);
        Rule::Accounted.needs(asked, "no operator asked for it")
    }
}

fn taken_over(old: &Version, new: &Version, terms: &ClaimTerms, now: u64) -> CheckResult {
    Rule::OnePayload.needs(old.payload == new.payload, "another payload took over")?;
    Rule::FencesRise.needs(
        new.born == old.born && new.attempts == old.attempts + 1,
        "the incarnation does not go on",
    )?;
    Rule::RetentionHolds.needs(new.expires_at >= old.expires_at, "retention shrank")?;
    match old.state {
        RUNNING | WAITING if old.lease_until > now => {
            Err((Rule::OneLease, "granted before its time".into()))
        }
        RUNNING if terms.park || !below(old.attempts, terms.max_attempts) => {
            Err((Rule::ParkedStays, "run again instead of parked".into()))
        }
        RUNNING | WAITING => Ok(()),
        PARKED => Err((Rule::ParkedStays, "what was parked was granted".into())),
        _ => Err((Rule::OneEnd, "an end was granted again".into())),
    }
}

fn swept(old: &Version, at: u64) -> CheckResult {
    Rule::ParkedStays.needs(old.state != PARKED, "what was parked was swept")?;
    Rule::RetentionHolds.needs(
        old.expires_at + micros(GRACE) <= at,
        "swept before its grace was over",
    )?;
    let live = old.state == RUNNING && old.lease_until > at;
    Rule::OneLease.needs(!live, "a live lease was swept")
}

/// What no run and no operator changes within an incarnation.
fn unchanged(old: &Version, new: &Version) -> CheckResult {
    Rule::OnePayload.needs(old.payload == new.payload, "the payload changed")?;
    Rule::FencesRise.needs(old.born == new.born, "the incarnation changed")?;
    Rule::RetentionHolds.needs(new.expires_at >= old.expires_at, "retention shrank")
}

/// Whether what a run said leads from one version to the other.
fn leads_to(ended: &RunEnded, old: &Version, new: &Version) -> bool {
    let same = old.attempts == new.attempts;
    let records = |result: &ResultId| new.result == Some(*result) && same;
    match ended {
        RunEnded::Complete(result, _) => new.state == SUCCEEDED && records(result),
        RunEnded::CompleteIn(nonce) => {
            let nonces = new.result.map(|result| result.nonce);
            new.state == SUCCEEDED && same && nonces == Some(*nonce)
        }
        RunEnded::Fail(failing, result) => records(result) && new.state == fails_to(*failing, old),
        RunEnded::Release => new.state == WAITING && new.attempts == old.attempts.saturating_sub(1),
    }
}

const fn fails_to(failing: FailureTerms, old: &Version) -> u8 {
    match failing {
        FailureTerms::Final => FAILED,
        FailureTerms::Again(max) if below(old.attempts, max) => WAITING,
        FailureTerms::Park | FailureTerms::Again(_) => PARKED,
    }
}

const fn below(attempts: u32, max: u32) -> bool {
    max == 0 || attempts < max
}

// === impl Rule ===

impl Rule {
    /// Judges by this rule.
    fn needs(self, holds: bool, otherwise: &str) -> CheckResult {
        if holds {
            Ok(())
        } else {
            Err((self, otherwise.to_owned()))
        }
    }
}

// === impl Version ===

impl Version {
    const fn expired(&self, now: u64) -> bool {
        self.state != PARKED && self.expires_at <= now
    }
}
