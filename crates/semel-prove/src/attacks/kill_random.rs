//! A process is killed at a random moment of its work.

use super::{Tally, no_process};
use crate::attacks::session::Session;
use crate::error::Error;
use crate::options::Profile;
use rand::Rng;

/// How many kills must hit, and how many are tried at most.
const QUICK: (u32, u32) = (1, 6);
const FULL: (u32, u32) = (12, 24);

pub(super) async fn make(session: &mut Session<'_>) -> Result<Tally, Error> {
    if let Some(why) = no_process(session) {
        return Ok(Tally::not_run(why));
    }
    let mut tally = Tally::default();
    let (hits, trials) = match session.profile {
        Profile::Quick => QUICK,
        Profile::Full => FULL,
    };
    while tally.hits < hits && tally.trials < trials && !one(session, &mut tally).await? {}
    if tally.hits == 0 {
        tally.why = Some("the handler was always done before it was killed".to_owned());
    }
    Ok(tally)
}

async fn one(session: &mut Session<'_>, tally: &mut Tally) -> Result<bool, Error> {
    let delivery = session.begin().await?;
    let victims = session.world.attackable();
    let victim = victims
        .get(session.rng.random_range(0..victims.len()))
        .copied()
        .unwrap_or_default();
    // Earlier after each miss: the baseline run may have been a slow one.
    let misses = tally.trials - tally.hits;
    let moment = session.random(session.baseline.ended / (1 << misses));
    let first = session.sender.spawn(&delivery, session.target());
    tokio::time::sleep(moment).await;
    let hit = !first.is_finished() || session.baseline.ended > session.baseline.answered;
    session.world.kill(victim);
    let known: Vec<_> = first.await.into_iter().collect();
    session.until_settled(&delivery, &known).await?;
    let finding = session.finish(&[&delivery]).await?;
    Ok(tally.add(finding, hit))
}
