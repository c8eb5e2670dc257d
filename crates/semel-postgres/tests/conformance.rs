//! The store passes the suite and agrees with the oracle: one by one, in groups, and behind a pooler.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use async_trait::async_trait;
use semel::Store;
use semel::conformance::{Subject, compare, suite};
use semel::store::Letters;
use semel_postgres::PostgresSettings;
use std::sync::Arc;
use std::time::Duration;
use support::Bed;
use testbed::{PgBouncer, Postgres};

/// How many cases are compared before the tables are emptied: ageing reaches every record.
const CASES_AT_A_TIME: u32 = 32;

#[async_trait]
impl Subject for Bed {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn letters(&self) -> Option<Arc<dyn Letters>> {
        Some(self.store.clone())
    }

    async fn advance(&self, by: Duration) {
        support::age(&self.sql, by).await;
    }
}

async fn judge_by_suite(bed: &Bed) {
    let report = suite(bed).await.unwrap();
    assert!(report.held.len() > 100, "{report}");
}

async fn judge_by_oracle(bed: &Bed, cases: u32) {
    for seed in 0..cases.div_ceil(CASES_AT_A_TIME) {
        compare(bed, CASES_AT_A_TIME, 50, u64::from(seed))
            .await
            .unwrap();
        let empty = "TRUNCATE semel.rec, semel.renewal, semel.step, semel.label, semel.history, semel.transport, \
                     semel.letter";
        bed.execute(empty).await;
    }
}

/// A store in a database of its own that does not wait for the disk.
async fn bed(name: &str, change: impl FnOnce(&mut PostgresSettings)) -> Bed {
    let url = testbed::fresh_database(name).unwrap();
    hurry(&url).await;
    Bed::at(&url, &url, change).await
}

/// The judges see no power cut, and ageing every record must not hold on to them for as long as a
/// commit takes.
async fn hurry(url: &str) {
    let relax = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', \
                 current_database()); END $$";
    let admin = support::connect(url).await;
    admin.batch_execute(relax).await.unwrap();
}

/// Every call by the statement for one.
fn one_by_one(settings: &mut PostgresSettings) {
    settings.group_items_max = 1;
}

/// One lane, so that whatever goes on at the same time shares a group.
fn in_groups(settings: &mut PostgresSettings) {
    settings.lanes = 1;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_one_by_one() {
    judge_by_suite(&bed("suite_one", one_by_one).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_in_groups() {
    judge_by_suite(&bed("suite_groups", in_groups).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_with_relaxed_claims() {
    judge_by_suite(&bed("suite_relaxed", |s| s.relaxed_claims = true).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agrees_with_the_oracle_one_by_one() {
    judge_by_oracle(&bed("oracle_one", one_by_one).await, 128).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agrees_with_the_oracle_in_groups() {
    judge_by_oracle(&bed("oracle_groups", in_groups).await, 512).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_both_judges_behind_a_pooler() {
    let postgres = Postgres::start().unwrap();
    let direct = postgres.create_database("pooled").unwrap();
    hurry(&direct).await;
    let pgbouncer = PgBouncer::start(&direct).unwrap();
    let bed = Bed::at(&pgbouncer.url(), &direct, |s| s.pooler = true).await;
    judge_by_suite(&bed).await;
    judge_by_oracle(&bed, 64).await;
}
