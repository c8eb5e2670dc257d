//! `semel records`: looking at records, and acting on one.

use super::operate::{acted, found, printed};
use crate::admin::{AdminTarget, act, get};
use crate::args::operate::{RecordsArgs, RecordsCommand};
use crate::table::{Column, members, table};
use semel::protocol::Fence;
use semel::store::Cursor;
use semel_gate::operate::Operator;
use serde_json::{Value, json};

const LISTED: [Column; 8] = [
    ("KEY", "key"),
    ("STATE", "state"),
    ("ATTEMPTS", "attempts"),
    ("DOUBTS", "doubts"),
    ("FENCE", "fence"),
    ("BORN", "born"),
    ("LEASE UNTIL", "lease_until"),
    ("EXPIRES AT", "expires_at"),
];

const SHOWN: [Column; 18] = [
    ("key", "/key"),
    ("state", "/state"),
    ("attempts", "/attempts"),
    ("doubts", "/doubts"),
    ("in doubt", "/in_doubt"),
    ("acts until", "/acts_until"),
    ("fence", "/fence"),
    ("born", "/born"),
    ("lease until", "/lease_until"),
    ("expires at", "/expires_at"),
    ("fingerprint", "/fingerprint"),
    ("label", "/label"),
    ("status", "/outcome/status"),
    ("headers", "/outcome/headers"),
    ("body kept", "/outcome/body_kept"),
    ("body bytes", "/outcome/body_bytes"),
    ("body", "/outcome/body_hidden"),
    ("outcome", "/outcome/error"),
];

const ATTEMPTS: [Column; 7] = [
    ("BEGAN AT", "began_at"),
    ("GATE", "gate"),
    ("ACT", "act"),
    ("FENCE", "fence"),
    ("ENDED", "ended"),
    ("LASTED S", "lasted_s"),
    ("SUPERSEDED BY", "by"),
];

const STEPS: [Column; 3] = [("STEP", "name"), ("DONE", "done"), ("FENCE", "fence")];

pub(crate) async fn run(args: &RecordsArgs) -> anyhow::Result<()> {
    let (target, json) = (AdminTarget::open(&args.target).await?, args.target.json);
    match &args.command {
        RecordsCommand::List { state, limit } => {
            let query = state.map(|state| format!("&state={state}"));
            let page = async |operator: &Operator, after: Option<&Cursor>, count| {
                operator.records(*state, after, count).await
            };
            let query = query.unwrap_or_default();
            let answer = target.list("records", &query, *limit, page).await;
            found(json, answer, "records", |rows| table(&LISTED, rows))
        }
        RecordsCommand::Show { key, body } => {
            let call = get(format!("/records/{key}?body={body}"));
            let answer = target.ask(call, async |it| it.record(key, *body).await);
            printed(json, answer.await, shown)
        }
        RecordsCommand::Release { key, reason } => {
            let call = act(format!("/records/{key}/release"), reason);
            let answer = target.ask(call, async |it| {
                it.clone().because(&reason.why).release(key).await
            });
            acted(json, answer.await)
        }
        RecordsCommand::Forget {
            key,
            letters,
            reason,
        } => {
            let with = if *letters { "?letters=true" } else { "" };
            let call = act(format!("/records/{key}/forget{with}"), reason);
            let answer = target.ask(call, async |it| {
                let operator = it.clone().because(&reason.why);
                match letters {
                    true => operator.forget_with_letters(key).await,
                    false => operator.forget(key).await,
                }
            });
            acted(json, answer.await)
        }
        RecordsCommand::Resolve {
            key,
            verdict,
            fence,
            reason,
        } => {
            let (method, path, _) = act(format!("/records/{key}/resolve"), reason);
            let body = json!({"as": verdict.word(), "fence": fence});
            let fence = fence.map(Fence);
            let directly = async |it: &Operator| {
                let operator = it.clone().because(&reason.why);
                operator.resolve(key, *verdict, fence).await
            };
            let answer = target.ask((method, path, Some(body)), directly);
            acted(json, answer.await)
        }
    }
}

fn shown(record: &Value) -> String {
    let body = record.pointer("/outcome/body");
    let body = body.map(super::operate::body).unwrap_or_default();
    members(&SHOWN, record) + &beside(record) + &body
}

/// What a record has beside itself: attempts that are over, and steps.
fn beside(record: &Value) -> String {
    let mut text = String::new();
    for (title, pointer, columns) in [
        ("attempts before", "/history", &ATTEMPTS[..]),
        ("steps", "/steps", &STEPS),
    ] {
        let rows = record.pointer(pointer).and_then(Value::as_array);
        if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
            text += &format!("\n{title}\n{}", table(columns, rows));
        }
    }
    text
}
