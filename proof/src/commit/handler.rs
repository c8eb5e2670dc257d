//! A handler that completes its run in the commit that has its effect, as `semel.firestore.complete` does. Each try has
//! an effect of its own, as an increment would be: nothing but the record keeps it from being made twice.

use super::database::Database;
use super::tamper::{created, micros, updated, value};
use bytes::Bytes;
use semel::Outcome;
use semel::protocol::Lease;
use semel_firestore::proto::Document;
use semel_firestore::proto::value::ValueType;
use std::collections::HashMap;
use tonic::{Code, Status};

/// The collection of effects.
pub(super) const EFFECTS: &str = "commit_effects";

/// How the body of a handler's answer begins; the id of its effect follows.
pub(super) const EFFECT: &str = "effect ";

const RUNNING: i64 = 1;
const SUCCEEDED: i64 = 2;

/// How often it tries; then it vanishes.
const TRIES: usize = 5;

/// The handler, and whether its effect is in the commit that completes.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) database: Database,
    pub(super) completes_apart: bool,
}

// === impl Handler ===

impl Handler {
    /// Makes the effect and completes; the answer that is recorded, if it knows of one. `ids` are for the effects.
    pub(super) async fn complete(
        &self,
        lease: &Lease,
        mut ids: impl Iterator<Item = u64>,
    ) -> Option<Bytes> {
        for _ in 0..TRIES {
            match self.attempt(lease, ids.next()?).await {
                Ok(answer) => return answer,
                Err(refused) if is_worth_another(&refused) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Reads the record, and writes on condition that it stays so.
    async fn attempt(&self, lease: &Lease, id: u64) -> Result<Option<Bytes>, Status> {
        let path = format!("semel_records/{}", lease.key);
        let read = self.database.read(&path).await?;
        let Some(record) = read.document.filter(|it| is_of(it, lease)) else {
            return Ok(None);
        };
        match int(&record, "state") {
            Some(SUCCEEDED) => return Ok(bytes(&record, "result")),
            Some(RUNNING) => {}
            Some(_) | None => return Ok(None),
        }
        let result = Outcome::ok(format!("{EFFECT}{id:016x}")).encode();
        let version = record.update_time;
        let mut fields = record.fields;
        fields.extend([
            ("state".into(), value(ValueType::IntegerValue(SUCCEEDED))),
            (
                "lease_until".into(),
                value(ValueType::IntegerValue(micros(&read.now))),
            ),
            (
                "result".into(),
                value(ValueType::BytesValue(result.clone())),
            ),
        ]);
        let completion = updated(record.name, fields, version);
        let name = self.database.document(&format!("{EFFECTS}/{id:016x}"));
        let effect = created(name, HashMap::new());
        if self.completes_apart {
            self.database.commit(vec![effect]).await?;
            self.database.commit(vec![completion]).await?;
        } else {
            self.database.commit(vec![effect, completion]).await?;
        }
        Ok(Some(result))
    }
}

/// Whether somebody else wrote first, or nobody knows: reading tells.
fn is_worth_another(refused: &Status) -> bool {
    let codes = [Code::FailedPrecondition, Code::Aborted, Code::Unavailable];
    codes.contains(&refused.code())
}

fn is_of(record: &Document, lease: &Lease) -> bool {
    int(record, "fence").is_some_and(|it| it.unsigned_abs() == lease.fence.0)
}

fn int(document: &Document, name: &str) -> Option<i64> {
    match document.fields.get(name)?.value_type {
        Some(ValueType::IntegerValue(number)) => Some(number),
        _ => None,
    }
}

fn bytes(document: &Document, name: &str) -> Option<Bytes> {
    match &document.fields.get(name)?.value_type {
        Some(ValueType::BytesValue(bytes)) => Some(bytes.clone()),
        _ => None,
    }
}
