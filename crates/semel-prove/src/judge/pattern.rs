//! Names the mistake, from which attacks broke a handler and what was said on the wire. Pure.

mod catalogue;
mod statements;
#[cfg(test)]
mod tests;

use crate::attacks::attack::Attack;
use crate::attacks::baseline::Baseline;
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::{BreachKind, Pattern, Verdict};
use crate::report::AttackReport;
use catalogue::{
    ACKNOWLEDGED_EARLY, ANSWER_FORGOTTEN, CALL_WITHOUT_KEY, CHECK_THEN_ACT, COUNTER,
    DIES_OF_DUPLICATE, DUPLICATE_REFUSED, FAILURE_KEPT, KEY_PER_PROCESS, MARKER_AFTER,
    MARKER_BEFORE, NEVER_TAKEN_OVER, NO_KEY, NO_LEASE, POISON, RANDOM_ID, UNFENCED, WRONG_STEP,
};
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
    let how = clues.how(attack)?;
    match how {
        BreachKind::Poison => Some(POISON),
        BreachKind::AnswersDiffer => Some(ANSWER_FORGOTTEN),
        BreachKind::Stuck => Some(clues.stuck(attack)),
        BreachKind::Died => Some(DIES_OF_DUPLICATE),
        BreachKind::EffectLost => Some(clues.lost(attack)),
        BreachKind::EffectTwice => clues.twice(attack),
    }
}

// === impl Clues ===

impl Clues {
    fn stuck(&self, attack: Attack) -> Pattern {
        // A claim that is never given back stays behind a crash; a plain duplicate meets none.
        let plain = !crashes(attack) || self.how(Attack::Repeat) == Some(BreachKind::Stuck);
        if plain && self.took_effect(attack) {
            return DUPLICATE_REFUSED;
        }
        if crashes(attack) {
            return NEVER_TAKEN_OVER;
        }
        FAILURE_KEPT
    }

    fn lost(&self, attack: Attack) -> Pattern {
        if !crashes(attack) {
            return FAILURE_KEPT;
        }
        if self.answered_before_crash(attack) {
            return ACKNOWLEDGED_EARLY;
        }
        if self.refused_first(attack) || self.broke(Attack::Repeat) {
            return FAILURE_KEPT;
        }
        if self.goes_on_elsewhere(attack) {
            return WRONG_STEP;
        }
        MARKER_BEFORE
    }

    fn twice(&self, attack: Attack) -> Option<Pattern> {
        if self.how(Attack::Repeat) == Some(BreachKind::EffectTwice) {
            return Some(self.every_repeat());
        }
        if self.other_process_disagrees() && !races(attack) {
            return Some(KEY_PER_PROCESS);
        }
        match attack {
            Attack::AtOnce
            | Attack::WhileRunning
            | Attack::DeadlinePassed
            | Attack::TwoProcesses => Some(if self.locks() {
                UNFENCED
            } else if self.never_checks() {
                NO_KEY
            } else {
                CHECK_THEN_ACT
            }),
            Attack::Pause if self.locks() => Some(UNFENCED),
            Attack::Pause if self.races() => Some(CHECK_THEN_ACT),
            Attack::Pause => Some(NO_LEASE),
            Attack::KillRandom | Attack::CrashSweep => Some(if self.calls_again(attack) {
                CALL_WITHOUT_KEY
            } else if self.remembers_by_itself() {
                KEY_PER_PROCESS
            } else {
                MARKER_AFTER
            }),
            Attack::Repeat | Attack::Reorder | Attack::OtherPayload | Attack::BadKey => {
                Some(NO_KEY)
            }
            Attack::AnswerLost | Attack::AnswerCut => None,
        }
    }

    /// Even the plainest repeat takes effect: why?
    fn every_repeat(&self) -> Pattern {
        if self.baseline.iter().any(|said| adds(said)) {
            return COUNTER;
        }
        if self.writes_vary {
            return RANDOM_ID;
        }
        NO_KEY
    }

    fn how(&self, attack: Attack) -> Option<BreachKind> {
        self.broken
            .iter()
            .find(|(broken, _, _)| *broken == attack)
            .map(|(_, how, _)| *how)
    }

    fn broke(&self, attack: Attack) -> bool {
        self.how(attack).is_some()
    }

    fn timeline(&self, attack: Attack) -> &[Event] {
        let found = self.broken.iter().find(|(broken, _, _)| *broken == attack);
        found.map_or(&[], |(_, _, timeline)| timeline)
    }

    /// Whether a probe saw the effect in the end.
    fn took_effect(&self, attack: Attack) -> bool {
        let mut counts = self.timeline(attack).iter();
        counts.any(|event| matches!(event.what, What::Effects { count: 1.., .. }))
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
        [Attack::AtOnce, Attack::WhileRunning]
            .into_iter()
            .any(|attack| self.broke(attack))
    }

    /// One process after the other, never both at once.
    fn other_process_disagrees(&self) -> bool {
        let timeline = self.timeline(Attack::TwoProcesses);
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

    fn answered_before_crash(&self, attack: Attack) -> bool {
        let timeline = self.timeline(attack);
        let crash = timeline.iter().position(|event| event.what == What::Killed);
        let mut before = timeline.iter().take(crash.unwrap_or(0));
        before.any(Event::is_known_success) || self.writes_after_answer
    }

    /// The sender was told of a failure, delivered again, and was told of a success.
    fn refused_first(&self, attack: Attack) -> bool {
        let refused =
            |event: &Event| matches!(event.what, What::Answered { accepted, .. } if !accepted);
        self.timeline(attack).iter().any(refused)
    }

    /// After the restart something is written that was not written before.
    fn goes_on_elsewhere(&self, attack: Attack) -> bool {
        let timeline = self.timeline(attack);
        let before: Vec<&str> = timeline
            .iter()
            .take_while(|event| event.what != What::Started)
            .filter_map(Event::request)
            .collect();
        after_restart(timeline).any(|said| writes(&said) && !before.contains(&said.as_str()))
    }

    /// The same call of another service before and after the crash.
    fn calls_again(&self, attack: Attack) -> bool {
        let timeline = self.timeline(attack);
        let calls = |said: &str| said.starts_with("POST /") || said.starts_with("PUT /");
        let again = after_restart(timeline).any(|said| calls(&said));
        let before = timeline
            .iter()
            .take_while(|event| event.what != What::Started);
        again && before.filter_map(Event::request).any(calls)
    }
}

fn crashes(attack: Attack) -> bool {
    matches!(attack, Attack::KillRandom | Attack::CrashSweep)
}

fn races(attack: Attack) -> bool {
    matches!(
        attack,
        Attack::AtOnce | Attack::WhileRunning | Attack::DeadlinePassed
    )
}

fn after_restart(timeline: &[Event]) -> impl Iterator<Item = String> {
    let after = timeline
        .iter()
        .skip_while(|event| event.what != What::Started);
    after.filter_map(Event::request).map(str::to_owned)
}
