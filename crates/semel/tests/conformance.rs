//! The memory store passes the suite and agrees with the oracle; so does a store that does no more than run work.

#![cfg(feature = "conformance")]

#[path = "support/subject.rs"]
mod subject;

use async_trait::async_trait;
use semel::conformance::{Subject, SuitePart, compare, part, suite};
use semel::memory::MemoryStore;
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::sync::Arc;
use std::time::Duration;
use subject::Timed;

fn memory() -> Timed<MemoryStore> {
    Timed::new(|clock| MemoryStore::with_clock(clock))
}

/// A store in the making: no letters, and no operators' acts.
#[derive(Debug)]
struct Unfinished(Arc<MemoryStore>);

#[async_trait]
impl Store for Unfinished {
    fn sharing(&self) -> Sharing {
        self.0.sharing()
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        if matches!(
            operation,
            Operation::Resolve { .. }
                | Operation::Redrive { .. }
                | Operation::Retain { .. }
                | Operation::ReleaseByOperator { .. }
                | Operation::Forget(_)
        ) {
            return Err(Error::invalid("this store takes no operators' acts yet"));
        }
        self.0.apply(operation).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        Store::list(&*self.0, state, after, limit).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.0.sweep(after).await
    }
}

struct InTheMaking(Timed<MemoryStore>);

#[async_trait]
impl Subject for InTheMaking {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Unfinished(self.0.store.clone()))
    }

    fn has_operators(&self) -> bool {
        false
    }

    async fn advance(&self, by: Duration) {
        self.0.advance(by).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_letters_and_operators_is_judged_by_the_rest() {
    let subject = InTheMaking(memory());
    let report = suite(&subject).await.unwrap();
    assert!(report.held.len() > 80, "{report}");
    for (name, held) in [
        (SuitePart::Claim, true),
        (SuitePart::Operator, false),
        (SuitePart::Letter, false),
    ] {
        let report = part(&subject, name).await.unwrap();
        assert_eq!(!report.held.is_empty(), held, "{name:?}");
    }
    compare(&subject, 100, 60, 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_passes_the_suite() {
    let report = suite(&memory()).await.unwrap();
    assert!(report.held.len() > 100, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_agrees_with_the_oracle() {
    compare(&memory(), 600, 60, 1).await.unwrap();
}
