//! `semel prove`: attacks a handler the way an at-least-once world does, watches its effects, and says where one happens
//! twice or is lost.
//!
//! A scenario is checked, its world is started behind proxies, one delivery is watched undisturbed, and then each attack
//! makes its trials. Nothing here prints, reads the environment or exits.

pub mod scenario;
mod world;
mod attacks;
mod judge;
pub mod report;
mod options;
mod error;
mod printable;

pub use attacks::attack::UnknownAttack;
pub use error::Error;
pub use judge::verdict;
pub use options::{Options, Profile, Progress};

use attacks::Tally;
use attacks::session::{Finding, Session};
use judge::pattern::{self, Clues};
use judge::shrink::shrink;
use scenario::Scenario;
use std::time::Duration;
use tokio::time::Instant;
use verdict::{Attack, AttackReport, BreachKind, Broken, Report, Verdict};

/// Attacks the handler of a scenario and reports what broke.
///
/// # Errors
/// When no verdict can be reached: the scenario is wrong, a process does not start, a probe fails.
pub async fn prove(
    scenario: &Scenario,
    options: &Options,
    progress: impl Fn(Progress),
) -> Result<Report, Error> {
    let began = Instant::now();
    progress(Progress::Starting);
    let mut session = Box::pin(Session::enter(scenario, options, &progress)).await?;
    let chosen: Vec<Attack> = attacks::ALL
        .into_iter()
        .filter(|attack| options.only.is_empty() || options.only.contains(attack))
        .collect();
    let mut attacked = Vec::new();
    let mut ended_early = None;
    for (at, attack) in chosen.iter().copied().enumerate() {
        progress(Progress::Began {
            attack,
            number: at + 1,
            of: chosen.len(),
        });
        match make(attack, &mut session).await {
            Ok(one) => {
                progress(Progress::Ended(one.clone()));
                attacked.push(one);
            }
            Err(why) => {
                ended_early = Some(why);
                break;
            }
        }
    }
    if let Err(why) = look_back(&mut attacked, &mut session).await {
        ended_early.get_or_insert(why);
    }
    name_patterns(&mut attacked, &session);
    if let Some(why) = &ended_early {
        let left = chosen.iter().skip(attacked.len());
        attacked.extend(unmade(left, why, &session));
    }
    Ok(Report {
        scenario: scenario.name.clone(),
        promise: scenario.promise,
        seed: options.seed,
        attacks: attacked,
        ended_early: ended_early.map(|why| why.to_string()),
        unseen: unseen(&session),
        took: began.elapsed(),
    })
}

async fn make(attack: Attack, session: &mut Session<'_>) -> Result<AttackReport, Error> {
    let began = Instant::now();
    session.attack(attack, number(attack));
    let mut tally = match Box::pin(attacks::make(attack, session)).await {
        Err(why @ Error::SecondProcess(_)) => Tally::not_run(why.brief()),
        other => other?,
    };
    if tally.broken.is_none() {
        tally.broken = session.look_back(attack).await?;
    }
    Ok(attacked(attack, tally, began.elapsed()))
}

/// The attack that something ended which was no part of it, and those after it. A process that does not come back is a
/// finding: whatever is delivered to it is stuck.
fn unmade<'a>(
    left: impl Iterator<Item = &'a Attack>,
    why: &Error,
    session: &Session<'_>,
) -> Vec<AttackReport> {
    let not_run = || Tally::not_run("the run had ended before");
    let mut unmade: Vec<AttackReport> = left
        .map(|attack| attacked(*attack, not_run(), Duration::ZERO))
        .collect();
    if let Some(first) = unmade.first_mut() {
        first.verdict = match why {
            Error::ProcessRestart { .. } => {
                (first.trials, first.hits) = (1, 1);
                Verdict::Broken(Box::new(Broken {
                    how: BreachKind::Stuck,
                    seen: why.brief(),
                    timeline: session.world.recorder.events(),
                    pattern: None,
                }))
            }
            Error::Scenario(_)
            | Error::ProcessStart { .. }
            | Error::SecondProcess(_)
            | Error::Before(_)
            | Error::Probe { .. }
            | Error::Baseline(_)
            | Error::System { .. } => Verdict::NotRun { why: why.brief() },
        };
    }
    unmade
}

