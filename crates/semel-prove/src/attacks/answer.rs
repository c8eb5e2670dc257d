//! The handler has finished, but its sender does not get to know it.

use super::Tally;
use crate::cannot::CannotJudge;
use crate::deliver::Fate;
use crate::field::Field;
use crate::scenario::Sender;

pub(super) async fn lost(field: &mut Field<'_>) -> Result<Tally, CannotJudge> {
    unheard(field, Fate::Lost).await
}

pub(super) async fn cut(field: &mut Field<'_>) -> Result<Tally, CannotJudge> {
    if field.scenario.deliver.sender == Sender::Command {
        return Ok(Tally::not_run(
            "a command has no connection that could be cut",
        ));
    }
    unheard(field, Fate::Cut).await
}

async fn unheard(field: &mut Field<'_>, fate: Fate) -> Result<Tally, CannotJudge> {
    let mut tally = Tally::default();
    let delivery = field.begin().await?;
    field.courier.send(&delivery, field.target(), fate).await;
    field.until_accepted(&delivery).await?;
    let finding = field.finish(&[&delivery]).await?;
    tally.add(finding, true);
    Ok(tally)
}
