//! The calls: each is checked, asked of the writer or read, and its answer unpacked.

use super::{EmbeddedStore, SWEEP_CHUNK_ITEMS_MAX, validate_bytes};
use crate::codec::{self, KeptLetter};
use crate::due::{self, DueRow};
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
        let at = codec::record(key);
        let shown = self.read(move |engine| {
            let Some(row) = engine.row::<Record>(&at)? else {
                return Ok(Some(None));
            };
            // An end that is not on disk yet is shown by the writer, once it is.
            let is_running = row.value.state == State::Running;
            if is_running || row.group <= engine.progress.synced() {
                let shown = record::look(Some(&row.value), engine.now());
                return Ok(Some(shown.is_some().then_some(row.value)));
            }
            Ok(None)
        });
        match shown.await? {
            Some(shown) => Ok(shown),
            None => self
                .ask(Request::Record(*key, Operation::Look))
                .await?
                .looked(),
        }
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
        let (swept, _read) = self.sweep_window(after).await?;
        Ok(swept)
    }

    async fn ready(&self) -> Result<(), Error> {
        self.ask(Request::Probe).await?.probed()
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
        let at = codec::letter(id);
        let row = self.read(move |engine| engine.row::<KeptLetter>(&at));
        Ok(row.await?.and_then(|row| match row.value.stored {
            Stored::Open(letter) => Some(letter),
            Stored::Closed(_) => None,
        }))
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.ask(Request::LetterMark(*id, mark)).await?.marked()
    }
}

impl EmbeddedStore {
    /// Takes up a window of what is due, and says how many rows that read.
    pub(super) async fn sweep_window(
        &self,
        after: Option<&Cursor>,
    ) -> Result<(Swept, usize), Error> {
        let _sweeping = self.sweeping.lock().await;
        let after = after.cloned();
        let window = self
            .read(move |engine| due::read(engine, after.as_ref()))
            .await?;
        let up_to = window.up_to();
        let mut removed = 0;
        for rows in chunks(window.rows) {
            removed += self.ask(Request::Sweep(rows)).await?.swept()?;
        }
        if let Some(time) = up_to {
            self.session().await?.engine.sweep_reached(time);
        }
        let next = window.next;
        Ok((Swept { removed, next }, window.read))
    }
}

/// Rows in requests that do not keep the writer from other work for long.
fn chunks(rows: Vec<DueRow>) -> Vec<Vec<DueRow>> {
    let mut chunks: Vec<Vec<DueRow>> = Vec::new();
    let mut items = SWEEP_CHUNK_ITEMS_MAX;
    for row in rows {
        let more = row.found.len().max(1);
        if items + more > SWEEP_CHUNK_ITEMS_MAX {
            chunks.push(Vec::new());
            items = 0;
        }
        items += more;
        chunks.last_mut().expect("one was pushed").push(row);
    }
    chunks
}
