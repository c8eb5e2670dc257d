//! Changes: each one is a transition of the protocol, at a time it may happen, asked for by somebody who may.

use super::scene::Scene;
use super::{Rule, Verdict};
use crate::bed::GRACE;
use crate::race::call::{Act, Asked, Call, Failing, Kind, Mark, OwnerId, Terms, digest, micros};
use crate::race::history::{Change, GRACE_US, Version};
use semel::Fingerprint;
use std::collections::HashMap;

pub(super) const RUNNING: u8 = 1;
pub(super) const SUCCEEDED: u8 = 2;
pub(super) const FAILED: u8 = 3;
pub(super) const WAITING: u8 = 4;
pub(super) const PARKED: u8 = 5;

/// Judges the changes of one key, one after the other.
struct Judge<'a> {
    scene: &'a Scene<'a>,
    terms: HashMap<OwnerId, &'a Terms>,
    by_run: HashMap<(u64, OwnerId), Vec<&'a Call>>,
    /// The highest fence so far, also of records that are gone.
    floor: u64,
}

type Judged = Result<(), (Rule, String)>;

// === impl Scene ===

impl Scene<'_> {
    pub(super) fn check_changes(&self, changes: &[Change], verdict: &mut Verdict) {
        let mut judge = Judge::new(self);
        let mut last = None;
        for change in changes {
            if change.old != last {
                let seen = format!("between two changes: {last:?}, then {:?}", change.old);
                verdict.convict(Rule::Accounted, self.key, seen);
            }
            if let Err((rule, why)) = judge.change(change) {
                let (old, new) = (&change.old, &change.new);
                let seen = format!("{why}: {old:?} → {new:?} at {}", change.at);
                verdict.convict(rule, self.key, seen);
            }
            last = change.new;
        }
    }
}

// === impl Judge ===

impl<'a> Judge<'a> {
    fn new(scene: &'a Scene<'a>) -> Self {
        let mut terms = HashMap::new();
        let mut by_run: HashMap<_, Vec<&Call>> = HashMap::new();
        for call in &scene.calls {
            if let Asked::Claim(asked) = &call.asked {
                terms.insert(asked.owner, asked);
            }
            if let Some(run) = call.run() {
                by_run.entry((run.fence, run.owner)).or_default().push(call);
            }
        }
        Self {
            scene,
            terms,
            by_run,
            floor: 0,
        }
    }