/// What held when it was judged may have come undone since.
async fn look_back(attacked: &mut [AttackReport], session: &mut Session<'_>) -> Result<(), Error> {
    let acquitted =
        |one: &&mut AttackReport| matches!(one.verdict, Verdict::Held | Verdict::Vacuous { .. });
    let acquitted: Vec<&mut AttackReport> = attacked.iter_mut().filter(acquitted).collect();
    if !acquitted.is_empty() {
        session.linger().await;
    }
    for one in acquitted {
        if let Some(broken) = session.look_back(one.attack).await?.and_then(broken) {
            one.verdict = broken;
        }
    }
    Ok(())
}

/// The same whichever attacks were chosen.
fn number(attack: Attack) -> u64 {
    let at = (1..).zip(attacks::ALL).find(|(_, one)| *one == attack);
    at.map_or(0, |(number, _)| number)
}

fn attacked(attack: Attack, tally: Tally, took: Duration) -> AttackReport {
    let (trials, hits) = (tally.trials, tally.hits);
    AttackReport {
        attack,
        verdict: verdict(tally),
        trials,
        hits,
        took,
    }
}

/// What had no probe, and where the proxies are blind.
fn unseen(session: &Session<'_>) -> Vec<String> {
    let effects = session.scenario.effects.iter();
    let names: Vec<_> = effects.map(|it| format!("`{}`", it.name)).collect();
    let mut unseen = vec![format!(
        "what the handler does besides {}: an effect without a probe is invisible",
        names.join(", ")
    )];
    for (at, endpoint) in session.world.endpoints.iter().enumerate() {
        let env = &endpoint.env;
        let spoken_to = session
            .baseline
            .exchanges
            .iter()
            .any(|exchange| exchange.boundary.signature.dependency == at);
        if endpoint.encrypted {
            unseen.push(format!(
                "{env} is encrypted: its connections are neither seen nor held"
            ));
        } else if !spoken_to {
            unseen.push(format!(
                "{env}: nothing was said to it while a delivery was handled"
            ));
        } else if endpoint.protocol == world::protocol::Protocol::Other {
            unseen.push(format!(
                "{env} speaks a language that cannot be read: only sizes are seen"
            ));
        }
    }
    unseen
}

/// Only now is it known which attacks held and which did not.
fn name_patterns(attacked: &mut [AttackReport], session: &Session<'_>) {
    let broken = attacked.iter().filter_map(|one| match &one.verdict {
        Verdict::Broken(broken) => Some((one.attack, broken.how, broken.timeline.clone())),
        Verdict::Held | Verdict::Vacuous { .. } | Verdict::NotRun { .. } => None,
    });
    let held = attacked.iter();
    let held = held.filter(|one| matches!(one.verdict, Verdict::Held));
    let clues = Clues {
        held: held.map(|one| one.attack).collect(),
        broken: broken.collect(),
        baseline: session.baseline.says(),
        writes_after_answer: session.baseline.writes_after_answer(),
        writes_vary: session.writes_vary,
    };
    for one in attacked {
        if let Verdict::Broken(broken) = &mut one.verdict {
            broken.pattern = pattern::name(one.attack, &clues);
        }
    }
}

fn broken(finding: Finding) -> Option<Verdict> {
    let (how, seen) = finding.breach?;
    Some(Verdict::Broken(Box::new(Broken {
        how,
        seen,
        timeline: shrink(&finding.events),
        pattern: None,
    })))
}

fn verdict(tally: Tally) -> Verdict {
    if let Some(broken) = tally.broken.and_then(broken) {
        return broken;
    }
    let why = tally
        .why
        .unwrap_or_else(|| "the fault never hit".to_owned());
    match (tally.trials, tally.hits) {
        (0, _) => Verdict::NotRun { why },
        (_, 0) => Verdict::Vacuous { why },
        (_, _) => Verdict::Held,
    }
}
