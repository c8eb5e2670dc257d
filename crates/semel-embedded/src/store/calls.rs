//! The calls: each is checked, then asked of the writer or read.

use super::{EmbeddedStore, SWEEP_CHUNK_ITEMS_MAX};
use crate::codec::{self, History, KeptLetter};
use crate::due::{self, DueRow};
use crate::{index, pages};
use async_trait::async_trait;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put, Stored};
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, Store, Swept, validate_bytes};
use semel::{Error, Key};

/// The largest delivery that a letter keeps.
const DELIVERY_BYTES_MAX: usize = 64 * 1024 * 1024;

#[async_trait]
impl Store for EmbeddedStore {
    fn sharing(&self) -> Sharing {
        Sharing::OneProcess
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        operation.validate()?;
        if let Operation::Look(key) = operation
            && let Some(shown) = self.look_away_from_the_writer(key).await?
        {
            return Ok(Answer::Looked(shown));
        }
        if let Operation::Steps(key) = operation {
            let key = *key;
            let steps = self.read(move |engine| index::steps(engine, &key));
            return steps.await.map(Answer::Steps);
        }
        if let Operation::Find(id) = operation {
            let id = id.clone();
            let found = self.read(move |engine| index::find(engine, &id));
            return found.await.map(Answer::Found);
        }
        let operation = operation.clone();
        self.ask(move |group| group.apply(&operation)).await
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
            self.sweep_index().await?;
        }
        let (swept, _read) = self.sweep_window(after).await?;
        Ok(swept)
    }
}

#[async_trait]
impl Letters for EmbeddedStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        validate_bytes("delivery", &letter.delivery, DELIVERY_BYTES_MAX)?;
        let letter = letter.clone();
        self.ask(move |group| group.put_letter(&letter)).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        let after = after.cloned();
        self.read(move |engine| pages::letters(engine, after.as_ref(), limit))
            .await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        let at = codec::letter(id);
        let row = self.read(move |engine| engine.row::<KeptLetter>(&at));
        Ok(row.await?.and_then(|row| match row.value.stored {
            Stored::Open(letter) => Some(letter),
            Stored::Closed(_) => None,
        }))
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        let id = *id;
        self.ask(move |group| group.mark_letter(&id, mark)).await
    }
}

impl EmbeddedStore {
    /// Reads a record; `None` when only the writer can show it.
    async fn look_away_from_the_writer(&self, key: &Key) -> Result<Option<Option<Record>>, Error> {
        let key = *key;
        let at = codec::record(&key);
        self.read(move |engine| {
            let Some(row) = engine.row::<Record>(&at)? else {
                return Ok(Some(None));
            };
            // An end that is not on disk yet is shown by the writer, once it is.
            let is_running = row.value.state == State::Running;
            if is_running || row.group <= engine.progress.synced() {
                if row.value.expired(engine.now()) {
                    return Ok(Some(None));
                }
                let history = engine.row::<History>(&codec::history(&key, row.value.born))?;
                return Ok(Some(Some(Record {
                    history: history.map(|row| row.value.0).unwrap_or_default(),
                    ..row.value
                })));
            }
            Ok(None)
        })
        .await
    }

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
            removed += self.ask(move |group| group.sweep(&rows)).await?;
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
