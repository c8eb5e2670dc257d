//! The history: every change of every record on PostgreSQL, written down by a trigger of the test's own.

use super::call::{Nonce, OwnerId, ResultId};
use crate::harness::connect;
use anyhow::Context;
use bytes::Bytes;
use semel::Key;
use semel::protocol::State;
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::Row;

/// The trigger and its tables.
const SCHEMA: &str = include_str!("history.sql");

/// Makes records older that have been expired for a while, so that the sweeper meets them within the test: its own
/// grace is longer than a race.
const AGE: &str = "SELECT race.age(interval '400 ms')";

/// For how long a record that is aged was expired.
pub(super) const GRACE_US: u64 = 400_000;

/// How often records are aged.
const AGE_EVERY: Duration = Duration::from_millis(100);

const READ: &str = "\
    SELECT (extract(epoch FROM at) * 1000000)::bigint, aged, COALESCE((new).key, (old).key, (renewal).key), \
      (old).state, (old).fp, (old).attempts, (old).born, (old).fence, (old).owner::text, \
      (extract(epoch FROM (old).lease_until) * 1000000)::bigint, \
      (extract(epoch FROM (old).expires_at) * 1000000)::bigint, (old).result, (old).doubts, (old).in_doubt, \
      (extract(epoch FROM (old).acts_until) * 1000000)::bigint, \
      (extract(epoch FROM (old).doubted_at) * 1000000)::bigint, \
      (new).state, (new).fp, (new).attempts, (new).born, (new).fence, (new).owner::text, \
      (extract(epoch FROM (new).lease_until) * 1000000)::bigint, \
      (extract(epoch FROM (new).expires_at) * 1000000)::bigint, (new).result, (new).doubts, (new).in_doubt, \
      (extract(epoch FROM (new).acts_until) * 1000000)::bigint, \
      (extract(epoch FROM (new).doubted_at) * 1000000)::bigint, (renewal).fence, \
      (extract(epoch FROM (renewal).lease_until) * 1000000)::bigint, \
      (extract(epoch FROM (renewal).expires_at) * 1000000)::bigint, COALESCE(gone, false) \
    FROM race.change ORDER BY id";

/// Every change of every record, per key in the order of commits.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// By the number of the key.
    pub(crate) changes: HashMap<u32, Vec<Change>>,
    /// The effects that handlers committed together with a completion.
    pub(crate) effects: Vec<Effect>,
}

/// A change of a record, or of the renewal that counts for it: what whoever looks is shown before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Just before it was committed, in µs since 1970.
    pub(crate) at: u64,
    /// Made by the test itself.
    pub(crate) aged: bool,
    /// What was there.
    pub(crate) old: Option<Version>,
    /// What is there now.
    pub(crate) new: Option<Version>,
}

/// A record at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// A digest of the fingerprint.
    pub(crate) payload: u64,
    pub(crate) state: u8,
    /// How many runs were started.
    pub(crate) attempts: u32,
    pub(crate) born: u64,
    pub(crate) fence: u64,
    pub(crate) owner: OwnerId,
    /// The end of the lease, in µs since 1970.
    pub(crate) lease_until: u64,
    /// The end of retention, in µs since 1970.
    pub(crate) expires_at: u64,
    pub(crate) result: Option<ResultId>,
    /// How many runs ended in doubt.
    pub(crate) doubts: u32,
    /// When the first of them did, in µs since 1970; 0 is none.
    pub(crate) doubted_at: u64,
    /// Whether the last one did.
    pub(crate) in_doubt: bool,
    /// Until when it may act, in µs since 1970; 0 is not said.
    pub(crate) acts_until: u64,
}

/// A row of `semel.renewal`.
#[derive(Clone, Copy, Debug)]
struct Renewal {
    fence: u64,
    lease_until: u64,
    expires_at: u64,
}

/// One key as it stands while its changes are read: the record and what was renewed last.
#[derive(Clone, Copy, Debug, Default)]
struct KeyState {
    record: Option<Version>,
    renewal: Option<Renewal>,
}

/// An effect, as a row of a handler's own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Of which key, by number.
    pub(crate) key: u32,
    pub(crate) born: u64,
    pub(crate) fence: u64,
    /// Which result was completed with it.
    pub(crate) nonce: Nonce,
}

// === impl History ===

impl History {
    /// Begins to write changes down.
    pub(crate) async fn begin(url: &str) -> anyhow::Result<()> {
        let schema = connect(url).await?;
        let made = schema.batch_execute(SCHEMA).await;
        made.context("cannot begin the history")
    }

    /// Ages records until it is dropped.
    pub(crate) async fn age(url: &str) -> anyhow::Result<()> {
        let client = connect(url).await?;
        client.batch_execute("SET race.ageing = on").await?;
        loop {
            client.batch_execute(AGE).await?;
            tokio::time::sleep(AGE_EVERY).await;
        }
    }

