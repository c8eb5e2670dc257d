//! Records: looking at them, and what an operator may do to one.

use super::history::{history_json, steps_json};
use super::{BODY_HIDDEN, Operator, Refused, VOID, body, cursor, moment, set};
use crate::audit::AuditedAct;
use crate::hiding::shown_value;
use crate::label::Label;
use crate::letters::status;
use crate::reply::problem::Problem;
use http::StatusCode;
use jiff::Timestamp;
use semel::clock::Time;
use semel::outcome::Body;
use semel::protocol::{Acted, Fence, Finding, Record, Resolution, State};
use semel::store::{Cursor, Sharing, StoreExt};
use semel::{Error, Key, Outcome};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

/// What an operator found out about parked work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It took effect.
    Succeeded,
    /// It did not and shall not.
    Failed,
    /// It did not: the next delivery runs it.
    Retry,
}

/// What an act was, what it makes of a record, and which states it is for.
struct OperatorAct {
    word: &'static str,
    after: &'static str,
    is_for: Cow<'static, str>,
    /// Whether the work may take effect once more by it.
    voids: bool,
}

const RELEASE: OperatorAct = OperatorAct {
    word: "release",
    after: "waiting",
    is_for: Cow::Borrowed("running or waiting"),
    voids: true,
};

const FORGET: OperatorAct = OperatorAct {
    word: "forget",
    after: "absent",
    is_for: Cow::Borrowed("not running"),
    voids: true,
};

// === impl Operator ===

