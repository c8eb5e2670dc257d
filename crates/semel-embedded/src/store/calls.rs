//! The calls: each is checked, asked of the writer or read, and its answer unpacked.

use super::{EmbeddedStore, SWEEP_CHUNK_ITEMS_MAX, validate_bytes};
use crate::codec::{self, KeptLetter};
use crate::pages;
use crate::request::{Request, StepAct};
use async_trait::async_trait;
use bytes::Bytes;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put, Stored};
use semel::record::{
    self, Acted, Claim, Claimed, Fail, Held, Lease, Operation, Record, Resolution, State, StepBegun,
};
use semel::store::{Cursor, Page, RESULT_BYTES_MAX, Sharing, Store, Swept, validate_lease};
use semel::{Error, Key};
use std::time::Duration;

/// The largest delivery that a letter keeps.
const DELIVERY_BYTES_MAX: usize = 64 * 1024 * 1024;

#[async_trait]
impl Store for EmbeddedStore {
    fn sharing(&self) -> Sharing {
        Sharing::OneProcess
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        claim.validate()?;
        let request = Request::Record(claim.key, Operation::Claim(claim.clone()));
        self.ask(request).await?.claimed()
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        validate_lease(lease_for, retention)?;
        let renew = Operation::Renew(lease.clone(), lease_for, retention);
        self.hold(lease.key, renew).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        validate_bytes("result", result, RESULT_BYTES_MAX)?;
        let complete = Operation::Complete(lease.clone(), result.clone(), retention);
        self.hold(lease.key, complete).await
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        validate_bytes("result", &how.result, RESULT_BYTES_MAX)?;
        let fail = Operation::Fail(lease.clone(), how.clone());
        self.hold(lease.key, fail).await
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        let release = Operation::Release(lease.clone());
        self.hold(lease.key, release).await
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        let Some(row) = self.engine.row::<Record>(&codec::record(key))? else {
            return Ok(None);
        };
        // An end that is not on disk yet is shown by the writer, once it is.
        let is_running = row.value.state == State::Running;
        if is_running || row.group <= self.engine.progress.synced() {
            let shown = record::look(Some(&row.value), self.engine.now());
            return Ok(shown.is_some().then_some(row.value));
        }
        self.ask(Request::Record(*key, Operation::Look))
            .await?
            .looked()
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        self.step(lease, name, StepAct::Begin).await?.begun()
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        self.step(lease, name, StepAct::Restart).await?.held()
    }

    async fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> Result<Held, Error> {
        validate_bytes("result", result, RESULT_BYTES_MAX)?;
        let complete = StepAct::Complete(result.clone());
        self.step(lease, name, complete).await?.held()
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        self.act_on(*key, Operation::Resolve(how.clone())).await
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        self.act_on(*key, Operation::Redrive).await
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        self.act_on(*key, Operation::ReleaseByOperator).await
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        self.act_on(*key, Operation::Forget).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        let after = after.cloned();
        self.read(move |engine| pages::records(engine, state, after.as_ref(), limit))
            .await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        if after.is_none() {
            self.sweep_tombstones().await?;
        }
        let after = after.cloned();
        let window = self
            .read(move |engine| pages::sweepable(engine, after.as_ref()))
            .await?;
        let mut removed = 0;
        for keys in window.keys.chunks(SWEEP_CHUNK_ITEMS_MAX) {
            let swept = self.ask(Request::Sweep(keys.to_vec())).await?;
            removed += swept.swept()?;
        }
        Ok(Swept {
            removed,
            next: window.next,
        })
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        validate_bytes("delivery", &letter.delivery, DELIVERY_BYTES_MAX)?;
        self.ask(Request::LetterPut(letter.clone())).await?.put()
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
        let after = after.cloned();
        self.read(move |engine| pages::letters(engine, after.as_ref(), limit))
            .await
    }

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        let row = self.engine.row::<KeptLetter>(&codec::letter(id))?;
        Ok(row.and_then(|row| match row.value.stored {
            Stored::Open(letter) => Some(letter),
            Stored::Closed(_) => None,
        }))
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.ask(Request::LetterMark(*id, mark)).await?.marked()
    }
}
