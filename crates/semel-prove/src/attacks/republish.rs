//! The same thing is published once more: under a new message id, or with its JSON written by another serialiser.

use super::{Error, Session, Trial};
use crate::judge::verdict::BreachKind;
use crate::scenario::SenderKind;
use crate::world::sender::Payload;
use serde_json::{Map, Value};

/// In which way it comes once more.
#[derive(Clone, Copy, Debug)]
struct Republished {
    is_new_message: bool,
    payload: Payload,
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let ways = ways(session);
    if ways.is_empty() {
        session.explain(
            "a command has no {message} that could be another one, and the body is not a JSON object",
        );
    }
    for way in ways {
        if one(session, way).await? {
            break;
        }
    }
    Ok(())
}

/// What can differ, each for itself, and then all of it.
fn ways(session: &Session<'_>) -> Vec<Republished> {
    let deliver = &session.scenario.deliver;
    let has_messages = deliver.sender != SenderKind::Command || deliver.names("{message}");
    let message = has_messages.then_some(Republished {
        is_new_message: true,
        payload: Payload::Default,
    });
    let is_json = serde_json::from_str::<Map<String, Value>>(&deliver.sample_body()).is_ok();
    let payloads = [Payload::Rewritten, Payload::Decimals].into_iter();
    let rewritten = payloads.filter(|_| is_json).map(|payload| Republished {
        is_new_message: false,
        payload,
    });
    message.into_iter().chain(rewritten).collect()
}

/// Only a second effect is a mistake here: what is published anew may be refused.
async fn one(session: &mut Session<'_>, way: Republished) -> Result<bool, Error> {
    let is_named = session.scenario.deliver.domain_id.is_some();
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    if way.is_new_message {
        trial.delivery.message = format!("{}-anew", trial.delivery.id);
    }
    trial.delivery.payload = way.payload;
    let how = trial.delivery.variant().unwrap_or_default();
    trial.insist().await?;
    let mut finding = trial.finish().await?;
    let twice = |kind| kind == BreachKind::EffectTwice;
    let breach = finding
        .breach
        .take_if(|breach| !twice(breach.kind) || !is_named);
    if breach.is_some_and(|breach| twice(breach.kind)) {
        session.remark(format!(
            "delivered {how}, it takes effect again: is it then the same? If so, name what tells it: deliver.domain_id"
        ));
    }
    Ok(session.round.tally.add(finding, true))
}