impl Operator {
    /// A page of records.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn records(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Value, Refused> {
        let page = self.store().list(state, after, limit).await?;
        let records: Vec<_> = page.items.iter().map(|(key, r)| head(key, r)).collect();
        Ok(json!({"records": records, "next": cursor(page.next.as_ref())}))
    }

    /// One record with its outcome, its history and its steps; the outcome's body only on request.
    ///
    /// # Errors
    /// When there is none, or those of the store.
    pub async fn record(&self, key: &Key, with_body: bool) -> Result<Value, Refused> {
        let record = self.store().look(key).await?.ok_or_else(no_record)?;
        let mut told = head(key, &record);
        let outcome = match &record.result {
            None => Value::Null,
            Some(result) => match Outcome::decode(result) {
                Ok(outcome) => self.outcome_json(&record, &outcome, with_body),
                // Whoever looks must see the rest of a damaged record, too.
                Err(error) => json!({"error": error.to_string()}),
            },
        };
        set(
            &mut told,
            "fingerprint",
            record.fingerprint.to_string().into(),
        );
        set(&mut told, "label", label_json(&record.label));
        set(&mut told, "outcome", outcome);
        set(&mut told, "history", history_json(&record));
        let steps = self.store().steps(key).await?;
        set(&mut told, "steps", steps_json(&steps));
        Ok(told)
    }

    fn outcome_json(&self, record: &Record, outcome: &Outcome, with_body: bool) -> Value {
        let route = || Label::read(&record.label).map_or_else(String::new, |label| label.route);
        let shows = self.sees_bodies(&route());
        let mut told = outcome_json(outcome, shows, with_body && shows);
        if with_body && !shows {
            set(&mut told, "body_hidden", BODY_HIDDEN.into());
        }
        told
    }

    /// Takes the right to run from whoever has it.
    ///
    /// # Errors
    /// When the record is in no state for it, or those of the store.
    pub async fn release(&self, key: &Key) -> Result<Value, Refused> {
        let before = self.state(key).await?;
        let acted = self.semel.release(key, self.who().of("release")).await;
        self.told(
            key,
            &RELEASE,
            before,
            acted,
            "its run, if there is one, is stale: it can record nothing any more, but is not stopped; \
             the next delivery runs it",
        )
    }

    /// Ends the incarnation of a key.
    ///
    /// # Errors
    /// When it is running, there is none, or those of the store.
    pub async fn forget(&self, key: &Key) -> Result<Value, Refused> {
        let before = self.state(key).await?;
        let acted = self.semel.forget(key).await;
        // Whatever came of it: what was to be forgotten is not shown any more.
        if let Some(gate) = self.gate() {
            gate.recent.forget(key);
            gate.rates.forget(key);
        }
        let cache_ms = match self.store().sharing() {
            Sharing::OneProcess => 0,
            Sharing::Shared => self.elsewhere.as_millis(),
        };
        let says = if cache_ms == 0 {
            "the next delivery of this key runs".to_owned()
        } else {
            format!(
                "the next delivery of this key runs; another gate may replay the forgotten answer for up to \
                 {cache_ms} ms (its `cache_ms`)"
            )
        };
        self.told(key, &FORGET, before, acted, &says)
    }

    /// Says what became of a parked run; with a fence, of that very run, whether it is parked or its
    /// lease has lapsed.
    ///
    /// # Errors
    /// When there is no such run, or those of the store.
    pub async fn resolve(
        &self,
        key: &Key,
        verdict: Verdict,
        fence: Option<Fence>,
    ) -> Result<Value, Refused> {
        let before = self.state(key).await?;
        let how = Resolution {
            finding: verdict.finding(),
            fence,
        };
        let acted = self
            .semel
            .resolve(key, &how, self.who().of("resolve"))
            .await;
        let act = OperatorAct {
            word: "resolve",
            after: verdict.state().word(),
            is_for: fence.map_or(Cow::Borrowed("parked"), |fence| {
                let is_for = "parked, or running with a lapsed lease, under the fence";
                Cow::Owned(format!("{is_for} {fence}"))
            }),
            voids: verdict == Verdict::Retry,
        };
        let mut says = verdict.says();
        if let (Ok(Acted::Applied), Verdict::Succeeded) = (&acted, verdict)
            && let Err(error) = self.close_succeeded_letters(key).await
        {
            tracing::warn!(%key, %error, "letters of resolved work not closed; they are closed when they are listed");
            says = "duplicates receive 200; its letters were not reached: `semel letters list` closes them";
        }
        self.told(key, &act, before, acted, says)
    }

    /// Closes them by the act: after a short retention, nothing would tell any more that their work has succeeded.
    async fn close_succeeded_letters(&self, key: &Key) -> Result<(), Error> {
        for head in self.all_letters_of(key).await? {
            status::see(self.letter_store(), &head).await?;
        }
        Ok(())
    }

    /// The state before an act, for the audit line alone: the store judges by itself.
    pub(crate) async fn state(&self, key: &Key) -> Result<Option<State>, Refused> {
        Ok(self.store().look(key).await?.map(|record| record.state))
    }

    /// Writes the audit line of an act, and tells what came of it.
    fn told(
        &self,
        key: &Key,
        act: &OperatorAct,
        before: Option<State>,
        acted: Result<Acted, Error>,
        says: &str,
    ) -> Result<Value, Refused> {
        let before = before.map_or("absent", State::word);
        // An act whose outcome is unknown may have been done.
        let may_void = act.voids && matches!(acted, Ok(Acted::Applied) | Err(_));
        let promise = may_void.then_some(VOID);
        let (after, told) = match acted {
            Ok(Acted::Applied) => {
                let mut done = json!({
                    "act": act.word, "key": key.to_string(), "before": before, "after": act.after, "says": says,
                });
                if let Some(promise) = promise {
                    set(&mut done, "promise", promise.into());
                }
                (act.after, Ok(done))
            }
            Ok(Acted::Refused) => {
                let live = "it is running under a live lease";
                let what = "wait for its end, or release it first (`semel records release`)";
                ("unchanged", Err(Refused::conflict(live, what)))
            }
            Ok(Acted::Gone(None)) => ("unchanged", Err(no_record())),
            Ok(Acted::Gone(Some(state))) => {
                let error = format!(
                    "the record is {state}, and {} is for records that are {}",
                    act.word, act.is_for
                );
                let what = "nothing was changed; look at it again (`semel records show`)";
                (
                    "unchanged",
                    Err(Refused::conflict(error, what).with("state", state.word())),
                )
            }
            Err(error) => ("unknown", Err(error.into())),
        };
        self.audit().note(AuditedAct {
            key: Some(*key),
            before: before.into(),
            after: after.into(),
            promise: promise.map(Into::into),
            ..AuditedAct::new(act.word, self.who())
        });
        told
    }
}

