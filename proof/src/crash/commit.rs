//! Effect and completion in one commit of the handler's own, in Firestore: a batch, which leaves no locks when its process
//! is killed.

use super::case::Case;
use super::effect::{Actor, nonce};
use super::evidence::EffectRow;
use super::point::Point;
use crate::harness::{
    Attempt, Completing, FirestoreDatabase, StoreKind, WorkId, created, is_worth_another, value,
};
use anyhow::Context;
use semel::Outcome;
use semel::protocol::Lease;
use semel::work::Failure;
use semel_firestore::proto::value::ValueType;
use semel_firestore::proto::{Document, Write};
use std::collections::HashMap;

/// How often a commit is tried that somebody else's write came before: a renewal, mostly.
const TRIES: usize = 5;

// === impl Actor ===

impl Actor {
    /// Writes the effect's document and completes the run, in one commit.
    pub(super) async fn in_a_commit(
        &self,
        lease: &Lease,
        attempt: Attempt,
    ) -> Result<Outcome, Failure> {
        let pass = |point| self.pass(&lease.key, point);
        let database = open(&self.case)
            .await
            .map_err(|error| Failure::not_started(format!("{error:#}")))?;
        for _ in 0..TRIES {
            let nonce = nonce();
            let effect = effect(&database, &self.case, attempt, &nonce);
            pass(Point::TransactionWritten);
            let outcome = Outcome::ok(nonce);
            let completing = database.completing(lease, &outcome.encode()).await;
            let completion = match completing.map_err(|it| not_written(&it))? {
                Completing::By(completion) => completion,
                Completing::Already(result) => {
                    return Outcome::decode(&result)
                        .map_err(|it| Failure::in_doubt(it.to_string()));
                }
                Completing::Stale => return Err(Failure::retryable("the run was overtaken")),
            };
            pass(Point::TransactionCompleted);
            let (commit, sent) = (
                database.commit(vec![effect, completion]),
                Point::CommitSent.name(),
            );
            let committed = self
                .fault_points
                .pass_within(Some(&lease.key), &sent, commit);
            match committed.await {
                Ok(()) => {
                    pass(Point::Committed);
                    return Ok(outcome);
                }
                Err(refused) if is_worth_another(&refused) => {}
                Err(refused) => {
                    let what = format!("the commit was not answered: {refused}");
                    return Err(Failure::in_doubt(what));
                }
            }
        }
        Err(Failure::in_doubt("others were always faster"))
    }
}

fn not_written(error: &tonic::Status) -> Failure {
    Failure::retryable(format!("nothing was written: {error}"))
}

/// The effects that were committed.
pub(super) async fn rows(case: &Case) -> anyhow::Result<Vec<EffectRow>> {
    if case.location.kind != StoreKind::Firestore {
        return Ok(Vec::new());
    }
    let documents = open(case).await?.all(&collection(case)).await?;
    let rows: Option<Vec<_>> = documents.iter().map(EffectRow::read).collect();
    rows.context("an effect that cannot be read")
}

async fn open(case: &Case) -> anyhow::Result<FirestoreDatabase> {
    FirestoreDatabase::open(&case.location.place, &case.location.prefix).await
}

fn collection(case: &Case) -> String {
    format!("effects-{}", case.name)
}

fn effect(database: &FirestoreDatabase, case: &Case, attempt: Attempt, nonce: &str) -> Write {
    let int = |number: u64| value(ValueType::IntegerValue(number.cast_signed()));
    let fields = HashMap::from([
        ("work".into(), int(attempt.work.0.into())),
        ("fence".into(), int(attempt.fence)),
    ]);
    created(
        database.document(&format!("{}/{nonce}", collection(case))),
        fields,
    )
}

// === impl EffectRow ===

impl EffectRow {
    fn read(document: &Document) -> Option<Self> {
        let int = |name| match document.fields.get(name)?.value_type {
            Some(ValueType::IntegerValue(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        Some(Self {
            work: WorkId(u32::try_from(int("work")?).ok()?),
            fence: int("fence")?,
            nonce: document.name.rsplit('/').next()?.to_owned(),
        })
    }
}
