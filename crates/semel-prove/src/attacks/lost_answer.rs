//! The handler has finished, but its sender does not get to know it.

use super::session::Session;
use super::tally::Tally;
use super::trial::Trial;
use crate::error::Error;
use crate::scenario::SenderKind;
use crate::world::sender::{AnswerFate, AttemptResult};

pub(super) async fn run(session: &mut Session<'_>, fate: AnswerFate) -> Result<Tally, Error> {
    let sender = session.scenario.deliver.sender;
    if fate == AnswerFate::Cut && sender == SenderKind::Command {
        return Ok(Tally::not_run(
            "a command has no connection that could be cut",
        ));
    }
    let mut trial = Trial::begin(session).await?;
    let hit = miss_a_success(&mut trial, fate).await?;
    trial.until_accepted().await?;
    let tally = Tally::single(trial.finish().await?, hit);
    Ok(tally.unless_hit("no answer that could be lost was a success"))
}

/// Delivers until an answer was a success that the sender does not hear of: a refusal that is lost hurts nobody.
async fn miss_a_success(trial: &mut Trial<'_, '_>, fate: AnswerFate) -> Result<bool, Error> {
    let deliver = &trial.session.scenario.deliver;
    for _ in 0..deliver.attempts {
        trial.session.world.restart_ended().await?;
        if trial.send(trial.target(), fate).await == AttemptResult::MissedSuccess {
            return Ok(true);
        }
        tokio::time::sleep(deliver.pause()).await;
    }
    Ok(false)
}
