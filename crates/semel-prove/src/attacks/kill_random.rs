//! A process is killed at a random moment of its work.

use super::{Error, Session, Trial};
use crate::report::Coverage;

/// How many kills must hit, and how many are tried at most.
const QUICK: (u32, u32) = (1, 6);
const FULL: (u32, u32) = (12, 24);

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let (hits, trials) = session.options.profile.pick(QUICK, FULL);
    let goes_on = |session: &Session<'_>| {
        let tally = &session.round.tally;
        tally.hits < hits && tally.trials < trials
    };
    while goes_on(session) && !one(session).await? {}
    let tally = &mut session.round.tally;
    tally.coverage = Some(Coverage {
        tried: tally.hits,
        of: tally.trials,
        what: "kills at drawn times hit",
    });
    session.unless_hit("the handler was always done before it was killed");
    Ok(())
}

async fn one(session: &mut Session<'_>) -> Result<bool, Error> {
    // Earlier after each miss: the baseline run may have been a slow one.
    let misses = session.round.tally.trials - session.round.tally.hits;
    let trial = Trial::begin(session).await?;
    let victims = trial.session.world.attackable();
    let victim = trial.session.random_index(victims.len());
    let victim = victims.get(victim).copied().unwrap_or_default();
    let baseline = &trial.session.baseline;
    let (answered, ended) = (baseline.answered, baseline.ended);
    let moment = trial.session.random(ended / (1 << misses));
    let first = trial.spawn(trial.target());
    tokio::time::sleep(moment).await;
    let hit = !first.is_finished() || ended > answered;
    trial.session.world.kill(victim);
    let results: Vec<_> = first.await.into_iter().collect();
    trial.conclude(&results, hit).await
}
