//! A storm: many equal requests of API clients at once, each repeated until it hears an end.

use super::sender::TaskSender;
use crate::crash::{SenderAnswer, payload};
use crate::harness::WorkId;
use semel::Outcome;
use semel_rig::http::{Answer, Request};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How long an answer may take before a client gives up on it.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// How long a client asks for an end.
const ASK_FOR: Duration = Duration::from_secs(180);

/// The pause before a client asks again.
const AGAIN_MS: std::ops::Range<u64> = 20..250;

/// Of so many clients each waits longer before it asks again.
const PAUSE_OF_EACH: Duration = Duration::from_micros(700);

/// What one client heard in the end.
#[derive(Clone, Debug)]
pub(super) struct ClientAnswer {
    pub(super) work: WorkId,
    pub(super) end: SenderAnswer,
}

/// Asks for a piece of work from many clients at once, at all gates.
pub(super) async fn storm(
    sender: &TaskSender,
    work: WorkId,
    clients: usize,
) -> anyhow::Result<Vec<ClientAnswer>> {
    let mut asking = JoinSet::new();
    for client in 0..clients {
        let sender = sender.clone();
        asking.spawn(async move { ask(&sender, work, client, clients).await });
    }
    let mut heard = Vec::with_capacity(clients);
    while let Some(end) = asking.join_next().await {
        heard.push(ClientAnswer { work, end: end?? });
    }
    Ok(heard)
}

async fn ask(
    sender: &TaskSender,
    work: WorkId,
    client: usize,
    clients: usize,
) -> anyhow::Result<SenderAnswer> {
    let until = Instant::now() + ASK_FOR;
    let pause = PAUSE_OF_EACH * u32::try_from(clients)?;
    let request = Request::post_json("/work", payload(work)).within(ANSWER_WITHIN);
    let mut turn = client;
    while Instant::now() < until {
        let gate = sender.gates.get(turn % sender.gates.len());
        let port = gate.copied().unwrap_or_default();
        turn += 1;
        let answer = sender.ask(&request, port).await;
        if let Some(end) = answer.as_ref().and_then(end) {
            return Ok(end);
        }
        sleep(Duration::from_millis(rand::random_range(AGAIN_MS)) + pause).await;
    }
    Ok(SenderAnswer::Again(
        "no end, however often it was asked for".into(),
    ))
}

/// What an answer means to a client; `None`: ask again.
fn end(answer: &Answer) -> Option<SenderAnswer> {
    if answer.header("semel-recorded").is_some() {
        return None;
    }
    match answer.status {
        409 if answer.body.contains("parked") => Some(SenderAnswer::Parked),
        409 | 429 | 500..600 => None,
        status @ (200 | 422) if answer.header("content-type").is_none() => {
            let outcome = Outcome::new(status, answer.body.clone());
            let outcome = hex::encode(outcome.encode());
            Some(SenderAnswer::Settled(status == 200, outcome))
        }
        status => Some(SenderAnswer::Wrong(format!("{status}: {}", answer.body))),
    }
}
