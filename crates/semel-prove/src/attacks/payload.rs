//! Deliveries that are not what they should be: another payload under a known key, and no proper key at all.

use super::Tally;
use crate::attacks::session::Session;
use crate::error::Error;
use crate::scenario::{Deliver, SenderKind};
use crate::world::sender::{AnswerFate, AttemptResult, Payload};

pub(super) async fn other(session: &mut Session<'_>) -> Result<Tally, Error> {
    let deliver = &session.scenario.deliver;
    if let Some(why) = cannot_say(deliver, deliver.other_body.as_ref(), "other") {
        return Ok(Tally::not_run(why));
    }
    let mut tally = Tally::default();
    let delivery = session.begin().await?;
    session.until_accepted(&delivery).await?;
    let other = delivery.with(Payload::Other);
    session.insist(&other).await?;
    let finding = session.finish(&[&other]).await?;
    tally.add(finding, true);
    Ok(tally)
}

pub(super) async fn bad(session: &mut Session<'_>) -> Result<Tally, Error> {
    let deliver = &session.scenario.deliver;
    if let Some(why) = cannot_say(deliver, deliver.bad_body.as_ref(), "bad") {
        return Ok(Tally::not_run(why));
    }
    let mut tally = Tally::default();
    let keys: &[Payload] = match deliver.sender {
        // Its key is no part of its body.
        SenderKind::Http => &[Payload::Bad, Payload::Keyless],
        SenderKind::CloudTasks
        | SenderKind::Pubsub
        | SenderKind::Cloudevents
        | SenderKind::Command => &[Payload::Bad],
    };
    for payload in keys {
        if one(session, &mut tally, *payload).await? {
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
    let before = session.unnamed().await?;
    let delivery = session.begin().await?.with(payload);
    if session.insist(&delivery).await? == AttemptResult::Accepted {
        session
            .sender
            .send(&delivery, session.target(), AnswerFate::Received)
            .await;
    }
    let finding = session.finish(&[&delivery]).await?;
    let finding = session.count_unnamed(finding, &before).await?;
    Ok(tally.add(finding, true))
}

/// Why a payload of another kind cannot be delivered, if so.
fn cannot_say(deliver: &Deliver, body: Option<&String>, kind: &str) -> Option<String> {
    if body.is_none() {
        return Some(format!(
            "deliver.{kind}_body does not say what {kind} payload to send"
        ));
    }
    let command = deliver.command.as_ref();
    let without = command.is_some_and(|command| !command.contains("{body}"));
    without.then(|| format!("deliver.command has no {{body}}: deliver.{kind}_body cannot be sent"))
}