fn no_record() -> Refused {
    Refused::absent(
        "no record of this key: it is absent or expired",
        "compare the key with the log line of its delivery; `semel records list` shows what is there",
    )
}

/// The time of this machine: stores' clocks are near it.
#[allow(
    clippy::disallowed_methods,
    reason = "a person looks at leases, which are seconds long"
)]
fn now() -> Time {
    let now = u64::try_from(Timestamp::now().as_microsecond());
    Time(now.unwrap_or_default())
}

/// A record without its outcome. Never its owner: that is an authority.
fn head(key: &Key, record: &Record) -> Value {
    let expires_at = match record.state {
        State::Parked => Value::Null,
        State::Running | State::Succeeded | State::Failed | State::Waiting => {
            moment(record.expires_at)
        }
    };
    json!({
        "key": key.to_string(),
        "state": record.state.word(),
        "attempts": record.attempts,
        "doubts": record.doubts,
        "in_doubt": record.in_doubt && record.state.ending().is_none(),
        "acts_until": record.acts_until.map(moment),
        "fence": record.fence.0,
        "born": record.born.0,
        "lease_until": moment(record.lease_until),
        "lease_expired": record.state == State::Running && record.lease_until <= now(),
        "expires_at": expires_at,
    })
}

fn outcome_json(outcome: &Outcome, shows: bool, with_body: bool) -> Value {
    let (kept, bytes) = match &outcome.body {
        Body::Kept(bytes) => (true, bytes.clone()),
        Body::NotKept => (false, bytes::Bytes::new()),
    };
    let mut told = json!({
        "status": outcome.status,
        "headers": headers(outcome, shows),
        "body_kept": kept,
        "body_bytes": bytes.len(),
    });
    if with_body && kept {
        set(&mut told, "body", body(&bytes));
    }
    told
}

/// Each header with all its values, as far as they are shown.
fn headers(outcome: &Outcome, shows: bool) -> Value {
    let shown = |(name, values): (&String, &Vec<String>)| {
        let values = values.iter().map(|value| shown_value(name, value, shows));
        (name.clone(), values.collect())
    };
    Value::Object(outcome.headers.iter().map(shown).collect())
}

/// The label as JSON if it is that, otherwise as text; null when there is none.
fn label_json(label: &bytes::Bytes) -> Value {
    if label.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(label).unwrap_or_else(|_| String::from_utf8_lossy(label).into())
}

// === impl Verdict ===

impl Verdict {
    const ALL: [Self; 3] = [Self::Succeeded, Self::Failed, Self::Retry];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Retry => "retry",
        }
    }

    const fn state(self) -> State {
        match self {
            Self::Succeeded => State::Succeeded,
            Self::Failed => State::Failed,
            Self::Retry => State::Waiting,
        }
    }

    const fn says(self) -> &'static str {
        match self {
            Self::Succeeded => {
                "duplicates hear 200; its letter, if there is one, is closed, and runs nothing any more"
            }
            Self::Failed => "duplicates hear of the failure; its letter, if there is one, stays",
            Self::Retry => {
                "the next delivery runs it; its letter, if there is one, can be redriven"
            }
        }
    }

    fn finding(self) -> Finding {
        match self {
            // What the handler said is not known: only that it took effect.
            Self::Succeeded => {
                let outcome = Outcome {
                    status: StatusCode::OK.as_u16(),
                    headers: BTreeMap::new(),
                    body: Body::NotKept,
                };
                Finding::Succeeded(outcome.encode())
            }
            Self::Failed => {
                let problem = Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "resolved-failed",
                    "This work failed for good",
                    "an operator looked at it and decided so; use a new key for new work",
                );
                Finding::Failed(problem.outcome().encode())
            }
            Self::Retry => Finding::Retry,
        }
    }
}

impl FromStr for Verdict {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|verdict| verdict.word() == text)
            .ok_or_else(|| format!("{text:?} is not a verdict: say succeeded, failed or retry"))
    }
}
