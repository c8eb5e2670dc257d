//! Changes: each one is a transition of the protocol, at a time it may happen, asked for by somebody who may.

use super::Rule;
use super::key_calls::KeyCalls;
use crate::harness::{GRACE, Verdict};
use crate::race::call::{
    Call, ClaimTerms, FailureKind, FailureTerms, OperatorCall, OwnerId, Policy, Request, ResultId,
    RunEnded, RunLimits, digest, micros,
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
        Rule::Accounted.needs(new.state == RUNNING, "a new owner without a run")?;
        let before = old.filter(|old| !old.expired(now));
        let reason = before.filter(|old| old.state == WAITING && old.in_doubt);
        Rule::DoubtKnown.needs(
            new.result == reason.and_then(|old| old.result),
            "it does not keep why the run before is in doubt, and nothing else",
        )?;
        Rule::RetentionHolds.needs(
            new.expires_at >= new.lease_until + terms.retention,
            "retention does not outlast the lease",
        )?;
        let acts_until = match terms.acts_for {
            0 => 0,
            acts_for => now + acts_for,
        };
        let told = new.acts_until == acts_until;
        Rule::DoubtKnown.needs(told, "it may not act as long as its claim says")?;
        match before {
            None => Rule::FencesRise.needs(
                new.attempts == 1
                    && new.born == new.fence
                    && (new.doubts, new.doubted_at) == (0, 0)
                    && !new.in_doubt,
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
        Rule::DoubtKnown.needs(
            (old.doubts, old.doubted_at) == (new.doubts, new.doubted_at),
            "an operator's act was counted as a doubt",
        )?;
        Rule::Accounted.needs(
            !old.expired(new.lease_until),
            "an operator acted on what was expired",
        )?;
        let fits = |act: &OperatorCall| match (old.state, new.state, act) {
            (PARKED, SUCCEEDED, OperatorCall::ResolveSucceeded(result))
            | (PARKED, FAILED, OperatorCall::ResolveFailed(result)) => new.result == Some(*result),
            (PARKED, WAITING, OperatorCall::ResolveRetry) => !new.in_doubt,
            (PARKED | FAILED, WAITING, OperatorCall::Redrive)
            | (RUNNING | WAITING, WAITING, OperatorCall::Release) => {
                new.in_doubt == old.ended_in_doubt()
            }
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
        Rule::DoubtKnown.needs(
            keeps_first_doubt(old, new, at),
            "the time of the first doubt is not kept",
        )?;
        match (old.state, new.state) {
            (RUNNING | WAITING | FAILED, _) if self.is_retained(old, new, at) => Ok(()),
            (RUNNING, RUNNING) => {
                Rule::OneLease.needs(
                    new.lease_until >= old.lease_until,
                    "a renewal shortened the lease",
                )?;
                self.asked_by_run(new, at, |asked| matches!(asked, Request::Renew(..)))
            }
            // A release that parks takes the attempt back.
            (RUNNING, PARKED) if new.result.is_none() && new.attempts == old.attempts => {
                self.lapsed(old, new, at)
            }
            (RUNNING | PARKED, SUCCEEDED | FAILED | WAITING | PARKED) => self.asked_by_run(
                new,
                at,
                |asked| matches!(asked, Request::End(_, ended) if leads_to(ended, old, new, at)),
            ),
            (SUCCEEDED | FAILED, _) => Err((Rule::OneEnd, "an end was changed".into())),
            _ => Err((Rule::Accounted, "no such transition".into())),
        }
    }

    /// A lapsed lease was parked by a claim that does not retry.
    fn lapsed(&self, old: &Version, new: &Version, at: u64) -> CheckResult {
        Rule::OneLease.needs(old.lease_until <= at, "a live lease was parked")?;
        let counted = new.doubts == old.doubts + 1 && new.in_doubt;
        Rule::DoubtKnown.needs(counted, "a lapse was not counted")?;
        let asked = self.key_calls.calls.iter().any(|call| {
            call.overlaps(&(at..=at))
                && matches!(&call.request, Request::Claim(terms) if lapse_parks(old, terms, at))
        });
        Rule::Accounted.needs(asked, "no claim parks it")
    }

    /// Nothing but the end of retention was prolonged, by a keeper.
    fn is_retained(&self, old: &Version, new: &Version, at: u64) -> bool {
        let longer = Version {
            expires_at: new.expires_at,
            ..*old
        };
        *new == longer
            && self.key_calls.may_be_operated(&(at..=at), |act| {
                matches!(act, OperatorCall::Retain(retention)
                    if new.expires_at <= old.expires_at.max(at + retention))
            })
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
    let doubts = old.doubts + u32::from(old.state == RUNNING);
    Rule::DoubtKnown.needs(
        new.doubts == doubts
            && new.doubted_at == old.doubted_by(now)
            && new.in_doubt == old.ended_in_doubt(),
        "what is known of the run before is not told",
    )?;
    let probes = terms.policy == Policy::Probe && old.ended_in_doubt();
    Rule::DoubtKnown.needs(
        !probes || old.acts_until <= now,
        "probed while the run before may act",
    )?;
    match old.state {
        RUNNING | WAITING if old.lease_until > now => {
            Err((Rule::OneLease, "granted before its time".into()))
        }
        RUNNING if lapse_parks(old, terms, now) => {
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
fn leads_to(ended: &RunEnded, old: &Version, new: &Version, at: u64) -> bool {
    let same = old.attempts == new.attempts;
    let records = |result: &ResultId| new.result == Some(*result) && same;
    match ended {
        RunEnded::Complete(result, _) => new.state == SUCCEEDED && records(result),
        RunEnded::CompleteIn(nonce) => {
            let nonces = new.result.map(|result| result.nonce);
            new.state == SUCCEEDED && same && nonces == Some(*nonce)
        }
        RunEnded::Fail(failing, result) => {
            let (doubts, in_doubt) = known_after(failing.kind, old);
            records(result)
                && (new.doubts, new.in_doubt) == (doubts, in_doubt)
                && may_fail_to(failing, new, at)
                && (failing.kind != FailureKind::StillInDoubt || new.acts_until == 0)
        }
        RunEnded::Release(park_after) => {
            let old_enough = *park_after > 0 && old.born + park_after <= at;
            let parked_before = old.state == PARKED && old_enough;
            (new.state == WAITING || new.state == PARKED && old_enough && !parked_before)
                && new.result == old.result.filter(|_| old.in_doubt)
                && new.attempts == old.attempts.saturating_sub(1)
                && (new.doubts, new.in_doubt) == (old.doubts, old.in_doubt)
        }
    }
}

/// How many doubts there are, and whether there is one now, after a run failed so.
fn known_after(kind: FailureKind, old: &Version) -> (u32, bool) {
    match kind {
        FailureKind::Final | FailureKind::Retryable => (old.doubts, false),
        // One that is parked was counted when it got there.
        FailureKind::InDoubt => (old.doubts + u32::from(old.state == RUNNING), true),
        FailureKind::StillInDoubt => (old.doubts, old.in_doubt),
    }
}

/// Whether a failure may lead to this version at this time, which is just after the store read its clock.
fn may_fail_to(failing: &FailureTerms, new: &Version, at: u64) -> bool {
    if failing.kind == FailureKind::Final {
        return new.state == FAILED;
    }
    let parks = failing.kind == FailureKind::InDoubt && failing.policy == Policy::Park;
    let FailureTerms { limits, .. } = failing;
    match new.state {
        PARKED => parks || limits.are_reached(new, at),
        WAITING => !parks && !limits.at_once().are_reached(new, at),
        _ => false,
    }
}

fn lapse_parks(old: &Version, terms: &ClaimTerms, now: u64) -> bool {
    let found = Version {
        doubts: old.doubts + 1,
        doubted_at: old.doubted_by(now),
        in_doubt: true,
        ..*old
    };
    terms.policy == Policy::Park || terms.limits.are_reached(&found, now)
}

/// Whether the time of the first doubt is of the doubt that is new, if that is the first; otherwise as it was.
fn keeps_first_doubt(old: &Version, new: &Version, at: u64) -> bool {
    if old.doubted_at == 0 && new.doubts > old.doubts {
        new.doubted_at > 0 && new.doubted_at <= at
    } else {
        new.doubted_at == old.doubted_at
    }
}

// === impl RunLimits ===

impl RunLimits {
    /// Whether a run that has just ended is not to be followed by another.
    fn are_reached(self, ended: &Version, now: u64) -> bool {
        let too_often = self.attempts > 0 && ended.attempts >= self.attempts;
        let doubted = self.doubts > 0 && ended.doubts >= self.doubts;
        let is_old = now.saturating_sub(ended.doubted_at) >= self.doubt_age;
        too_often || ended.in_doubt && doubted && is_old
    }

    /// The limits that need no time.
    fn at_once(self) -> Self {
        let doubts = if self.doubt_age == 0 { self.doubts } else { 0 };
        Self { doubts, ..self }
    }
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
    /// The time of the first doubt, if the run is found lapsed now.
    const fn doubted_by(&self, now: u64) -> u64 {
        if self.doubted_at == 0 && self.state == RUNNING {
            now
        } else {
            self.doubted_at
        }
    }

    const fn ended_in_doubt(&self) -> bool {
        self.in_doubt || self.state == RUNNING
    }

    const fn expired(&self, now: u64) -> bool {
        self.state != PARKED && self.expires_at <= now
    }
}
