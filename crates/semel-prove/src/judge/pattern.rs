//! Names the mistake, from which attacks broke a handler and what was said on the wire. Pure.
//!
//! A name is given only with evidence of its own: what was seen that this mistake explains and others do not.

mod catalogue;
mod evidence;
mod turns;
mod statements;
#[cfg(test)]
mod tests;

use crate::attacks::attack::{Attack, Fault};
use crate::attacks::baseline::Baseline;
use crate::judge::timeline::Event;
use crate::judge::verdict::{BreachKind, Broken, Pattern, Verdict};
use crate::report::AttackReport;
use crate::scenario::Scenario;
use catalogue::CATALOGUE;
use statements::{checks_first, writes};
use std::collections::BTreeMap;

/// What is known when a mistake is to be named.
#[derive(Clone, Debug, Default)]
struct Clues {
    /// Every attack that broke the handler.
    broken: Vec<(Attack, Broken)>,
    /// Every attack that did not.
    held: Vec<Attack>,
    /// What one undisturbed delivery says to its dependencies.
    baseline: Vec<String>,
    /// What it writes after its sender was told of a success.
    after_answer: Option<String>,
    /// How often each effect is to be seen.
    expected: BTreeMap<String, u64>,
    /// Whether a gate stands before the handler.
    gate: bool,
}

/// One attack that broke the handler, among all that is known.
#[derive(Debug)]
struct BrokenAttack<'a> {
    fault: Fault,
    how: BreachKind,
    /// One sentence: what was seen.
    seen: &'a str,
    timeline: &'a [Event],
    clues: &'a Clues,
}

/// Names the mistake behind everything that broke: only now is it known which attacks held and which did not.
pub(crate) fn name_all(attacks: &mut [AttackReport], baseline: &Baseline, scenario: &Scenario) {
    let requests = baseline.requests();
    let mut after = baseline.requests().filter(|it| it.at > baseline.answered);
    let effects = scenario.effects.iter();
    let mut clues = Clues {
        baseline: requests.map(|it| it.message.text.clone()).collect(),
        after_answer: after
            .find(|it| it.writes())
            .map(|it| it.message.text.clone()),
        expected: effects.map(|it| (it.name.clone(), it.expected)).collect(),
        gate: scenario.gate.is_some(),
        ..Clues::default()
    };
    for one in attacks.iter() {
        match &one.verdict {
            Verdict::Held => clues.held.push(one.attack),
            Verdict::Broken(broken) => clues.broken.push((one.attack, (**broken).clone())),
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
    let broken = clues.broken(attack)?;
    BrokenAttack {
        fault: attack.definition().fault,
        how: broken.how,
        seen: &broken.seen,
        timeline: &broken.timeline,
        clues,
    }
    .named()
}

// === impl Clues ===

impl Clues {
    fn broken(&self, attack: Attack) -> Option<&Broken> {
        let mut broken = self.broken.iter();
        let found = broken.find(|(broken, _)| *broken == attack);
        found.map(|(_, broken)| broken)
    }

    fn broke(&self, attack: Attack) -> bool {
        self.broken(attack).is_some()
    }

    /// A plain repeat did nothing: something tells it from a new delivery.
    fn knows_repeats(&self) -> bool {
        self.held.contains(&Attack::Repeat)
    }

    /// It writes without having asked anybody.
    fn asks_nobody(&self) -> bool {
        let writes = self.baseline.iter().any(|said| writes(said));
        writes && !checks_first(&self.baseline)
    }

    /// A process that was killed left something behind that refuses every later attempt.
    fn stuck_after_a_kill(&self) -> bool {
        let mut broken = self.broken.iter();
        broken.any(|(attack, broken)| {
            attack.definition().fault == Fault::Crash && broken.how == BreachKind::Stuck
        })
    }

    /// Two deliveries at the same time are enough.
    fn races(&self) -> bool {
        let races = [Attack::AtOnce, Attack::WhileRunning, Attack::TwoProcesses];
        races.into_iter().any(|attack| self.broke(attack))
    }
}

// === impl BrokenAttack ===

impl BrokenAttack<'_> {
    /// The first mistake of the catalogue for which there is evidence.
    fn named(&self) -> Option<Pattern> {
        CATALOGUE.iter().find_map(|known| {
            Some(Pattern {
                name: known.name,
                evidence: (known.evidence)(self)?,
                is: known.is,
                instead: known.instead,
            })
        })
    }
}
