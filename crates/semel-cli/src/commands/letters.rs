//! `semel letters`: looking at letters; redriving or discarding one.

use super::operate::{acted, body, found, printed};
use crate::args::operate::{LettersArgs, LettersAsk};
use crate::desk::{Ask, Desk};
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
    let (desk, json) = (Desk::open(&args.desk).await?, args.desk.json);
    match &args.ask {
        LettersAsk::List { limit } => {
            let page = |after, limit| Ask::Letters { after, limit };
            let told = desk.list("letters", *limit, page).await;
            found(json, told, "letters", |rows| table(&LISTED, rows))
        }
        LettersAsk::Show { id } => printed(json, desk.ask(Ask::Letter(id.clone())).await, shown),
        LettersAsk::Redrive { id, run_again } => {
            let (id, run_again) = (id.clone(), *run_again);
            acted(json, desk.ask(Ask::Redrive { id, run_again }).await)
        }
        LettersAsk::Discard { id } => acted(json, desk.ask(Ask::Discard(id.clone())).await),
    }
}

fn shown(letter: &Value) -> String {
    members(&SHOWN, letter) + &letter.get("body").map(body).unwrap_or_default()
}
