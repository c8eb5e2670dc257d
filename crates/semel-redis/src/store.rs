//! `RedisStore`: each method is one call of its function.

use crate::answer;
use crate::calls::{Call, Calls};
use crate::eviction;
use crate::line::{Line, Size};
use crate::link::Target;
use crate::list;
use crate::replicas::Replicas;
use crate::settings::RedisSettings;
use crate::start::{self, StartNotes};
use async_trait::async_trait;
use bytes::Bytes;
use redis::Value;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::record::{
    Acted, Claim, Claimed, Fail, Held, Lease, Record, Resolution, State, StepBegun,
};
use semel::store::{Cursor, Page, Sharing, Swept, validate_lease, validate_step_name};
use semel::{Error, Key, Store};
use std::time::Duration;

/// A store on a Redis server. See the [crate] for what it promises and what it does not.
#[derive(Debug)]
pub struct RedisStore {
    calls: Calls,
    line: Line,
    replicas: Option<Replicas>,
    notes: StartNotes,
    /// Where the server is, for messages.
    address: String,
    allow_eviction: bool,
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
        let target = Target::new(&settings.validate()?, &settings)?;
        let calls = Calls::new(&settings.prefix);
        let probe = calls.look(&Key::from_bytes([0; 32])).command;
        let notes = start::check(&target, &settings, &probe).await?;
        let line = |connections| Line::new(target.clone(), connections);
        let replicas = settings.wait_replicas.map(|wait| {
            let lines = (0..settings.connections).map(|_| line(1)).collect();
            Replicas::start(lines, wait, calls.touch())
        });
        Ok(Self {
            calls,
            line: line(settings.connections),
            replicas,
            notes,
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

    /// Sends a call that may write.
    async fn write(&self, call: Call) -> Result<Value, Error> {
        match &self.replicas {
            Some(replicas) => replicas.ask(call).await,
            None => self.read(&call).await,
        }
    }

    async fn read(&self, call: &Call) -> Result<Value, Error> {
        self.line.ask(&call.command, call.size).await
    }
}

#[async_trait]
impl Store for RedisStore {
    fn sharing(&self) -> Sharing {
        Sharing::Shared
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        claim.validate()?;
        answer::claimed(self.write(self.calls.claim(claim)).await?, claim)
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        validate_lease(lease_for, retention)?;
        let call = self.calls.renew(lease, lease_for, retention);
        answer::held(self.write(call).await?)
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        let call = self.calls.complete(lease, result, retention);
        answer::held(self.write(call).await?)
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        answer::held(self.write(self.calls.fail(lease, how)).await?)
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        answer::held(self.write(self.calls.release(lease)).await?)
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        answer::looked(self.read(&self.calls.look(key)).await?)
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        validate_step_name(name)?;
        answer::step_begun(self.write(self.calls.step_begin(lease, name)).await?)
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        validate_step_name(name)?;
        answer::held(self.write(self.calls.step_restart(lease, name)).await?)
    }

    async fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> Result<Held, Error> {
        validate_step_name(name)?;
        let call = self.calls.step_complete(lease, name, result);
        answer::held(self.write(call).await?)
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        answer::acted(self.write(self.calls.resolve(key, how)).await?)
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        answer::acted(self.write(self.calls.redrive(key)).await?)
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        answer::acted(self.write(self.calls.release_by_operator(key)).await?)
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        answer::acted(self.write(self.calls.forget(key)).await?)
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        list::list(&self.line, &self.calls, state, after, limit).await
    }

    /// Removes nothing: Redis itself removes a record 60 s after its end (`PEXPIREAT`), with its steps, and
    /// a letter's tombstone at its end.
    async fn sweep(&self, _after: Option<&Cursor>) -> Result<Swept, Error> {
        Ok(Swept {
            removed: 0,
            next: None,
        })
    }

    async fn ready(&self) -> Result<(), Error> {
        if !self.allow_eviction {
            eviction::check(&self.line, &self.address).await?;
        }
        self.line.ask(&self.calls.ready(), Size::Small).await?;
        Ok(())
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        answer::put(self.write(self.calls.letter_put(letter)).await?)
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
        let after = after.map_or(Ok(0), letter_time)?;
        let limit = u64::from(limit.max(1));
        // One more than asked for tells whether there is a next page.
        let call = self.calls.letter_list(after, limit + 1);
        let mut items = answer::letter_heads(self.read(&call).await?)?;
        let more = items.len() as u64 > limit;
        items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let last = items.last().filter(|_| more);
        let next =
            last.map(|last| Cursor(Bytes::copy_from_slice(&last.created_at.0.to_be_bytes())));
        Ok(Page { items, next })
    }

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        answer::letter(self.read(&self.calls.letter_get(id)).await?, *id)
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        answer::marked(self.write(self.calls.letter_mark(id, mark)).await?)
    }
}

/// The time of the last letter seen; no two letters have the same.
fn letter_time(cursor: &Cursor) -> Result<u64, Error> {
    let bytes = <[u8; 8]>::try_from(cursor.0.as_ref()).map_err(|_| {
        Error::Invalid(
            "the cursor is none of this store's letters; begin the list again without one".into(),
        )
    })?;
    Ok(u64::from_be_bytes(bytes))
}
