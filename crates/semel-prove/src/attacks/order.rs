//! Two deliveries of one entity arrive in the wrong order, and then both again.

use super::Tally;
use crate::cannot::CannotJudge;
use crate::deliver::Fate;
use crate::field::Field;

pub(super) async fn make(field: &mut Field<'_>) -> Result<Tally, CannotJudge> {
    let mut tally = Tally::default();
    let early = field.begin().await?;
    let late = field.next_about(Some(&early.entity)).await?;
    field.until_accepted(&late).await?;
    field.until_accepted(&early).await?;
    for again in [&late, &early] {
        field.courier.send(again, field.target(), Fate::Heard).await;
    }
    let finding = field.finish(&[&early, &late]).await?;
    tally.add(finding, true);
    Ok(tally)
}
