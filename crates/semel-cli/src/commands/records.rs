//! `semel records`: looking at records, and acting on one.

use super::operate::{acted, found, printed};
use crate::args::operate::{RecordsArgs, RecordsAsk};
use crate::desk::{Ask, Desk};
use crate::table::{Column, members, table};
use semel::record::Fence;
use serde_json::Value;

const LISTED: [Column; 7] = [
    ("KEY", "key"),
    ("STATE", "state"),
    ("ATTEMPTS", "attempts"),
    ("FENCE", "fence"),
    ("BORN", "born"),
    ("LEASE UNTIL", "lease_until"),
    ("EXPIRES AT", "expires_at"),
];

const SHOWN: [Column; 13] = [
    ("key", "/key"),
    ("state", "/state"),
    ("attempts", "/attempts"),
    ("fence", "/fence"),
    ("born", "/born"),
    ("lease until", "/lease_until"),
    ("expires at", "/expires_at"),
    ("fingerprint", "/fingerprint"),
    ("status", "/outcome/status"),
    ("headers", "/outcome/headers"),
    ("body kept", "/outcome/body_kept"),
    ("body bytes", "/outcome/body_bytes"),
    ("outcome", "/outcome/error"),
];

pub(crate) async fn run(args: &RecordsArgs) -> anyhow::Result<()> {
    let (desk, json) = (Desk::open(&args.desk).await?, args.desk.json);
    match &args.ask {
        RecordsAsk::List { state, limit } => {
            let state = state.map(Into::into);
            let page = |after, limit| Ask::Records {
                state,
                after,
                limit,
            };
            let told = desk.list("records", *limit, page).await;
            found(json, told, "records", |rows| table(&LISTED, rows))
        }
        RecordsAsk::Show { key, body } => {
            let ask = Ask::Record {
                key: *key,
                body: *body,
            };
            printed(json, desk.ask(ask).await, shown)
        }
        RecordsAsk::Release { key } => acted(json, desk.ask(Ask::Release(*key)).await),
        RecordsAsk::Forget { key } => acted(json, desk.ask(Ask::Forget(*key)).await),
        RecordsAsk::Resolve {
            key,
            verdict,
            fence,
        } => {
            let ask = Ask::Resolve(*key, *verdict, fence.map(Fence));
            acted(json, desk.ask(ask).await)
        }
    }
}

fn shown(record: &Value) -> String {
    let body = record.pointer("/outcome/body");
    let body = body.map(super::operate::body).unwrap_or_default();
    members(&SHOWN, record) + &body
}
