//! A process is killed at a random moment of its work.

use super::{Tally, no_process};
use crate::attacks::session::Field;
use crate::error::Error;
use crate::options::Profile;
use crate::world::sender::Fate;
use rand::Rng;

/// How many kills must hit, and how many are tried at most.
const QUICK: (u32, u32) = (1, 6);
const FULL: (u32, u32) = (12, 24);

pub(super) async fn make(field: &mut Field<'_>) -> Result<Tally, Error> {
    if let Some(why) = no_process(field) {
        return Ok(Tally::not_run(why));
    }
    let mut tally = Tally::default();
    let (hits, trials) = match field.profile {
        Profile::Quick => QUICK,
        Profile::Full => FULL,
    };
    while tally.hits < hits && tally.trials < trials && !one(field, &mut tally).await? {}
    if tally.hits == 0 {
        tally.why = Some("the handler was always done before it was killed".to_owned());
    }
    Ok(tally)
}

async fn one(field: &mut Field<'_>, tally: &mut Tally) -> Result<bool, Error> {
    let delivery = field.begin().await?;
    let victims = field.world.attackable();
    let victim = victims
        .get(field.rng.random_range(0..victims.len()))
        .copied()
        .unwrap_or_default();
    // Earlier after each miss: the clean run may have been a slow one.
    let misses = tally.trials - tally.hits;
    let moment = field.random(field.clean.ended / (1 << misses));
    let first = field.courier.spawn(&delivery, field.target(), Fate::Heard);
    tokio::time::sleep(moment).await;
    let hit = !first.is_finished() || field.clean.ended > field.clean.answered;
    field.world.kill(victim).await?;
    let known: Vec<_> = first.await.into_iter().collect();
    field.until_settled(&delivery, &known).await?;
    let finding = field.finish(&[&delivery]).await?;
    Ok(tally.add(finding, hit))
}
