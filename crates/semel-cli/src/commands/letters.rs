//! `semel letters`: looking at letters; redriving or discarding one.

use super::operate::{acted, body, found, printed};
use crate::admin::{AdminRequest, AdminTarget};
use crate::args::operate::{LettersArgs, LettersCommand};
use crate::table::{Column, members, table};
use serde_json::Value;

const LISTED: [Column; 7] = [
    ("ID", "id"),
    ("REASON", "reason"),
    ("RECORD", "record"),
    ("ROUTE", "route"),
    ("CREATED AT", "created_at"),
    ("BYTES", "bytes"),
    ("KEY", "key"),
];

const SHOWN: [Column; 12] = [
    ("id", "/id"),
    ("reason", "/reason"),
    ("record", "/record"),
    ("redriven", "/redriven"),
    ("why", "/why"),
    ("key", "/key"),
    ("created at", "/created_at"),
    ("route", "/route"),
    ("method", "/method"),
    ("path", "/path"),
    ("headers", "/headers"),
    ("body bytes", "/body_bytes"),
];

pub(crate) async fn run(args: &LettersArgs) -> anyhow::Result<()> {
    let (target, json) = (AdminTarget::open(&args.target).await?, args.target.json);
    match &args.command {
        LettersCommand::List { limit } => {
            let page = |after, limit| AdminRequest::Letters { after, limit };
            let answer = target.list("letters", *limit, page).await;
            found(json, answer, "letters", |rows| table(&LISTED, rows))
        }
        LettersCommand::Show { id } => printed(
            json,
            target.ask(AdminRequest::Letter(id.clone())).await,
            shown,
        ),
        LettersCommand::Redrive { id, run_again } => {
            let (id, run_again) = (id.clone(), *run_again);
            acted(
                json,
                target.ask(AdminRequest::Redrive { id, run_again }).await,
            )
        }
        LettersCommand::Discard { id } => {
            acted(json, target.ask(AdminRequest::Discard(id.clone())).await)
        }
    }
}

fn shown(letter: &Value) -> String {
    members(&SHOWN, letter) + &letter.get("body").map(body).unwrap_or_default()
}
