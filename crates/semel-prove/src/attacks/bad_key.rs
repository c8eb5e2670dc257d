//! Deliveries without a proper key.

use super::{Error, Session, Trial};
use crate::scenario::SenderKind;
use crate::world::sender::{AnswerFate, AttemptResult, Payload};

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    // The key of a client is not part of its body.
    let is_client = session.scenario.deliver.sender == SenderKind::Http;
    let keyless = is_client.then_some(Payload::Keyless);
    for payload in [Payload::Bad].into_iter().chain(keyless) {
        if one(session, payload).await? {
            break;
        }
    }
    Ok(())
}

/// Until it is accepted, and then once more.
async fn one(session: &mut Session<'_>, payload: Payload) -> Result<bool, Error> {
    let before = session.unnamed_effects().await?;
    let mut trial = Trial::begin(session).await?;
    trial.delivery.payload = payload;
    if trial.insist().await? == AttemptResult::Accepted {
        trial.send(trial.target(), AnswerFate::Received).await;
    }
    let finding = trial.finish().await?;
    let finding = session.count_unnamed(finding, &before).await?;
    Ok(session.round.tally.add(finding, true))
}
