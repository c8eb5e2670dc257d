//! A process is killed at a random moment of its work.

use super::session::Session;
use super::tally::Tally;
use super::trial::Trial;
use crate::error::Error;
use crate::options::Profile;

/// How many kills must hit, and how many are tried at most.
const QUICK: (u32, u32) = (1, 6);
const FULL: (u32, u32) = (12, 24);

pub(super) async fn run(session: &mut Session<'_>) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let (hits, trials) = match session.options.profile {
        Profile::Quick => QUICK,
        Profile::Full => FULL,
    };
    while tally.hits < hits && tally.trials < trials && !one(session, &mut tally).await? {}
    Ok(tally.unless_hit("the handler was always done before it was killed"))
}

async fn one(session: &mut Session<'_>, tally: &mut Tally) -> Result<bool, Error> {
    let trial = Trial::begin(session).await?;
    let victims = trial.session.world.attackable();
    let victim = trial.session.random_index(victims.len());
    let victim = victims.get(victim).copied().unwrap_or_default();
    // Earlier after each miss: the baseline run may have been a slow one.
    let misses = tally.trials - tally.hits;
    let (answered, ended) = (
        trial.session.baseline.answered,
        trial.session.baseline.ended,
    );
    let moment = trial.session.random(ended / (1 << misses));
    let first = trial.spawn(trial.target());
    tokio::time::sleep(moment).await;
    let hit = !first.is_finished() || ended > answered;
    trial.session.world.kill(victim);
    let results: Vec<_> = first.await.into_iter().collect();
    trial.conclude(&results, hit, tally).await
}
