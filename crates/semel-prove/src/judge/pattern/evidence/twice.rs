//! Evidence of mistakes by which an effect happens twice.

use super::{in_turns, sent_attempt};
use crate::attacks::attack::{Attack, Fault};
use crate::judge::pattern::BrokenAttack;
use crate::judge::pattern::statements::{adds, checks_first, looks, writes};
use crate::judge::pattern::turns::{Change, Request};
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::BreachKind::EffectTwice;
use crate::scenario::gate::UPSTREAM;
use crate::world::protocol::shape;
use std::collections::BTreeMap;

// === impl BrokenAttack ===

impl BrokenAttack<'_> {
    pub(in crate::judge::pattern) fn in_doubt(&self) -> Option<String> {
        let forwarded = |it: &&Event| it.lane == UPSTREAM && Request::of(it).is_some();
        let times = self.timeline.iter().filter(forwarded).count();
        let disturbed = |it: &&Event| matches!(it.what, What::Killed | What::Paused);
        let ended = self.timeline.iter().find(disturbed)?;
        let how = if ended.what == What::Killed {
            "killed"
        } else {
            "paused"
        };
        (self.clues.gate && self.how == EffectTwice && times > 1 && !self.every_repeat())
            .then(|| format!("`{}` was {how} at work, and the gate sent the delivery to the handler {times} times", ended.lane))
    }

    pub(in crate::judge::pattern) fn one_effect_alone(&self) -> Option<String> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for event in self.timeline {
            if let What::Effects { effect, id, count } = &event.what {
                counts.insert((id, effect), *count);
            }
        }
        let expected = |effect: &str| self.clues.expected.get(effect).copied().unwrap_or(1);
        let mut twice = counts
            .iter()
            .filter(|((_, it), count)| **count > expected(it));
        let ((id, unguarded), many) = twice.next()?;
        let mut once = counts
            .iter()
            .filter(|((of, it), count)| of == id && **count == expected(it) && **count > 0);
        let ((_, guarded), few) = once.next()?;
        self.every_repeat().then(|| {
            format!("at a plain repeat `{unguarded}` happened {many} times and `{guarded}` {few}")
        })
    }

    pub(in crate::judge::pattern) fn adds_again(&self) -> Option<String> {
        let requests = self.repeated();
        let adding = requests.iter().find(|it| adds(it.says))?;
        let only = requests
            .iter()
            .filter(|it| writes(it.says))
            .all(|it| adds(it.says));
        (self.every_repeat() && only).then(|| format!("both attempts said `{}`", adding.says))
    }

    pub(in crate::judge::pattern) fn new_id_each_time(&self) -> Option<String> {
        let Change { says, first, then } = self.changed_id().filter(|_| self.every_repeat())?;
        Some(format!(
            "`{says}` had `{first}` at one attempt and `{then}` at the next"
        ))
    }

    pub(in crate::judge::pattern) fn processes_disagree(&self) -> Option<String> {
        // Another process, or one that was started anew.
        let faults = [
            Fault::Crash,
            Fault::SecondProcess,
            Fault::Pause,
            Fault::Late,
        ];
        let another = faults.contains(&self.fault);
        if self.how != EffectTwice || !another || !self.clues.knows_repeats() {
            return None;
        }
        let known = "a repeat at the same process was recognised";
        if self
            .clues
            .broken(Attack::TwoProcesses)
            .is_some_and(|it| in_turns(&it.timeline))
        {
            return Some(format!(
                "{known}; at another process of the same handler it took effect again"
            ));
        }
        let killed = self.clues.broken(Attack::KillAfterAnswer);
        let timelines = [Some(self.timeline), killed.map(|it| &*it.timeline)].into_iter();
        let fits = self.crashed() || self.fault == Fault::Late;
        let forgot = fits && timelines.flatten().any(forgot_when_killed);
        forgot.then(|| {
            format!("{known}; after its process was killed and started again it took effect again")
        })
    }

    pub(in crate::judge::pattern) fn key_changed(&self) -> Option<String> {
        if self.how != EffectTwice {
            return None;
        }
        let changed = self.changed_header().or_else(|| self.changed_key());
        if let Some(Change { says, first, then }) = changed.or_else(|| self.another_key()) {
            return Some(format!(
                "`{says}` named `{first}` at one attempt and `{then}` at another"
            ));
        }
        let what = if self.fault == Fault::OtherPayload {
            "with another payload under the same id it took effect again"
        } else if self.fault == Fault::Republished {
            "the same payload under another name of its transport, or written in another way, took effect again"
        } else {
            return None;
        };
        let known = self.clues.knows_repeats();
        known.then(|| format!("a plain repeat was recognised; {what}"))
    }

    pub(in crate::judge::pattern) fn forgotten(&self) -> Option<String> {
        let when = if self.fault == Fault::Late {
            let sent = self.timeline.iter().filter(|it| sent_attempt(it).is_some());
            let last = sent.map(|it| it.at).max().unwrap_or_default();
            format!("{:.1} s later", last.as_secs_f64())
        } else if matches!(self.fault, Fault::Others | Fault::Reorder) {
            "after another delivery".to_owned()
        } else if self.fault == Fault::LostAnswer {
            "after an answer that did not arrive".to_owned()
        } else {
            return None;
        };
        (self.how == EffectTwice && self.clues.knows_repeats())
            .then(|| format!("a repeat right away was recognised; {when} it took effect again"))
    }

    pub(in crate::judge::pattern) fn every_arrival(&self) -> Option<String> {
        if self.every_repeat() {
            // A lock that is given back is not what the repeat did.
            let mut again = self.repeated().into_iter().filter(|it| writes(it.says));
            let said = again
                .find(|it| !looks(it.says))
                .map_or(String::new(), |it| format!(", and both said `{}`", it.says));
            return Some(format!(
                "a plain repeat, with nothing else at work, took effect again{said}"
            ));
        }
        if self.fault == Fault::BadKey && self.how == EffectTwice {
            return Some(self.seen.to_owned());
        }
        let unchecked = self.raced() && self.how == EffectTwice && self.lock().is_none();
        let unknown = !self.clues.knows_repeats() && self.clues.asks_nobody();
        let write = self.clues.baseline.iter().find(|said| writes(said))?;
        (unchecked && unknown)
            .then(|| format!("it says `{write}` without having asked anybody before"))
    }

    pub(in crate::judge::pattern) fn lock_lapsed(&self) -> Option<String> {
        let lock = shape(self.lock()?);
        let requests = self.timeline.iter().filter_map(Request::of);
        let takes = requests.map(|it| it.says).filter(|it| shape(it) == lock);
        let takes: Vec<&str> = takes.collect();
        let (first, times) = (takes.first()?, takes.len());
        let fits = self.how == EffectTwice && (self.raced() || self.fault == Fault::Pause);
        (fits && times > 1).then(|| {
            format!("`{first}` was said {times} times, and more than one went on to do the work")
        })
    }

    pub(in crate::judge::pattern) fn looked_first(&self) -> Option<String> {
        let beside = self.fault == Fault::Pause || self.was_finishing();
        if self.how != EffectTwice || !(self.raced() || beside && self.clues.races()) {
            return None;
        }
        let requests = || self.timeline.iter().filter_map(Request::of);
        let first = requests().position(|it| writes(it.says)).unwrap_or(0);
        let looked: Vec<&str> = requests()
            .take(first)
            .map(|it| it.says)
            .filter(|it| looks(it))
            .collect();
        if let Some(look) = looked.first()
            && looked.iter().filter(|it| shape(it) == shape(look)).count() > 1
        {
            return Some(format!(
                "`{look}` was asked more than once before anything was written"
            ));
        }
        (self.clues.knows_repeats() && self.clues.races()).then(|| {
            "one after the other, repeats are recognised; at the same time they are not".to_owned()
        })
    }

    pub(in crate::judge::pattern) fn given_up_with_the_sender(&self) -> Option<String> {
        let held = |attack| self.clues.held.contains(&attack);
        let beside = held(Attack::AtOnce) && held(Attack::WhileRunning);
        (self.how == EffectTwice && self.fault == Fault::Race && beside).then(|| {
            "a delivery beside one whose sender waits is recognised; beside one whose sender has hung up it took effect again".to_owned()
        })
    }

    pub(in crate::judge::pattern) fn goes_on(&self) -> Option<String> {
        let resumed = self
            .timeline
            .iter()
            .position(|it| it.what == What::Resumed)?;
        let mut later = self.timeline.iter().skip(resumed).filter_map(Request::of);
        let write = later.find(|it| writes(it.says))?;
        (self.how == EffectTwice && self.fault == Fault::Pause).then(|| {
            format!(
                "when it went on, another one had done the work, and it said `{}`",
                write.says
            )
        })
    }

    pub(in crate::judge::pattern) fn called_again(&self) -> Option<String> {
        let calls = self
            .timeline
            .iter()
            .filter_map(Request::of)
            .filter(|it| it.is_call() && it.key_header().is_none());
        let calls: Vec<&str> = calls.map(|it| it.says).collect();
        let again = |call: &&&str| calls.iter().filter(|it| shape(it) == shape(call)).count() > 1;
        let call = calls.iter().find(again)?;
        (self.how == EffectTwice && self.disturbed())
            .then(|| format!("`{call}` was said again, without any idempotency key"))
    }

    pub(in crate::judge::pattern) fn marked_after(&self) -> Option<String> {
        let said = self.timeline.iter().filter_map(Request::of);
        let said = said.map(|it| it.says);
        let baseline = self.clues.baseline.iter().map(String::as_str);
        let look = said.chain(baseline).find(|said| looks(said))?;
        let checks = checks_first(&self.clues.baseline);
        let again = self.repeated().into_iter().find(|it| writes(it.says))?;
        let unmarked = self.disturbed() && !self.was_finishing();
        (self.how == EffectTwice && unmarked && checks).then(|| {
            let disturbed = if self.crashed() {
                "the kill"
            } else {
                "the failure"
            };
            format!(
                "it asks first (`{look}`), but `{}` was said before {disturbed} and again after it",
                again.says
            )
        })
    }
}

/// Whether what was answered as a success came again after its process had been killed, and took effect again.
fn forgot_when_killed(timeline: &[Event]) -> bool {
    let killed = timeline.iter().position(|it| it.what == What::Killed);
    let before = timeline.iter().take(killed.unwrap_or_default());
    before.into_iter().any(Event::is_known_success)
}
