//! What was seen that speaks for one mistake, in a sentence; nothing where it was not seen.

mod lost;
mod twice;

use super::BrokenAttack;
use super::turns::Request;
use crate::attacks::attack::{Attack, Fault};
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::BreachKind::{self, EffectTwice};
use crate::world::protocol::shape;
use std::time::Duration;

// === impl BrokenAttack ===

impl<'a> BrokenAttack<'a> {
    /// Even the plainest repeat takes effect.
    pub(super) fn every_repeat(&self) -> bool {
        self.how == EffectTwice && self.repeat_ended(EffectTwice)
    }

    /// Whether a plain repeat broke the promise in this way.
    fn repeat_ended(&self, how: BreachKind) -> bool {
        let repeat = self.clues.broken(Attack::Repeat);
        repeat.is_some_and(|repeat| repeat.how == how)
    }

    fn crashed(&self) -> bool {
        self.fault == Fault::Crash
    }

    /// Something besides deliveries was at work.
    pub(super) fn disturbed(&self) -> bool {
        matches!(self.fault, Fault::Crash | Fault::DependencyFails)
    }

    /// Deliveries were at work at the same time.
    fn raced(&self) -> bool {
        matches!(self.fault, Fault::Race | Fault::SecondProcess)
    }

    /// Whether a probe saw the effect in the end.
    fn took_effect(&self) -> bool {
        let mut counts = self.timeline.iter();
        counts.any(|event| matches!(event.what, What::Effects { count: 1.., .. }))
    }

    fn killed(&self) -> Option<usize> {
        self.timeline.iter().position(|it| it.what == What::Killed)
    }

    /// The process that was killed, or that a dependency failed.
    fn disturbed_process(&self) -> Option<&'a str> {
        if let Some(killed) = self.killed() {
            return self.timeline.get(killed).map(|it| it.lane.as_str());
        }
        let mut before = self.timeline.iter().take(self.failed()?).rev();
        before.find_map(|it| {
            let What::Wire { process, .. } = &it.what else {
                return None;
            };
            Some(process.as_str())
        })
    }

    /// When a dependency failed.
    fn failed(&self) -> Option<usize> {
        let fails = |it: &Event| matches!(it.what, What::Fails { .. });
        self.timeline.iter().position(fails)
    }

    /// Whether only the last answer was missing when a dependency failed: what was asked for is carried out, perhaps after
    /// the next attempt has looked.
    fn was_finishing(&self) -> bool {
        let before = self.timeline.iter().take(self.failed().unwrap_or(0));
        let answered = |it: &Event| matches!(it.what, What::Wire { outward: false, .. });
        let last = self.clues.baseline.last().map(|says| shape(says));
        let said = before.clone().filter_map(Request::of).next_back();
        let said = said.map(|it| shape(it.says));
        let wire = |it: &&Event| matches!(it.what, What::Wire { .. });
        said.is_some() && said == last && before.rev().find(wire).is_some_and(answered)
    }

    /// Whether an attempt that had come until then was answered as a failure.
    fn heard_refusal(&self, until: usize) -> bool {
        let sent: Vec<u32> = self
            .timeline
            .iter()
            .take(until)
            .filter_map(sent_attempt)
            .collect();
        let refused = |event: &Event| matches!(event.what, What::Answered { attempt, accepted: false, .. } if sent.contains(&attempt));
        self.timeline.iter().any(refused)
    }

    /// How many attempts were refused since the last that was not, and within which time.
    fn refused_at_last(&self) -> (u32, String) {
        let ends = self.timeline.iter().filter(|it| it.attempt_end().is_some());
        let refused = ends.rev().map_while(|it| {
            let (_, attempt, accepted) = it.attempt_end()?;
            (!accepted).then_some((attempt, it.at))
        });
        let refused: Vec<(u32, Duration)> = refused.collect();
        let (Some((last, until)), Some((first, since))) = (refused.first(), refused.last()) else {
            return (0, String::new());
        };
        // Attempts in between were left out of the timeline.
        let within = until.saturating_sub(*since).as_secs_f64();
        (
            last.saturating_sub(*first) + 1,
            format!("within {within:.1} s"),
        )
    }

    /// What takes a lock that lapses by itself.
    fn lock(&self) -> Option<&'a str> {
        let mut said = self.clues.baseline.iter();
        let locks = |said: &&String| {
            let upper = said.to_uppercase();
            upper.starts_with("SETNX ") || upper.starts_with("SET ") && upper.contains(" NX")
        };
        said.find(locks).map(String::as_str)
    }

    /// What was asked more than once. Where every repeat takes effect, the plainest one shows it best.
    fn repeated(&self) -> Vec<Request<'a>> {
        let repeat = self.clues.broken(Attack::Repeat);
        let timeline = match repeat.filter(|_| self.every_repeat()) {
            Some(repeat) => &repeat.timeline,
            None => self.timeline,
        };
        let requests: Vec<Request<'a>> = timeline.iter().filter_map(Request::of).collect();
        let same = |one: &Request<'a>| {
            requests
                .iter()
                .filter(|it| shape(it.says) == shape(one.says))
                .count()
        };
        requests
            .iter()
            .copied()
            .filter(|one| same(one) > 1)
            .collect()
    }

    /// What was asked of dependencies before the process was started again, or one of them failed, and after.
    fn around_disturbance(&self) -> (Vec<Request<'a>>, Vec<Request<'a>>) {
        let started = |event: &Event| event.what == What::Started;
        let restart = self.timeline.iter().position(started);
        let disturbed = restart.or(self.failed()).unwrap_or(self.timeline.len());
        let (before, after) = self.timeline.split_at(disturbed);
        let requests = |events: &'a [Event]| events.iter().filter_map(Request::of).collect();
        (requests(before), requests(after))
    }
}

fn sent_attempt(event: &Event) -> Option<u32> {
    let What::Sent { attempt, .. } = event.what else {
        return None;
    };
    Some(attempt)
}

/// Whether a dependency refused something.
fn failed_on_the_wire(event: &Event) -> bool {
    matches!(&event.what, What::Wire { outward: false, says, .. } if says.starts_with("error: "))
}

/// Whether no two attempts were at work at the same time.
fn in_turns(timeline: &[Event]) -> bool {
    let mut open = 0_u32;
    timeline.iter().all(|event| {
        if sent_attempt(event).is_some() {
            open += 1;
        } else if event.attempt_end().is_some() {
            open = open.saturating_sub(1);
        }
        open <= 1
    })
}
