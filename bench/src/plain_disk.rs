//! What the embedded store is held against: plain writes to the same disk, and its engine alone.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use rand::RngCore;
use semel::Outcome;
use tempfile::TempDir;

use crate::disk;
use crate::first_run::{body, fresh_key};
use crate::load;
use crate::rounds::{Contender, Pace};

/// One thread that appends a record and syncs it before it goes on to the next.
pub(crate) struct AppendAndSync {
    pub(crate) file: File,
    _dir: TempDir,
}

/// One thread that writes batches to fjall, each synced before the next.
#[derive(Clone)]
pub(crate) struct FjallBatches {
    database: Database,
    keyspace: Keyspace,
    _dir: Arc<TempDir>,
}

/// About what a completed record takes.
pub(crate) const APPENDED_BYTES: usize = 300;

/// How many rows a batch has.
pub(crate) const BATCH_ROWS: usize = 100;

/// The first byte of a row's key; the record's key follows.
const KEY_MARK: &[u8] = b"r";

/// What a record takes without its result: state, attempts, fingerprint, two fences, owner and two times, between the
/// store's own version, flag, group and checksum.
const RECORD_BYTES: usize = 1 + 4 + 32 + 2 * 8 + 16 + 2 * 8 + 1 + 1 + 8 + 8;

/// The value of the row that a claim writes.
pub(crate) const fn claim_row_bytes() -> usize {
    RECORD_BYTES
}

/// The value of the row that a completion writes.
pub(crate) fn completion_row_bytes() -> usize {
    RECORD_BYTES + Outcome::ok(body()).encode().len()
}

// === impl AppendAndSync ===

impl AppendAndSync {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let dir = disk::directory()?;
        let file = File::create(dir.path().join("log")).context("cannot create a file")?;
        Ok(Self { file, _dir: dir })
    }
}

#[async_trait]
impl Contender for AppendAndSync {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let mut file = self.file.try_clone()?;
        load::blocking_rate(pace, move || append_and_sync(&mut file).map(|()| 1)).await
    }
}

// === impl FjallBatches ===

impl FjallBatches {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let dir = disk::directory()?;
        // Random bytes do not shrink, so trying would only slow it down.
        let database = Database::builder(dir.path())
            .journal_compression(CompressionType::None)
            .open()
            .context("cannot open fjall")?;
        let options = || {
            KeyspaceCreateOptions::default()
                .data_block_compression_policy(CompressionPolicy::disabled())
        };
        let keyspace = database
            .keyspace("rows", options)
            .context("cannot make a keyspace")?;
        Ok(Self {
            database,
            keyspace,
            _dir: Arc::new(dir),
        })
    }

    /// The rows of as many first runs as fit: half of them as claims write them, half as completions do.
    fn write(&self) -> anyhow::Result<u64> {
        let mut batch = self
            .database
            .batch()
            .durability(Some(PersistMode::SyncData));
        let claimed = random_bytes(RECORD_BYTES);
        while batch.len() < BATCH_ROWS {
            let completed = [claimed.as_slice(), &Outcome::ok(body()).encode()].concat();
            batch.insert(&self.keyspace, row_key(), claimed.as_slice());
            batch.insert(&self.keyspace, row_key(), completed);
        }
        let rows = batch.len();
        batch.commit()?;
        Ok(u64::try_from(rows)?)
    }
}

#[async_trait]
impl Contender for FjallBatches {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let batches = self.clone();
        load::blocking_rate(pace, move || batches.write()).await
    }
}

/// About what a completion costs the disk.
pub(crate) fn append_and_sync(file: &mut File) -> anyhow::Result<()> {
    file.write_all(&random_bytes(APPENDED_BYTES))?;
    Ok(file.sync_data()?)
}

fn row_key() -> Vec<u8> {
    [KEY_MARK, fresh_key().as_bytes()].concat()
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}
