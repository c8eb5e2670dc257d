//! Opening a directory: hold it, make it or verify it, and only then let the engine see it.

use crate::clock::StoreClock;
use crate::codec::{self, HEAD, Head, Row};
use crate::engine::Engine;
use crate::failure::{self, corrupt, unavailable};
use crate::guard::{self, DATA, DATA_NEW, Guard};
use crate::recovery::{self, ActiveJournal, Flushed, Frontier};
use crate::store::EmbeddedSettings;
use fjall::config::CompressionPolicy;
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
};
use semel::Error;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// One keyspace holds all rows: then every group touches it, and a gap between tables and
/// journals can be seen.
const KEYSPACE: &str = "semel";

/// Blocks kept in memory. The filters of ten million keys take some 12 MiB and must stay here, or a
/// claim of a new key would read the disk; the rest is for the hottest records.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// How much is collected in memory before a table is written: some 30,000 records. More would
/// make fewer, larger tables but a longer start after a crash.
const MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;

/// All journals together; it bounds how much is read again after a crash.
const JOURNALS_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Threads that write and merge tables, beside the writer and the syncer.
const WORKERS: usize = 2;

/// An open store, not running yet.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) engine: Engine,
    pub(crate) journal: ActiveJournal,
    pub(crate) frontier: Frontier,
    /// The last group.
    pub(crate) group: u64,
    /// How many letters were ever put.
    pub(crate) letters: u64,
}

/// Opens the store in a directory; makes one if there is none.
pub(crate) fn open(directory: &Path, settings: EmbeddedSettings) -> Result<Opened, Error> {
    let guard = Guard::take(directory)?;
    let data = directory.join(DATA);
    create_if_absent(directory, &data, &guard)?;
    let mut frontier = Frontier::open(&data)?;
    let verified = recovery::verify(&data, &frontier)?;
    verified.cut_tail()?;
    let (database, keyspace) = open_engine(&data)?;
    let Row { value: head, group } = read_head(&data, &keyspace)?;
    verified
        .journals
        .join(flushed(&data, &keyspace)?, group, &frontier)
        .map_err(|how| corrupt(data.display(), how))?;
    // What a killed process had written but not synced is shown from now on, so it has to stay.
    database
        .persist(PersistMode::SyncAll)
        .map_err(|error| failure::from_engine("sync", &data, error))?;
    let mut journal = ActiveJournal::find(&data)?;
    frontier.reached(journal.sync()?, group)?;
    let clock = StoreClock::resume(settings.clock, head.clock);
    Ok(Opened {
        engine: Engine::new(
            database,
            keyspace,
            data,
            clock,
            settings.grace,
            group,
            guard,
        ),
        journal,
        frontier,
        group,
        letters: head.letters,
    })
}

fn create_if_absent(directory: &Path, data: &Path, guard: &Guard) -> Result<(), Error> {
    let cannot = |error| unavailable("look for", data, error);
    let marked = guard.is_marked()?;
    match (data.try_exists().map_err(cannot)?, marked) {
        (true, true) => Ok(()),
        (true, false) => guard.mark(),
        (false, true) => Err(guard::emptied(data)),
        (false, false) => {
            create(directory, data)?;
            guard.mark()
        }
    }
}

/// Makes an empty store beside its place and moves it there whole.
fn create(directory: &Path, data: &Path) -> Result<(), Error> {
    let new = directory.join(DATA_NEW);
    let cannot = |error| unavailable("create a store in", directory, error);
    if new.try_exists().map_err(cannot)? {
        std::fs::remove_dir_all(&new).map_err(cannot)?;
    }
    guard::make_private(&new).map_err(cannot)?;
    drop(create_engine(&new)?);
    Frontier::create(&new)?;
    let sync = |path: &Path| File::open(path)?.sync_all();
    sync(&new).map_err(cannot)?;
    std::fs::rename(&new, data).map_err(cannot)?;
    sync(directory).map_err(cannot)
}

fn create_engine(data: &Path) -> Result<(Database, Keyspace), Error> {
    let create = || {
        let database = builder(data).open()?;
        let keyspace = database.keyspace(KEYSPACE, options)?;
        database.persist(PersistMode::SyncAll)?;
        Ok((database, keyspace))
    };
    create().map_err(|error: fjall::Error| failure::from_engine("create", data, error))
}

/// Opens what was verified. The engine panics on some contradictions that files sound by
/// themselves can have; that is no reason to end the process.
fn open_engine(data: &Path) -> Result<(Database, Keyspace), Error> {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let database = builder(data).open()?;
        if !database.keyspace_exists(KEYSPACE) {
            return Ok(None);
        }
        let keyspace = database.keyspace(KEYSPACE, options)?;
        Ok(Some((database, keyspace)))
    }));
    match opened {
        Ok(Ok(Some(opened))) => Ok(opened),
        Ok(Ok(None)) => Err(corrupt(
            data.display(),
            format!("has no keyspace {KEYSPACE}"),
        )),
        Ok(Err(error)) => {
            let error: fjall::Error = error;
            Err(failure::from_engine("open", data, error))
        }
        Err(_) => Err(corrupt(data.display(), "contradicts itself")),
    }
}

fn builder(data: &Path) -> fjall::DatabaseBuilder<Database> {
    Database::builder(data)
        .cache_size(CACHE_BYTES)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        // Digests do not shrink, and the journal is verified without unpacking it.
        .journal_compression(CompressionType::None)
        .worker_threads(WORKERS)
}

/// The engine's defaults give every level a Bloom filter, so that a new key costs no read.
fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_compression_policy(CompressionPolicy::disabled())
}

/// The newest head row; a new store has none yet.
fn read_head(data: &Path, keyspace: &Keyspace) -> Result<Row<Head>, Error> {
    let bytes = keyspace
        .get(HEAD)
        .map_err(|error| failure::from_engine("read", data, error))?;
    match bytes {
        Some(bytes) => unseal_head(data, &bytes),
        None => Ok(Row {
            value: Head::default(),
            group: 0,
        }),
    }
}

/// The newest head row in the tables alone.
fn flushed(data: &Path, keyspace: &Keyspace) -> Result<Option<Flushed>, Error> {
    let mut newest = None;
    for table in keyspace.tree.current_version().iter_tables() {
        let head = fjall::Slice::from(HEAD);
        let Some(row) = table.range(head.clone()..=head).next() else {
            continue;
        };
        let row = row.map_err(|error| failure::from_engine("read", data, error.into()))?;
        let sequence = row.key.seqno;
        let Row { group, .. } = unseal_head(data, &row.value)?;
        newest = newest.max(Some((sequence, group)));
    }
    Ok(newest.map(|(sequence, group)| Flushed { sequence, group }))
}

fn unseal_head(data: &Path, bytes: &[u8]) -> Result<Row<Head>, Error> {
    codec::unseal(HEAD, bytes)
        .map_err(|damage| corrupt(format!("the head row in {}", data.display()), damage))
}
