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
pub mod certify;
mod options;
mod error;
mod printable;
mod propose;

pub use attacks::attack::{Attack, UnknownAttack};
pub use error::{Error, NotReady};
pub use judge::timeline::{Event, What};
pub use judge::verdict::{BreachKind, Broken, Pattern, Verdict};
pub use options::{Options, Profile, Progress};
pub use propose::{Proposal, propose};

use attacks::session::Session;
use attacks::tally::Tally;
use attacks::trial::Finding;
use report::{AttackReport, Report};
use scenario::Scenario;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// What a function in a table returns that has to wait.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

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
    let scenario = &scenario.with_gate(options)?;
    let mut session = Box::pin(Session::start(scenario, options, &progress)).await?;
    let chosen = |attack: &Attack| options.only.is_empty() || options.only.contains(attack);
    let chosen: Vec<Attack> = Attack::ALL.into_iter().filter(chosen).collect();
    let mut attacks = Vec::new();
    let mut ended_early = run_all(&chosen, &mut session, &mut attacks, &progress)
        .await
        .err();
    if let Err(why) = look_back(&mut attacks, &mut session).await {
        ended_early.get_or_insert(why);
    }
    judge::pattern::name_all(&mut attacks, &session.baseline, scenario);
    if let Some(why) = &ended_early {
        let left = chosen.iter().skip(attacks.len());
        attacks.extend(not_made(left, why, &session));
    }
    Ok(Report {
        scenario: scenario.name.clone(),
        promise: scenario.promise,
        accepted: scenario.accept.clone(),
        profile: options.profile,
        seed: options.seed,
        attacks,
        ended_early: ended_early.map(|why| why.to_string()),
        unprobed: report::unprobed(scenario, &session.world.endpoints, &session.baseline),
        unseen: report::unseen(scenario, &session.world.endpoints, &session.baseline),
        took: began.elapsed(),
    })
}

/// Makes one attack after the other, until something fails that is not part of any.
async fn run_all(
    chosen: &[Attack],
    session: &mut Session<'_>,
    made: &mut Vec<AttackReport>,
    progress: &impl Fn(Progress),
) -> Result<(), Error> {
    for (number, attack) in (1..).zip(chosen.iter().copied()) {
        let of = chosen.len();
        progress(Progress::Began { attack, number, of });
        let began = Instant::now();
        let tally = attacks::run(attack, session).await?;
        let one = AttackReport::new(attack, tally, began.elapsed());
        progress(Progress::Ended(one.clone()));
        made.push(one);
    }
    Ok(())
}

/// What held when it was judged may have come undone since.
async fn look_back(made: &mut [AttackReport], session: &mut Session<'_>) -> Result<(), Error> {
    let acquitted = made
        .iter_mut()
        .filter(|one| matches!(one.verdict, Verdict::Held | Verdict::Vacuous { .. }));
    let acquitted: Vec<&mut AttackReport> = acquitted.collect();
    if !acquitted.is_empty() {
        session.linger().await;
    }
    for one in acquitted {
        let late = session.look_back(one.attack).await?;
        if let Some(broken) = late.and_then(Finding::broken) {
            one.verdict = broken;
        }
    }
    Ok(())
}

/// The attack that something ended which was not part of it, and those after it. A process that does not come back is a
/// finding: whatever is delivered to it is stuck.
fn not_made<'a>(
    left: impl Iterator<Item = &'a Attack>,
    why: &Error,
    session: &Session<'_>,
) -> Vec<AttackReport> {
    let not_run = || Tally::not_run("the run had ended before");
    let mut left: Vec<AttackReport> = left
        .map(|attack| AttackReport::new(*attack, not_run(), Duration::ZERO))
        .collect();
    if let Some(first) = left.first_mut() {
        first.verdict = Verdict::NotRun { why: why.brief() };
        if matches!(why, Error::ProcessRestart(_)) {
            (first.trials, first.hits) = (1, 1);
            first.verdict = Verdict::Broken(Box::new(Broken {
                how: BreachKind::Stuck,
                seen: why.brief(),
                timeline: session.world.recorder.events(),
                pattern: None,
            }));
        }
    }
    left
}
