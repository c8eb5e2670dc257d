//! Names the mistake, from which attacks broke a handler and what was said on the wire. Pure.

mod catalogue;
mod statements;
#[cfg(test)]
mod tests;

use crate::attacks::attack::{Attack, Fault};
use crate::attacks::baseline::Baseline;
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::{BreachKind, Pattern, Verdict};
use crate::report::AttackReport;
use catalogue::CATALOGUE;
use statements::{adds, checks_first, writes};

/// What is known when a mistake is to be named.
#[derive(Clone, Debug, Default)]
struct Clues {
    /// Every attack that broke the handler, how, and its timeline.
    broken: Vec<(Attack, BreachKind, Vec<Event>)>,
    /// Every attack that did not.
    held: Vec<Attack>,
    /// What one undisturbed delivery says to its dependencies.
    baseline: Vec<String>,
    /// Whether it still writes after it has answered.
    writes_after_answer: bool,
    /// Whether two attempts of one delivery write different bytes of the same length.
    writes_vary: bool,
}

/// One attack that broke the handler, among all that is known.
#[derive(Debug)]
struct BrokenAttack<'a> {
    fault: Fault,
    how: BreachKind,
    timeline: &'a [Event],
    clues: &'a Clues,
}

/// Names the mistake behind everything that broke: only now is it known which attacks held and which did not.
pub(crate) fn name_all(attacks: &mut [AttackReport], baseline: &Baseline, writes_vary: bool) {
    let requests = baseline.requests();
    let mut clues = Clues {
        baseline: requests.map(|it| it.message.text.clone()).collect(),
        writes_after_answer: baseline.writes_after_answer(),
        writes_vary,
        ..Clues::default()
    };
    for one in attacks.iter() {
        match &one.verdict {
            Verdict::Held => clues.held.push(one.attack),
            Verdict::Broken(broken) => {
                let timeline = broken.timeline.clone();
                clues.broken.push((one.attack, broken.how, timeline));
            }
            Verdict::Vacuous { .. } | Verdict::NotRun { .. } => {}
        }
    }
    for one in attacks {
        if let Verdict::Broken(broken) = &mut one.verdict {
            broken.pattern = name(one.attack, &clues);
        }
    }
}

/// What the mistake behind one broken attack is called.
fn name(attack: Attack, clues: &Clues) -> Option<Pattern> {
    let (_, how, timeline) = clues.broken(attack)?;
    let broken = BrokenAttack {
        fault: attack.definition().fault,
        how: *how,
        timeline,
        clues,
    };
    let known = CATALOGUE.iter().find(|known| (known.fits)(&broken))?;
    Some(Pattern {
        name: known.name,
        is: known.is,
        instead: known.instead,
    })
}

// === impl Clues ===

impl Clues {
    fn broken(&self, attack: Attack) -> Option<&(Attack, BreachKind, Vec<Event>)> {
        self.broken.iter().find(|(broken, _, _)| *broken == attack)
    }

    fn broke(&self, attack: Attack) -> bool {
        self.broken(attack).is_some()
    }

    /// Whether it adds to a stored number.
    fn adds(&self) -> bool {
        self.baseline.iter().any(|said| adds(said))
    }

    /// It writes without having asked anybody, and a plain repeat takes effect, as far as is known.
    fn never_checks(&self) -> bool {
        self.asks_nobody() && !self.held.contains(&Attack::Repeat)
    }

    /// It asks nobody, and yet it knows a plain repeat.
    fn remembers_by_itself(&self) -> bool {
        self.asks_nobody() && self.held.contains(&Attack::Repeat)
    }

    fn asks_nobody(&self) -> bool {
        let writes = self.baseline.iter().any(|said| writes(said));
        writes && !checks_first(&self.baseline)
    }

    /// Two deliveries at the same time are enough.
    fn races(&self) -> bool {
        self.broke(Attack::AtOnce) || self.broke(Attack::WhileRunning)
    }

    /// One process after the other, never both at once.
    fn processes_disagree(&self) -> bool {
        let Some((_, _, timeline)) = self.broken(Attack::TwoProcesses) else {
            return false;
        };
        let mut open = 0_u32;
        let mut most = 0;
        for event in timeline {
            if matches!(event.what, What::Sent { .. }) {
                open += 1;
            } else if event.attempt_end().is_some() {
                open = open.saturating_sub(1);
            }
            most = most.max(open);
        }
        most == 1
    }

    /// A lock that lapses by itself.
    fn locks(&self) -> bool {
        self.baseline.iter().any(|said| {
            let upper = said.to_uppercase();
            upper.starts_with("SETNX ") || upper.starts_with("SET ") && upper.contains(" NX")
        })
    }
}

// === impl BrokenAttack ===

impl BrokenAttack<'_> {
    fn crashed(&self) -> bool {
        self.fault == Fault::Crash
    }

    /// Deliveries were at work at the same time.
    fn raced(&self) -> bool {
        matches!(self.fault, Fault::Race | Fault::SecondProcess)
    }

    /// Whether a plain repeat broke the promise in this way.
    fn repeat_ended(&self, how: BreachKind) -> bool {
        let repeat = self.clues.broken(Attack::Repeat);
        repeat.is_some_and(|(_, broken, _)| *broken == how)
    }

    /// Even the plainest repeat takes effect.
    fn every_repeat(&self) -> bool {
        self.how == BreachKind::EffectTwice && self.repeat_ended(BreachKind::EffectTwice)
    }

    /// Whether a probe saw the effect in the end.
    fn took_effect(&self) -> bool {
        let mut counts = self.timeline.iter();
        counts.any(|event| matches!(event.what, What::Effects { count: 1.., .. }))
    }

    fn answered_before_crash(&self) -> bool {
        let mut events = self.timeline.iter();
        let crash = events.position(|event| event.what == What::Killed);
        let mut before = self.timeline.iter().take(crash.unwrap_or(0));
        before.any(Event::is_known_success) || self.clues.writes_after_answer
    }

    /// The sender was told of a failure, delivered again, and was told of a success.
    fn refused_first(&self) -> bool {
        let refused =
            |event: &Event| matches!(event.what, What::Answered { accepted, .. } if !accepted);
        self.timeline.iter().any(refused)
    }

    /// After the restart something is written that was not written before.
    fn goes_on_elsewhere(&self) -> bool {
        let (before, after) = self.around_restart();
        after
            .iter()
            .any(|said| writes(said) && !before.contains(said))
    }

    /// The same call of another service before and after the crash.
    fn calls_again(&self) -> bool {
        let calls = |said: &&str| said.starts_with("POST /") || said.starts_with("PUT /");
        let (before, after) = self.around_restart();
        before.iter().any(calls) && after.iter().any(calls)
    }

    /// What was asked of dependencies before the process was started again, and after.
    fn around_restart(&self) -> (Vec<&str>, Vec<&str>) {
        let started = |event: &Event| event.what == What::Started;
        let restart = self.timeline.iter().position(started);
        let (before, after) = self
            .timeline
            .split_at(restart.unwrap_or(self.timeline.len()));
        (asked(before), asked(after))
    }
}

/// What a process asked of its dependencies.
fn asked(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(Event::request).collect()
}
