//! Two deliveries of one entity arrive in the wrong order, and then both again.

use super::session::Session;
use super::tally::Tally;
use super::trial::Trial;
use crate::error::Error;
use crate::scenario::Deliver;

pub(super) async fn run(session: &mut Session<'_>) -> Result<Tally, Error> {
    if let Some(why) = unrelated(&session.scenario.deliver) {
        return Ok(Tally::not_run(why));
    }
    let mut trial = Trial::begin(session).await?;
    trial.add_related().await?;
    trial.until_accepted().await?;
    trial.switch();
    trial.until_accepted().await?;
    for _ in 0..2 {
        trial.switch();
        trial.again(trial.target()).await?;
    }
    Ok(Tally::single(trial.finish().await?, true))
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
    let mut said = said.into_iter().flatten().chain(deliver.headers.values());
    let named = said.any(|text| text.contains("{entity}"));
    (!named)
        .then_some("nothing that is delivered names an {entity} that two deliveries could be about")
}
