//! The handler has finished, but its sender does not get to know it.

use super::Tally;
use crate::attacks::session::Session;
use crate::error::Error;
use crate::scenario::SenderKind;
use crate::world::sender::{AnswerFate, AttemptResult, Delivery};
use std::time::Duration;

pub(super) async fn lost(session: &mut Session<'_>) -> Result<Tally, Error> {
    pending(session, AnswerFate::Lost).await
}

pub(super) async fn cut(session: &mut Session<'_>) -> Result<Tally, Error> {
    if session.scenario.deliver.sender == SenderKind::Command {
        return Ok(Tally::not_run(
            "a command has no connection that could be cut",
        ));
    }
    pending(session, AnswerFate::Cut).await
}

async fn pending(session: &mut Session<'_>, fate: AnswerFate) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let delivery = session.begin().await?;
    let hit = miss_a_success(session, &delivery, fate).await?;
    session.until_accepted(&delivery).await?;
    let finding = session.finish(&[&delivery]).await?;
    tally.add(finding, hit);
    if !hit {
        tally.why = Some("no answer that could be lost was a success".to_owned());
    }
    Ok(tally)
}

/// Delivers until an answer was a success that the sender does not hear of: a refusal that is lost hurts nobody.
async fn miss_a_success(
    session: &mut Session<'_>,
    delivery: &Delivery,
    fate: AnswerFate,
) -> Result<bool, Error> {
    let deliver = &session.scenario.deliver;
    let pause = Duration::from_millis(deliver.pause_ms);
    for _ in 0..deliver.attempts {
        session.world.restart_ended().await?;
        let known = session.sender.send(delivery, session.target(), fate).await;
        if known == AttemptResult::MissedSuccess {
            return Ok(true);
        }
        tokio::time::sleep(pause).await;
    }
    Ok(false)
}
