//! `semel letters`: looking at letters; redriving or discarding one.

use super::operate::{acted, body, found, printed};
use crate::admin::{AdminTarget, act, get};
use crate::args::operate::{LettersArgs, LettersCommand};
use crate::table::{Column, members, table};
use semel::store::Cursor;
use semel_gate::operate::Operator;
use serde_json::Value;

const LISTED: [Column; 9] = [
    ("ID", "id"),
    ("REASON", "reason"),
    ("RECORD", "record"),
    ("STATUS", "status"),
    ("NEEDS OPERATOR", "for_operator"),
    ("ROUTE", "route"),
    ("CREATED AT", "created_at"),
    ("BYTES", "bytes"),
    ("KEY", "key"),
];

const SHOWN: [Column; 15] = [
    ("id", "/id"),
    ("reason", "/reason"),
    ("record", "/record"),
    ("needs operator", "/for_operator"),
    ("redriven", "/redriven"),
    ("why", "/why"),
    ("latest run", "/latest_run"),
    ("key", "/key"),
    ("created at", "/created_at"),
    ("route", "/route"),
    ("method", "/method"),
    ("path", "/path"),
    ("headers", "/headers"),
    ("body bytes", "/body_bytes"),
    ("body", "/body_hidden"),
];

pub(crate) async fn run(args: &LettersArgs) -> anyhow::Result<()> {
    let (target, json) = (AdminTarget::open(&args.target).await?, args.target.json);
    match &args.command {
        LettersCommand::List { limit } => {
            let page = async |operator: &Operator, after: Option<&Cursor>, count| {
                operator.letters(after, count).await
            };
            let answer = target.list("letters", "", *limit, page).await;
            found(json, answer, "letters", |rows| table(&LISTED, rows))
        }
        LettersCommand::Show { id } => {
            let call = get(format!("/letters/{id}"));
            let answer = target.ask(call, async |it| it.letter(id).await);
            printed(json, answer.await, shown)
        }
        LettersCommand::Redrive {
            id,
            run_again,
            reason,
        } => {
            let call = act(
                format!("/letters/{id}/redrive?run_again={run_again}"),
                reason,
            );
            acted(json, target.redrive(call).await)
        }
        LettersCommand::Discard { id, reason } => {
            let call = act(format!("/letters/{id}/discard"), reason);
            let answer = target.ask(call, async |it| {
                it.clone().because(&reason.why).discard(id).await
            });
            acted(json, answer.await)
        }
    }
}

fn shown(letter: &Value) -> String {
    members(&SHOWN, letter) + &letter.get("body").map(body).unwrap_or_default()
}
