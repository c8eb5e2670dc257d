//! Deliveries that are not what they should be: another payload under a known key, and no proper key at all.

use super::session::Session;
use super::tally::Tally;
use super::trial::Trial;
use crate::error::Error;
use crate::scenario::{Deliver, SenderKind};
use crate::world::sender::{AnswerFate, AttemptResult, Payload};

pub(super) async fn other(session: &mut Session<'_>) -> Result<Tally, Error> {
    let deliver = &session.scenario.deliver;
    if let Some(why) = cannot_send(deliver, deliver.other_body.as_ref(), "other") {
        return Ok(Tally::not_run(why));
    }
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    let mut trial = trial.with_payload(Payload::Other);
    trial.insist().await?;
    Ok(Tally::single(trial.finish().await?, true))
}

pub(super) async fn bad(session: &mut Session<'_>) -> Result<Tally, Error> {
    let deliver = &session.scenario.deliver;
    if let Some(why) = cannot_send(deliver, deliver.bad_body.as_ref(), "bad") {
        return Ok(Tally::not_run(why));
    }
    // The key of a client is not part of its body.
    let keyless = (deliver.sender == SenderKind::Http).then_some(Payload::Keyless);
    let mut tally = Tally::default();
    for payload in [Payload::Bad].into_iter().chain(keyless) {
        if one(session, &mut tally, payload).await? {
            break;
        }
    }
    Ok(tally)
}

/// Until it is accepted, and then once more.
async fn one(
    session: &mut Session<'_>,
    tally: &mut Tally,
    payload: Payload,
) -> Result<bool, Error> {
    let before = session.unnamed_effects().await?;
    let mut trial = Trial::begin(session).await?.with_payload(payload);
    if trial.insist().await? == AttemptResult::Accepted {
        trial.send(trial.target(), AnswerFate::Received).await;
    }
    let finding = trial.finish().await?;
    let finding = session.count_unnamed(finding, &before).await?;
    Ok(tally.add(finding, true))
}

/// Why a payload of another kind cannot be delivered, if so.
fn cannot_send(deliver: &Deliver, body: Option<&String>, kind: &str) -> Option<String> {
    if body.is_none() {
        return Some(format!(
            "deliver.{kind}_body does not say what {kind} payload to send"
        ));
    }
    let command = deliver.command.as_ref();
    let without = command.is_some_and(|command| !command.contains("{body}"));
    without.then(|| format!("deliver.command has no {{body}}: deliver.{kind}_body cannot be sent"))
}
