//! A process is killed at moments that are spread over its work.

use super::trial::exactly;
use super::{Error, Session, Trial};
use crate::report::Coverage;
use crate::world::sender::AttemptResult;

/// How many kills must hit, and how many are tried at most.
const QUICK: (u32, u32) = (1, 6);
/// Where nothing is seen on the wire, these kills are the only ones.
const QUICK_BLIND: (u32, u32) = (10, 20);
const FULL: (u32, u32) = (12, 24);
const FULL_BLIND: (u32, u32) = (40, 80);
/// What is left of the time after a kill that came too late.
const EARLIER: f64 = 0.75;

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let (quick, full) = if session.baseline.exchanges.is_empty() {
        (QUICK_BLIND, FULL_BLIND)
    } else {
        (QUICK, FULL)
    };
    let (hits, trials) = session.options.profile.pick(quick, full);
    let goes_on = |session: &Session<'_>| {
        let tally = &session.round.tally;
        tally.hits < hits && tally.trials < trials
    };
    while goes_on(session) && !one(session, hits).await? {}
    let tally = &mut session.round.tally;
    tally.coverage = Some(Coverage {
        tried: tally.hits,
        of: tally.trials,
        what: "kills at drawn times hit",
    });
    session.unless_hit("the handler was always done before it was killed");
    Ok(())
}

/// Each hit has its own part of the run, and a random moment in it.
async fn one(session: &mut Session<'_>, parts: u32) -> Result<bool, Error> {
    let (trials, hits) = (session.round.tally.trials, session.round.tally.hits);
    // Earlier after each miss: the baseline run may have been a slow one.
    let earlier = EARLIER.powf((trials - hits).into());
    let trial = Trial::begin(session).await?;
    let victims = trial.session.world.attackable();
    let victim = trial.session.random_index(victims.len());
    let victim = victims.get(victim).copied().unwrap_or_default();
    let baseline = &trial.session.baseline;
    let (answered, ended) = (baseline.answered, baseline.ended);
    let part = ended / parts;
    let moment = (part * hits + trial.session.random(part)).mul_f64(earlier);
    let first = trial.spawn(trial.target());
    exactly(moment).await;
    let hit = !first.is_finished() || ended > answered;
    trial.session.world.kill(victim);
    // A sender that is not connected to it waits for the one that is started in its place.
    trial.session.world.restart_ended().await?;
    let results: Vec<AttemptResult> = first.await.into_iter().collect();
    trial.conclude(&results, hit).await
}
