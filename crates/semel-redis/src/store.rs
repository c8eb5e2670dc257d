//! `RedisStore`: each operation is one call of its function.

use crate::answer;
use crate::command::Command;
use crate::connection::Target;
use crate::connections::Connections;
use crate::eviction::Eviction;
use crate::list;
use crate::names::Names;
use crate::replicas::Replicas;
use crate::settings::RedisSettings;
use crate::start::{self, StartNotes};
use async_trait::async_trait;
use bytes::Bytes;
use redis::Value;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::protocol::{Acted, Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, Swept, index_digest};
use semel::{Error, Key, Store};
use std::collections::BTreeSet;
use std::time::Duration;

/// A store on a Redis server. See the [crate] for what it promises and what it does not.
#[derive(Debug)]
pub struct RedisStore {
    names: Names,
    connections: Connections,
    replicas: Option<Replicas>,
    notes: StartNotes,
    /// Where the server is, for messages.
    address: String,
    allow_eviction: bool,
    eviction: Eviction,
}

// === impl RedisStore ===

impl RedisStore {
    /// Connects, after asking the server whether it can keep records.
    ///
    /// # Errors
    /// `Invalid` when a setting is wrong, here or on the server: a version before 7.0, a policy that
    /// evicts, a missing right. `Unavailable` when the server cannot be asked.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), semel::Error> {
    /// use semel_redis::{RedisSettings, RedisStore};
    ///
    /// let mut settings = RedisSettings::new("redis://127.0.0.1:6379");
    /// settings.prefix = "shop".into();
    /// let store = RedisStore::connect(settings).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(settings: RedisSettings) -> Result<Self, Error> {
        let target = Target::new(&settings)?;
        let names = Names::new(&settings.prefix);
        let look = Operation::Look(Key::from_bytes([0; 32]));
        let probe = Command::of(&names, &look).sent;
        let notes = start::check(&target, &settings, &probe).await?;
        let pool = |connections| Connections::new(target.clone(), connections);
        let replicas = settings.wait_replicas.map(|wait| {
            let pools = (0..settings.connections).map(|_| pool(1)).collect();
            Replicas::start(pools, wait, Command::touch(&names).sent)
        });
        let connections = pool(settings.connections);
        Ok(Self {
            names,
            connections,
            replicas,
            notes,
            eviction: target.eviction,
            address: target.address,
            allow_eviction: settings.allow_eviction,
        })
    }

    /// What the server's settings meant for records when the store connected.
    #[must_use]
    pub fn start_notes(&self) -> &StartNotes {
        &self.notes
    }

    /// How much a crash of the server's machine can lose, in one sentence.
    #[must_use]
    pub fn durability(&self) -> &str {
        &self.notes.durability
    }

    /// Sends a command that may write.
    async fn write(&self, command: Command) -> Result<Value, Error> {
        match &self.replicas {
            Some(replicas) => replicas.ask(command).await,
            None => self.read(&command).await,
        }
    }

    /// Keeps a key under transport ids, each in a slot of its own; what a lost connection leaves out is not found.
    async fn index(&self, key: &Key, ids: &[Bytes], keep: Duration) -> Result<(), Error> {
        let ids: BTreeSet<_> = ids.iter().map(|id| index_digest(id)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        // First, so that forget knows of everything that can be found.
        let of = Command::index_of(&self.names, key, &ids, keep);
        self.write(of).await?;
        for id in &ids {
            let index = Command::index(&self.names, id, key, keep);
            self.write(index).await?;
        }
        Ok(())
    }

    /// Removes what the index has of a key that is forgotten.
    async fn unindex(&self, key: &Key) -> Result<(), Error> {
        let ids = self.write(Command::index_ids(&self.names, key)).await?;
        for id in answer::arrays(ids)? {
            self.write(Command::unindex(&self.names, &id, key)).await?;
        }
        Ok(())
    }

    async fn read(&self, command: &Command) -> Result<Value, Error> {
        self.connections.ask(&command.sent, command.size).await
    }
}

#[async_trait]
impl Store for RedisStore {
    fn sharing(&self) -> Sharing {
        Sharing::Shared
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        operation.validate()?;
        if let Operation::Index { key, ids, keep } = operation {
            self.index(key, ids, *keep).await?;
            return Ok(Answer::Indexed);
        }
        let command = if let Operation::Find(id) = operation {
            Command::find(&self.names, &index_digest(id))
        } else {
            Command::of(&self.names, operation)
        };
        let answered = match operation {
            Operation::Look(_) | Operation::Steps(_) | Operation::Find(_) => {
                self.read(&command).await?
            }
            Operation::Ready => {
                if !self.allow_eviction {
                    let eviction = &self.eviction;
                    eviction.check(&self.connections, &self.address).await?;
                }
                self.read(&command).await?
            }
            Operation::Claim(_) => {
                let eviction = &self.eviction;
                eviction
                    .refuse_claims(&self.connections, &self.address)
                    .await?;
                self.write(command).await?
            }
            Operation::Renew { .. }
            | Operation::Complete { .. }
            | Operation::Fail { .. }
            | Operation::Release { .. }
            | Operation::StepBegin { .. }
            | Operation::StepRestart { .. }
            | Operation::StepComplete { .. }
            | Operation::Resolve { .. }
            | Operation::Redrive { .. }
            | Operation::Retain { .. }
            | Operation::ReleaseByOperator { .. }
            | Operation::Forget(_)
            | Operation::Index { .. } => self.write(command).await?,
        };
        let answer = answer::answer(answered, operation)?;
        if let (Operation::Forget(key), Answer::Acted(Acted::Applied)) = (operation, &answer) {
            self.unindex(key).await?;
        }
        Ok(answer)
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        list::list(&self.connections, &self.names, state, after, limit).await
    }

    /// Removes nothing: Redis itself removes a record 60 s after its end (`PEXPIREAT`), with its steps, and
    /// a letter's tombstone at its end.
    async fn sweep(&self, _after: Option<&Cursor>) -> Result<Swept, Error> {
        Ok(Swept {
            removed: 0,
            next: None,
        })
    }
}

#[async_trait]
impl Letters for RedisStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        answer::put(self.write(Command::letter_put(&self.names, letter)).await?)
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        let after = after.map_or(Ok(0), letter_time)?;
        let limit = u64::from(limit.max(1));
        // One more than asked for tells whether there is a next page.
        let call = Command::letter_list(&self.names, after, limit + 1);
        let mut items = answer::letter_heads(self.read(&call).await?)?;
        let more = items.len() as u64 > limit;
        items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let last = items.last().filter(|_| more);
        let next =
            last.map(|last| Cursor(Bytes::copy_from_slice(&last.created_at.0.to_be_bytes())));
        Ok(Page { items, next })
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        answer::letter(self.read(&Command::letter_get(&self.names, id)).await?, *id)
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        answer::marked(
            self.write(Command::letter_mark(&self.names, id, mark))
                .await?,
        )
    }
}

/// The time of the last letter seen; no two letters have the same.
fn letter_time(cursor: &Cursor) -> Result<u64, Error> {
    let bytes = <[u8; 8]>::try_from(cursor.0.as_ref()).map_err(|_| {
        Error::invalid(
            "the cursor is none of this store's letters; begin the list again without one",
        )
    })?;
    Ok(u64::from_be_bytes(bytes))
}
