//! Deliveries that are not what they should be: another payload under a known key, and no proper key at all.

use super::Tally;
use crate::cannot::CannotJudge;
use crate::deliver::{Fate, Payload};
use crate::field::Field;

pub(super) async fn other(field: &mut Field<'_>) -> Result<Tally, CannotJudge> {
    if field.scenario.deliver.other_body.is_none() {
        return Ok(Tally::not_run(
            "deliver.other_body does not say what other payload to send",
        ));
    }
    let mut tally = Tally::default();
    let delivery = field.begin().await?;
    field.until_accepted(&delivery).await?;
    field.insist(&delivery.with(Payload::Other)).await?;
    let finding = field.finish(&[&delivery]).await?;
    tally.add(finding, true);
    Ok(tally)
}

pub(super) async fn bad(field: &mut Field<'_>) -> Result<Tally, CannotJudge> {
    if field.scenario.deliver.bad_body.is_none() {
        return Ok(Tally::not_run(
            "deliver.bad_body does not say what bad payload to send",
        ));
    }
    let mut tally = Tally::default();
    let delivery = field.begin().await?.with(Payload::Bad);
    field.insist(&delivery).await?;
    field
        .courier
        .send(&delivery, field.target(), Fate::Heard)
        .await;
    let finding = field.finish(&[&delivery]).await?;
    tally.add(finding, true);
    Ok(tally)
}
