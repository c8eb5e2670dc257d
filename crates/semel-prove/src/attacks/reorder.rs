//! Two deliveries of one entity arrive in the wrong order, and then both again.

use super::Tally;
use crate::attacks::session::Session;
use crate::error::Error;
use crate::scenario::Deliver;

pub(super) async fn make(session: &mut Session<'_>) -> Result<Tally, Error> {
    if let Some(why) = unrelated(&session.scenario.deliver) {
        return Ok(Tally::not_run(why));
    }
    let mut tally = Tally::default();
    let early = session.begin().await?;
    let late = session.next_about(Some(&early.entity)).await?;
    session.until_accepted(&late).await?;
    session.until_accepted(&early).await?;
    for again in [&late, &early] {
        session.again(again, session.target()).await?;
    }
    let finding = session.finish(&[&early, &late]).await?;
    tally.add(finding, true);
    Ok(tally)
}

/// Why two deliveries would have nothing to do with each other, if so.
fn unrelated(deliver: &Deliver) -> Option<&'static str> {
    if deliver.recorded.is_some() {
        return Some("what was recorded does not say which deliveries are about the same {entity}");
    }
    let said = [
        Some(&deliver.body),
        deliver.path.as_ref(),
        deliver.command.as_ref(),
    ];
    let said = said.into_iter().flatten().chain(deliver.headers.values());
    let named = said.into_iter().any(|text| text.contains("{entity}"));
    (!named)
        .then_some("nothing that is delivered names an {entity} that two deliveries could be about")
}
