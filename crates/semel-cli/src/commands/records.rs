//! `semel records`: looking at records, and acting on one.

use super::operate::{acted, found, printed};
use crate::admin::{AdminRequest, AdminTarget};
use crate::args::operate::{RecordsArgs, RecordsCommand};
use crate::table::{Column, members, table};
use semel::protocol::Fence;
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
    let (target, json) = (AdminTarget::open(&args.target).await?, args.target.json);
    match &args.command {
        RecordsCommand::List { state, limit } => {
            let state = state.map(Into::into);
            let page = |after, limit| AdminRequest::Records {
                state,
                after,
                limit,
            };
            let answer = target.list("records", *limit, page).await;
            found(json, answer, "records", |rows| table(&LISTED, rows))
        }
        RecordsCommand::Show { key, body } => {
            let ask = AdminRequest::Record {
                key: *key,
                body: *body,
            };
            printed(json, target.ask(ask).await, shown)
        }
        RecordsCommand::Release { key } => {
            acted(json, target.ask(AdminRequest::Release(*key)).await)
        }
        RecordsCommand::Forget { key } => acted(json, target.ask(AdminRequest::Forget(*key)).await),
        RecordsCommand::Resolve {
            key,
            verdict,
            fence,
        } => {
            let ask = AdminRequest::Resolve(*key, *verdict, fence.map(Fence));
            acted(json, target.ask(ask).await)
        }
    }
}

fn shown(record: &Value) -> String {
    let body = record.pointer("/outcome/body");
    let body = body.map(super::operate::body).unwrap_or_default();
    members(&SHOWN, record) + &body
}
