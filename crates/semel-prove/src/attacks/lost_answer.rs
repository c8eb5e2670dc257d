//! The handler has finished, but its sender does not get to know it.

use super::Tally;
use crate::attacks::session::Field;
use crate::error::Error;
use crate::scenario::Sender;
use crate::world::sender::{Delivery, Fate, Known};
use std::time::Duration;

pub(super) async fn lost(field: &mut Field<'_>) -> Result<Tally, Error> {
    unheard(field, Fate::Lost).await
}

pub(super) async fn cut(field: &mut Field<'_>) -> Result<Tally, Error> {
    if field.scenario.deliver.sender == Sender::Command {
        return Ok(Tally::not_run(
            "a command has no connection that could be cut",
        ));
    }
    unheard(field, Fate::Cut).await
}

async fn unheard(field: &mut Field<'_>, fate: Fate) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let delivery = field.begin().await?;
    let hit = miss_a_success(field, &delivery, fate).await?;
    field.until_accepted(&delivery).await?;
    let finding = field.finish(&[&delivery]).await?;
    tally.add(finding, hit);
    if !hit {
        tally.why = Some("no answer that could be lost was a success".to_owned());
    }
    Ok(tally)
}

/// Delivers until an answer was a success that the sender does not hear of: a refusal that is lost hurts nobody.
async fn miss_a_success(
    field: &mut Field<'_>,
    delivery: &Delivery,
    fate: Fate,
) -> Result<bool, Error> {
    let deliver = &field.scenario.deliver;
    let pause = Duration::from_millis(deliver.pause_ms);
    for _ in 0..deliver.attempts {
        field.world.mend().await?;
        let known = field.courier.send(delivery, field.target(), fate).await;
        if known == Known::Missed {
            return Ok(true);
        }
        tokio::time::sleep(pause).await;
    }
    Ok(false)
}
