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
        (self.how == Stuck && self.crashed() && refused > 0)
            .then(|| format!("after the kill {refused} attempts were refused {within}; set lease_ms if claims live longer"))
    }

    pub(in crate::judge::pattern) fn acknowledged_early(&self) -> Option<String> {
        let killed = self.killed()?;
        let before = self.timeline.iter().take(killed);
        let sent: Vec<u32> = before.filter_map(sent_attempt).collect();
        let mut successes = self.timeline.iter().filter(|it| it.is_known_success());
        let early = successes.find_map(|it| it.attempt_end().filter(|(_, n, _)| sent.contains(n)));
        let (_, attempt, _) = early?;
        (self.how == EffectLost && self.crashed()).then(|| {
            format!("attempt {attempt} was answered as a success although its process was killed before the effect was there")
        })
    }

    pub(in crate::judge::pattern) fn failure_kept(&self) -> Option<String> {
        if self.how != EffectLost {
            return None;
        }
        if self.fault == Fault::DependencyFails && !self.heard_refusal(self.timeline.len()) {
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
        failed.then(|| "an attempt failed and its sender was told so; a later one was answered as a success and did nothing".to_owned())
    }

    pub(in crate::judge::pattern) fn failure_stays(&self) -> Option<String> {
        let (refused, within) = self.refused_at_last();
        (self.how == Stuck && !self.crashed() && !self.took_effect() && refused > 1)
            .then(|| format!("{refused} attempts were refused {within}, although a delivery that is left alone is accepted"))
    }

    pub(in crate::judge::pattern) fn wrong_step(&self) -> Option<String> {
        let (before, after) = self.around_restart();
        let baseline: Vec<String> = self.clues.baseline.iter().map(|it| shape(it)).collect();
        let said =
            |requests: &[Request<'_>], it: &str| requests.iter().any(|one| shape(one.says) == it);
        let mut later = after.iter().filter(|it| writes(it.says));
        let next = later.find(|it| {
            let shape = shape(it.says);
            // A line about a duplicate is not a step of the work.
            !said(&before, &shape) && baseline.contains(&shape)
        })?;
        (self.how == EffectLost && self.crashed())
            .then(|| format!("after the restart it went on with `{}`", next.says))
    }

    pub(in crate::judge::pattern) fn marked_before(&self) -> Option<String> {
        let killed = self.killed()?;
        let lost = self.how == EffectLost && self.crashed();
        let later = self.timeline.get(killed..)?;
        if !lost
            || !later.iter().any(Event::is_known_success)
            || later.iter().any(failed_on_the_wire)
        {
            return None;
        }
        let (before, _) = self.around_restart();
        let marker = before.iter().find(|it| writes(it.says));
        let marker = marker.map_or(String::new(), |it| format!(" after `{}`", it.says));
        Some(format!(
            "it was killed{marker}, and the next attempt was answered as a success without doing the work"
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