    fn change(&mut self, change: &Change) -> Judged {
        let at = change.at;
        match (&change.old, &change.new) {
            (None, None) => Err((Rule::Accounted, "nothing changed into nothing".into())),
            (Some(old), _) if change.aged => require(
                old.state != PARKED && old.expires_at + GRACE_US <= at,
                Rule::Accounted,
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
    fn granted(&mut self, old: Option<&Version>, new: &Version) -> Judged {
        let Some(terms) = self.terms.get(&new.owner).copied() else {
            return Err((Rule::Accounted, "a grant to nobody".into()));
        };
        let now = new.lease_until.saturating_sub(terms.lease);
        let least = old.map_or(now, |old| now.max(old.fence + 1));
        require(
            new.fence > self.floor && new.fence == least,
            Rule::FencesRise,
            "the fence is not the next one",
        )?;
        self.floor = new.fence;
        let right_payload = digest(Fingerprint::of(&[terms.payload]).as_bytes());
        require(
            new.payload == right_payload,
            Rule::OnePayload,
            "not the claim's payload",
        )?;
        require(
            new.state == RUNNING && new.result.is_none(),
            Rule::Accounted,
            "a new owner without a run",
        )?;
        require(
            new.expires_at >= new.lease_until + terms.retention,
            Rule::RetentionHolds,
            "retention does not outlast the lease",
        )?;
        match old.filter(|old| !old.expired(now)) {
            None => require(
                new.attempts == 1 && new.born == new.fence,
                Rule::FencesRise,
                "a new incarnation does not begin anew",
            ),
            Some(old) => taken_over(old, new, terms, now),
        }
    }

    /// A new fence under the old owner: an operator's act.
    fn operated(&mut self, old: &Version, new: &Version, at: u64) -> Judged {
        require(
            new.fence > self.floor,
            Rule::FencesRise,
            "an operator's fence does not rise",
        )?;
        self.floor = new.fence;
        unchanged(old, new)?;
        require(
            old.attempts == new.attempts,
            Rule::Accounted,
            "an operator changed the attempts",
        )?;
        require(
            !old.expired(new.lease_until),
            Rule::Accounted,
            "an operator acted on what was expired",
        )?;
        let fits = |act: &Act| match (old.state, new.state, act) {
            (PARKED, SUCCEEDED, Act::ResolveSucceeded(mark))
            | (PARKED, FAILED, Act::ResolveFailed(mark)) => new.result == Some(*mark),
            (PARKED, WAITING, Act::ResolveRetry | Act::Redrive)
            | (FAILED, WAITING, Act::Redrive)
            | (RUNNING | WAITING, WAITING, Act::Release) => true,
            _ => false,
        };
        self.asked_by_operator(at, fits)
    }

    /// The same fence and owner: the run's own word, a lapse, or the end of the incarnation.
    fn kept(&self, old: &Version, new: &Version, at: u64) -> Judged {
        if new.state == WAITING && new.expires_at <= new.lease_until && new.result.is_none() {
            require(
                old.state != RUNNING || old.lease_until <= new.lease_until,
                Rule::OneLease,
                "a live lease was forgotten",
            )?;
            return self.asked_by_operator(at, |act| matches!(act, Act::Forget));
        }
        unchanged(old, new)?;
        match (old.state, new.state) {
            (RUNNING, RUNNING) => {
                require(
                    new.lease_until >= old.lease_until,
                    Rule::OneLease,
                    "a renewal shortened the lease",
                )?;
                self.asked_by_run(new, at, |asked| matches!(asked, Asked::Renew(..)))
            }
            (RUNNING, PARKED) if new.result.is_none() => self.lapsed(old, at),
            (RUNNING | PARKED, SUCCEEDED | FAILED | WAITING | PARKED) => {
                self.asked_by_run(new, at, |asked| leads_to(asked, old, new))
            }
            (SUCCEEDED | FAILED, _) => Err((Rule::OneEnd, "an end was changed".into())),
            _ => Err((Rule::Accounted, "no such transition".into())),
        }
    }

    /// A lapsed lease was parked by a claim that does not retry.
    fn lapsed(&self, old: &Version, at: u64) -> Judged {
        require(
            old.lease_until <= at,
            Rule::OneLease,
            "a live lease was parked",
        )?;
        let parks = |terms: &Terms| terms.park || !below(old.attempts, terms.max_attempts);
        let asked = self.scene.calls.iter().any(|call| {
            call.overlaps(&(at..=at)) && matches!(&call.asked, Asked::Claim(terms) if parks(terms))
        });
        require(asked, Rule::Accounted, "nobody's claim parks it")
    }

    fn asked_by_run(&self, of: &Version, at: u64, fits: impl Fn(&Asked) -> bool) -> Judged {
        let calls = self.by_run.get(&(of.fence, of.owner));
        let mut calls = calls.into_iter().flatten();
        let asked = calls.any(|call| {
            call.overlaps(&(at..=at)) && call.may_have_been_done() && fits(&call.asked)
        });
        let why = "the run that holds the lease did not ask for it";
        require(asked, Rule::StaleChangesNothing, why)
    }

    fn asked_by_operator(&self, at: u64, fits: impl Fn(&Act) -> bool) -> Judged {
        let asked = self.scene.may_be_operated(&(at..=at), fits);
        require(asked, Rule::Accounted, "no operator asked for it")
    }
}

fn taken_over(old: &Version, new: &Version, terms: &Terms, now: u64) -> Judged {
    require(
        old.payload == new.payload,
        Rule::OnePayload,
        "another payload took over",
    )?;
    require(
        new.born == old.born && new.attempts == old.attempts + 1,
        Rule::FencesRise,
        "the incarnation does not go on",
    )?;
    require(
        new.expires_at >= old.expires_at,
        Rule::RetentionHolds,
        "retention shrank",
    )?;
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

fn swept(old: &Version, at: u64) -> Judged {
    require(
        old.state != PARKED,
        Rule::ParkedStays,
        "what was parked was swept",
    )?;
    require(
        old.expires_at + micros(GRACE) <= at,
        Rule::RetentionHolds,
        "swept before its grace was over",
    )?;
    let live = old.state == RUNNING && old.lease_until > at;
    require(!live, Rule::OneLease, "a live lease was swept")
}

/// What no run and no operator changes within an incarnation.
fn unchanged(old: &Version, new: &Version) -> Judged {
    require(
        old.payload == new.payload,
        Rule::OnePayload,
        "the payload changed",
    )?;
    require(
        old.born == new.born,
        Rule::FencesRise,
        "the incarnation changed",
    )?;
    require(
        new.expires_at >= old.expires_at,
        Rule::RetentionHolds,
        "retention shrank",
    )
}

/// Whether what a run asked leads from one version to the other.
fn leads_to(asked: &Asked, old: &Version, new: &Version) -> bool {
    let same = old.attempts == new.attempts;
    let records = |mark: &Mark| new.result == Some(*mark) && same;
    match asked {
        Asked::Complete(_, mark, _) => new.state == SUCCEEDED && records(mark),
        Asked::CompleteIn(_, nonce) => {
            let nonces = new.result.map(|mark| mark.nonce);
            new.state == SUCCEEDED && same && nonces == Some(*nonce)
        }
        Asked::Fail(_, failing, mark) => records(mark) && new.state == fails_to(*failing, old),
        Asked::Release(_) => new.state == WAITING && new.attempts == old.attempts.saturating_sub(1),
        Asked::Claim(_)
        | Asked::Renew(..)
        | Asked::StepBegin(..)
        | Asked::StepRestart(..)
        | Asked::StepComplete(..)
        | Asked::Operate(_) => false,
    }
}

const fn fails_to(failing: Failing, old: &Version) -> u8 {
    match failing.kind {
        Kind::Final => FAILED,
        Kind::InDoubt if failing.park => PARKED,
        Kind::InDoubt | Kind::Retryable if below(old.attempts, failing.max_attempts) => WAITING,
        Kind::InDoubt | Kind::Retryable => PARKED,
    }
}

const fn below(attempts: u32, max: u32) -> bool {
    max == 0 || attempts < max
}

fn require(holds: bool, rule: Rule, otherwise: &str) -> Judged {
    if holds {
        Ok(())
    } else {
        Err((rule, otherwise.to_owned()))
    }
}

// === impl Version ===

impl Version {
    const fn expired(&self, now: u64) -> bool {
        self.state != PARKED && self.expires_at <= now
    }
}
