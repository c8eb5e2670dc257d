//! What a service honours of the `Idempotency-Key` contract (draft-ietf-httpapi-idempotency-key-header), seen from
//! outside: nothing is started, killed or probed, so it works for a service that one does not own.
//!
//! Requests are real. A rule counts as honoured only where the answers can show it.

mod judge;

use bytes::Bytes;
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;

/// What is sent, and how often at once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The payload; `{id}` is new for each piece of work.
    pub body: String,
    /// Another payload; unless given, the same with another `{id}`.
    pub other_body: Option<String>,
    /// Whether requests can be made as another caller.
    pub other_caller: bool,
    /// How many requests under one key are sent at once.
    pub at_once: usize,
    /// What keys and ids of this run begin with: new for every run.
    pub id_prefix: String,
}

/// One request, less what is the same for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What `Idempotency-Key` says; none: the header is left out.
    pub key: Option<String>,
    /// The payload.
    pub body: String,
    /// Who asks.
    pub caller: Caller,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The one whose credentials were given.
    First,
    /// Another one, with others.
    Other,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header that marks a replay, as `idempotent-replayed: true`.
    pub replay_header: Option<String>,
    /// The whole body.
    pub body: Bytes,
}

/// Sends one request. An error says why there was no answer.
pub type Transport =
    Arc<dyn Fn(Ask) -> Pin<Box<dyn Future<Output = Result<Answer, String>> + Send>> + Send + Sync>;

/// What a service honours, rule by rule.
#[derive(Clone, Debug, Serialize)]
pub struct Certificate {
    /// In the order in which they were tried.
    pub rules: Vec<Rule>,
}

/// One rule of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Its name, as `same-answer`.
    pub name: &'static str,
    /// What it demands.
    pub demands: &'static str,
    /// Whether the service honours it.
    pub honours: Honours,
    /// What was seen.
    pub seen: String,
}

/// Whether a rule is honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Honours {
    /// Yes, as the draft says it.
    Yes,
    /// In another way than the draft says, or only where the client asks for it.
    Partly,
    /// No.
    No,
    /// The answers cannot show it.
    CannotTell,
    /// Something that it needs was not given.
    NotRun,
}

// === impl Certificate ===

impl Certificate {
    /// The exit code of the command: 0 nothing was broken, 1 a rule is not honoured, 2 the first rule cannot be told.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let any = |honours| self.rules.iter().any(|rule| rule.honours == honours);
        if any(Honours::No) {
            return 1;
        }
        let told = self
            .rules
            .first()
            .is_some_and(|rule| rule.honours == Honours::Yes);
        if told { 0 } else { 2 }
    }
}

/// Asks a service, and says what it honours.
///
/// # Errors
/// When the first request, with a new key, is not a success: then nothing can be judged.
pub async fn certify(settings: &Settings, send: &Transport) -> Result<Certificate, String> {
    let id = |number: u32| format!("{}{number}", settings.id_prefix);
    let ask = |key: u32, work: u32| Ask {
        key: Some(format!("key-{}", id(key))),
        body: settings.body.replace("{id}", &id(work)),
        caller: Caller::First,
    };
    let first = send(ask(1, 1)).await?;
    if !is_success(&first) {
        let status = first.status;
        return Err(format!(
            "the first request, under a new key, was answered {status}: a request that succeeds is needed"
        ));
    }
    let again = send(ask(1, 1)).await;
    let fresh = send(ask(2, 1)).await;
    let seen = judge::Seen {
        tells: fresh.is_ok_and(|fresh| !same(&fresh, &first)),
        marks: again
            .as_ref()
            .is_ok_and(|again| again.replay_header.is_some() && first.replay_header.is_none()),
        first,
    };
    let mut rules = vec![seen.same_answer(&again), seen.replay_marked(&again)];
    let other = other_body(settings, &id(3)).map(|body| Ask { body, ..ask(1, 1) });
    rules.push(judge::other_payload(match other {
        Some(other) => Some(send(other).await),
        None => None,
    }));
    let at_once = vec![ask(4, 4); settings.at_once];
    rules.push(seen.concurrent(&send_at_once(at_once, send).await));
    let caller = Caller::Other;
    rules.push(seen.per_caller(if settings.other_caller {
        Some(
            send(Ask {
                caller,
                ..ask(1, 1)
            })
            .await,
        )
    } else {
        None
    }));
    let keyless = Ask {
        key: None,
        ..ask(5, 5)
    };
    rules.push(judge::key_missing(&send(keyless).await));
    Ok(Certificate { rules })
}

async fn send_at_once(asks: Vec<Ask>, send: &Transport) -> Vec<Result<Answer, String>> {
    let sent: Vec<_> = asks
        .into_iter()
        .map(|ask| tokio::spawn(send(ask)))
        .collect();
    let mut answers = Vec::new();
    for one in sent {
        let answer = one.await.map_err(|why| why.to_string());
        answers.push(answer.and_then(|answer| answer));
    }
    answers
}

/// Another payload under the same key, if there is one to be had.
fn other_body(settings: &Settings, id: &str) -> Option<String> {
    match &settings.other_body {
        Some(body) => Some(body.replace("{id}", id)),
        None => settings
            .body
            .contains("{id}")
            .then(|| settings.body.replace("{id}", id)),
    }
}

fn is_success(answer: &Answer) -> bool {
    (200..300).contains(&answer.status)
}

fn same(one: &Answer, other: &Answer) -> bool {
    one.status == other.status && one.body == other.body
}

#[cfg(test)]
mod tests;
