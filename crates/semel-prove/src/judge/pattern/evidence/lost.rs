//! Evidence of mistakes that lose an effect, or refuse it, or end the process.

use super::{failed_on_the_wire, sent_attempt};
use crate::attacks::attack::Fault;
use crate::judge::pattern::BrokenAttack;
use crate::judge::pattern::statements::writes;
use crate::judge::pattern::turns::Request;
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::BreachKind::{self, Died, EffectLost, OldWins, Stuck};
use crate::world::protocol::shape;

// === impl BrokenAttack ===

impl BrokenAttack<'_> {
    /// What was seen is all that there is to know.
    pub(in crate::judge::pattern) fn itself(&self, how: BreachKind) -> Option<String> {
        (self.how == how).then(|| self.seen.to_owned())
    }

    pub(in crate::judge::pattern) fn died_at_duplicate(&self) -> Option<String> {
        let ended = self.timeline.iter().position(|it| it.what == What::Ended)?;
        let mut before = self.timeline.iter().take(ended).rev();
        let attempt = before.find_map(sent_attempt)?;
        let process = &self.timeline.get(ended)?.lane;
        (self.how == Died && attempt > 1)
            .then(|| format!("`{process}` ended by itself after attempt {attempt} had come"))
    }

    pub(in crate::judge::pattern) fn duplicate_refused(&self) -> Option<String> {
        // A claim that is never given back stays behind a crash; a plain duplicate meets none.
        let disturbed = self.disturbed() && !self.repeat_ended(Stuck);
        let (refused, within) = self.refused_at_last();
        (self.how == Stuck && !disturbed && self.took_effect() && refused > 0).then(|| {
            format!("the effect is there, and {refused} later attempts were refused {within}")
        })
    }

    pub(in crate::judge::pattern) fn claim_stays(&self) -> Option<String> {
        let (refused, within) = self.refused_at_last();
        // A failed attempt may be remembered as such; one that was killed has only its claim to leave behind.
        let fits = self.crashed() || self.disturbed() && self.clues.stuck_after_a_kill();
        let after = if self.crashed() { "kill" } else { "failure" };
        (self.how == Stuck && fits && refused > 0)
            .then(|| format!("after the {after} {refused} attempts were refused {within}; set lease_ms if claims live longer"))
    }

    pub(in crate::judge::pattern) fn taken_and_lost(&self) -> Option<String> {
        let process = self.disturbed_process()?;
        let receiver = self.timeline.iter().find_map(|it| {
            let What::Sent { to, .. } = &it.what else {
                return None;
            };
            to.as_deref()
        })?;
        let disturbed = if self.crashed() {
            "was killed"
        } else {
            "met a failure"
        };
        let attempt = self.early_success().filter(|_| process != receiver)?;
        (self.how == EffectLost && self.disturbed()).then(|| {
            format!("`{receiver}` answered attempt {attempt} with a success, `{process}` {disturbed}, and nobody took it up again")
        })
    }

    pub(in crate::judge::pattern) fn acknowledged_early(&self) -> Option<String> {
        let attempt = self.early_success().filter(|_| self.how == EffectLost)?;
        if self.crashed() {
            return Some(format!(
                "attempt {attempt} was answered as a success although its process was killed before the effect was there"
            ));
        }
        let rest = self.clues.after_answer.as_ref()?;
        Some(format!(
            "the sender hears of a success before `{rest}` is said"
        ))
    }

    /// The attempt that was under way when its process was killed or a dependency failed, if it was answered as a success.
    fn early_success(&self) -> Option<u32> {
        let disturbed = self.killed().or(self.failed())?;
        let before = self.timeline.iter().take(disturbed);
        let sent: Vec<u32> = before.filter_map(sent_attempt).collect();
        let successes = self.timeline.iter().filter(|it| it.is_known_success());
        let mut attempts = successes.filter_map(Event::attempt_end).map(|(_, n, _)| n);
        attempts.find(|attempt| sent.contains(attempt))
    }

    pub(in crate::judge::pattern) fn failure_kept(&self) -> Option<String> {
        if self.how != EffectLost {
            return None;
        }
        if self.failed().and(self.early_success()).is_some() {
            return Some("a dependency failed, and yet the sender heard of a success".to_owned());
        }
        let failed = self.timeline.iter().find(|it| failed_on_the_wire(it));
        if let Some(What::Wire { says, .. }) = failed.map(|it| &it.what)
            && self.fault == Fault::Others
            && !self.heard_refusal(self.timeline.len())
        {
            return Some(format!(
                "a statement was answered with `{says}`, and yet the sender heard of a success"
            ));
        }
        // An attempt that came after the kill may only have met the claim of the one that was killed.
        let until = self.killed().unwrap_or(self.timeline.len());
        let failed = self.heard_refusal(until) || self.fault == Fault::DependencyFails;
        (failed && !self.noted_before_failing()).then(|| "an attempt failed and its sender was told so; a later one was answered as a success and did nothing".to_owned())
    }

    /// Whether the attempt in which a dependency failed wrote before that, and nothing more afterwards.
    fn noted_before_failing(&self) -> bool {
        let Some(failed) = self.failed() else {
            return false;
        };
        let (before, after) = self.timeline.split_at(failed);
        let wrote = |event: &Event| Request::of(event).is_some_and(|it| writes(it.says));
        let mut rest = after.iter().take_while(|it| sent_attempt(it).is_none());
        before.iter().any(wrote) && !rest.any(wrote)
    }

    pub(in crate::judge::pattern) fn failure_stays(&self) -> Option<String> {
        let (refused, within) = self.refused_at_last();
        (self.how == Stuck && !self.crashed() && !self.took_effect() && refused > 1)
            .then(|| format!("{refused} attempts were refused {within}, although a delivery that is left alone is accepted"))
    }

    pub(in crate::judge::pattern) fn wrong_step(&self) -> Option<String> {
        if self.how != EffectLost || !self.disturbed() {
            return None;
        }
        let (before, after) = self.around_disturbance();
        let baseline: Vec<String> = self.clues.baseline.iter().map(|it| shape(it)).collect();
        let mut later = after.iter().filter(|it| writes(it.says));
        let next = later.find(|it| {
            let shape = shape(it.says);
            // A line about a duplicate is not a step of the work.
            !said(&before, &shape) && baseline.contains(&shape)
        });
        match next {
            Some(next) => {
                let after = if self.crashed() { "restart" } else { "failure" };
                Some(format!("after the {after} it went on with `{}`", next.says))
            }
            None => self.noted_without_doing(&before, &after),
        }
    }

    /// It notes each step before it is done, and ended behind the note of the last one: no other is left to go on with.
    fn noted_without_doing(&self, before: &[Request<'_>], after: &[Request<'_>]) -> Option<String> {
        let written = || before.iter().filter(|it| writes(it.says));
        let note = written().next_back()?.says;
        let is_note = |says: &str| shape(says) == shape(note);
        let steps = written().skip_while(|it| !is_note(it.says));
        let steps = steps.filter(|it| !is_note(it.says)).count();
        let notes = written().filter(|it| is_note(it.says)).count();
        let baseline = self.clues.baseline.iter().enumerate();
        let mut noted = baseline.filter(|(_, says)| is_note(says));
        let (at, _) = noted.nth(notes.checked_sub(1)?)?;
        let mut next = self.clues.baseline.iter().skip(at);
        let step = next.find(|says| writes(says) && !is_note(says))?;
        let done = said(before, &shape(step)) || said(after, &shape(step));
        (notes > 1 && steps > 0 && !done)
            .then(|| format!("`{note}` was said {notes} times, each time before the step it stands for; `{step}` was never said"))
    }

    pub(in crate::judge::pattern) fn marked_before(&self) -> Option<String> {
        let (disturbed, how) = match self.killed() {
            Some(killed) => (killed, "it was killed"),
            None => (self.failed()?, "a dependency failed"),
        };
        let lost = self.how == EffectLost && self.disturbed();
        let later = self.timeline.get(disturbed..)?;
        if !lost
            || !later.iter().any(Event::is_known_success)
            || later.iter().any(failed_on_the_wire)
        {
            return None;
        }
        let (before, _) = self.around_disturbance();
        let marker = before.iter().find(|it| writes(it.says));
        let marker = marker.map_or(String::new(), |it| format!(" after `{}`", it.says));
        Some(format!(
            "{how}{marker}, and the next attempt was answered as a success without doing the work"
        ))
    }

    pub(in crate::judge::pattern) fn another_taken_for_it(&self) -> Option<String> {
        let failed = self.timeline.iter().any(failed_on_the_wire);
        (self.fault == Fault::Others && self.how == EffectLost && !failed).then(|| {
            format!(
                "each delivery takes effect when it comes alone, but {}",
                self.seen
            )
        })
    }

    pub(in crate::judge::pattern) fn old_won(&self) -> Option<String> {
        self.itself(OldWins)
    }
}

/// Whether one of these has this shape.
fn said(requests: &[Request<'_>], like: &str) -> bool {
    requests.iter().any(|it| shape(it.says) == like)
}