    /// Reads what was written down about these keys.
    pub(crate) async fn read(url: &str, keys: &[Key]) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        let numbers: HashMap<Vec<u8>, u32> = (0..)
            .zip(keys)
            .map(|(number, key)| (key.as_bytes().to_vec(), number))
            .collect();
        let number = |row: &Row, column| numbers.get(row.get::<_, &[u8]>(column)).copied();
        let mut history = Self::default();
        let mut keys: HashMap<u32, KeyState> = HashMap::new();
        for row in client.query(READ, &[]).await? {
            if let Some(key) = number(&row, 2) {
                let changes = history.changes.entry(key).or_default();
                changes.extend(keys.entry(key).or_default().change(&row)?);
            }
        }
        let effects = "SELECT key, born, fence, nonce FROM race.effect";
        for row in client.query(effects, &[]).await? {
            let key = number(&row, 0).context("an effect has a key of the race")?;
            history.effects.push(Effect {
                key,
                born: unsigned(row.get(1))?,
                fence: unsigned(row.get(2))?,
                nonce: Nonce(row.get::<_, &str>(3).parse()?),
            });
        }
        Ok(history)
    }
}

// === impl KeyState ===

impl KeyState {
    /// The next change of this key; `None` when a renewal was removed that made no difference any more.
    fn change(&mut self, row: &Row) -> anyhow::Result<Option<Change>> {
        let (at, aged, gone) = (unsigned(row.get(0))?, row.get(1), row.get(32));
        let renewal = Renewal::of(row, 29)?;
        if gone {
            return Ok(self.removed(renewal).map(|(old, new)| Change {
                at,
                aged,
                old: Some(old),
                new: Some(new),
            }));
        }
        let (old, new) = match renewal {
            None => (Version::of(row, 3)?, Version::of(row, 16)?),
            // A renewal of what is not there is nobody's: nothing changed into nothing.
            Some(renewal) => {
                let renewed = self.record.filter(|record| record.fence == renewal.fence);
                (renewed, renewed)
            }
        };
        let shown = old.map(|old| old.renewed(self.renewal));
        if renewal.is_some() {
            self.renewal = renewal;
        } else {
            self.record = new;
        }
        if old.zip(new).is_some_and(|(old, new)| new.is_husk_of(&old)) {
            self.renewal = None;
        }
        Ok(Some(Change {
            at,
            aged,
            old: shown,
            new: new.map(|new| new.renewed(self.renewal)),
        }))
    }

    /// What the record was shown as with the renewal, and is without; `None` when that is the same.
    fn removed(&mut self, removed: Option<Renewal>) -> Option<(Version, Version)> {
        let removed = removed.map(|renewal| renewal.fence);
        let last = self
            .renewal
            .take_if(|renewal| removed == Some(renewal.fence));
        let record = self.record?;
        let (old, new) = (record.renewed(last), record);
        (old != new).then_some((old, new))
    }
}

// === impl Renewal ===

impl Renewal {
    /// Reads the three columns from `first` on; `None` when the change is not a renewal.
    fn of(row: &Row, first: usize) -> anyhow::Result<Option<Self>> {
        let Some(fence) = row.get::<_, Option<i64>>(first) else {
            return Ok(None);
        };
        Ok(Some(Self {
            fence: unsigned(fence)?,
            lease_until: unsigned(row.get(first + 1))?,
            expires_at: unsigned(row.get(first + 2))?,
        }))
    }
}

// === impl Version ===

impl Version {
    /// The version with what a renewal of its own run adds to it.
    fn renewed(self, renewal: Option<Renewal>) -> Self {
        let Some(renewal) = renewal.filter(|renewal| renewal.fence == self.fence) else {
            return self;
        };
        let running = self.state == State::Running.number();
        let lease_until = if running { renewal.lease_until } else { 0 };
        Self {
            lease_until: self.lease_until.max(lease_until),
            expires_at: self.expires_at.max(renewal.expires_at),
            ..self
        }
    }

    /// Whether this is what `forget` left.
    fn is_husk_of(&self, old: &Self) -> bool {
        let waiting = self.state == State::Waiting.number();
        let ended = self.expires_at <= self.lease_until && self.result.is_none();
        self.fence == old.fence && waiting && ended
    }

    /// Reads the thirteen columns from `first` on; `None` when there was no record.
    fn of(row: &Row, first: usize) -> anyhow::Result<Option<Self>> {
        let Some(state) = row.get::<_, Option<i16>>(first) else {
            return Ok(None);
        };
        let owner: &str = row.get(first + 5);
        let half = owner.replace('-', "");
        let result: Option<&[u8]> = row.get(first + 8);
        Ok(Some(Self {
            state: u8::try_from(state)?,
            payload: super::call::digest(row.get(first + 1)),
            attempts: u32::try_from(row.get::<_, i32>(first + 2))?,
            born: unsigned(row.get(first + 3))?,
            fence: unsigned(row.get(first + 4))?,
            owner: OwnerId(u64::from_str_radix(half.get(..16).unwrap_or_default(), 16)?),
            lease_until: unsigned(row.get(first + 6))?,
            expires_at: unsigned(row.get(first + 7))?,
            result: result.map(|bytes| ResultId::of(&Bytes::copy_from_slice(bytes))),
            doubts: u32::try_from(row.get::<_, i32>(first + 9))?,
            in_doubt: row.get(first + 10),
            acts_until: unsigned(row.get::<_, Option<i64>>(first + 11).unwrap_or(0))?,
            doubted_at: unsigned(row.get::<_, Option<i64>>(first + 12).unwrap_or(0))?,
        }))
    }
}

fn unsigned(number: i64) -> anyhow::Result<u64> {
    u64::try_from(number).context("times and fences are positive")
}
