//! What is read beside records: the steps of an incarnation, and the keys under a transport id.

use crate::codec::{self, FoundUntil, Outline, RowKey};
use crate::engine::Engine;
use crate::store::EmbeddedStore;
use semel::protocol::StepRecord;
use semel::store::{FOUND_KEYS_MAX, STEPS_SHOWN_MAX, index_digest, shown_step};
use semel::{Error, Key};

/// How many ended entries go in one request: the writer is busy with them for about a millisecond.
const CHUNK_ITEMS_MAX: usize = 64;

impl EmbeddedStore {
    /// Removes what the index has kept for long enough.
    pub(crate) async fn sweep_index(&self) -> Result<(), Error> {
        loop {
            let rows = self.read(ended).await?;
            let found = rows.len();
            self.ask(move |group| group.sweep_index(&rows)).await?;
            if found < CHUNK_ITEMS_MAX {
                return Ok(());
            }
        }
    }
}

/// The oldest entries that have ended.
fn ended(engine: &Engine) -> Result<Vec<RowKey>, Error> {
    let range = codec::unindexes(engine.now());
    let rows = engine.keyspace.range::<RowKey, _>(range);
    rows.take(CHUNK_ITEMS_MAX)
        .map(|row| row.key())
        .collect::<Result<_, _>>()
        .map_err(|error| engine.engine_error("read", error))
}

/// The steps of the incarnation that is there, by name.
pub(crate) fn steps(engine: &Engine, key: &Key) -> Result<Vec<(String, StepRecord)>, Error> {
    let row = engine.row::<Outline>(&codec::record(key))?;
    let record = row.map(|row| row.value.0);
    let Some(record) = record.filter(|record| !record.expired(engine.now())) else {
        return Ok(Vec::new());
    };
    let mut steps = Vec::new();
    for row in engine.keyspace.prefix(codec::steps(key, record.born)) {
        let row = row.into_inner();
        let (at, bytes) = row.map_err(|error| engine.engine_error("read", error))?;
        if let Some(name) = codec::step_name(&at) {
            let step = engine.unseal::<StepRecord>(&at, &bytes)?.value;
            steps.push((name.to_owned(), shown_step(step)));
        }
        if steps.len() == STEPS_SHOWN_MAX {
            break;
        }
    }
    Ok(steps)
}

/// The keys under a transport id.
pub(crate) fn find(engine: &Engine, id: &[u8]) -> Result<Vec<Key>, Error> {
    let (prefix, now) = (codec::index_of(&index_digest(id)), engine.now());
    let mut keys = Vec::new();
    for row in engine.keyspace.prefix(prefix) {
        let row = row.into_inner();
        let (at, bytes) = row.map_err(|error| engine.engine_error("read", error))?;
        let until = engine.unseal::<FoundUntil>(&at, &bytes)?.value;
        keys.extend(codec::index_key(&at).filter(|_| until.0 > now));
        if keys.len() == FOUND_KEYS_MAX {
            break;
        }
    }
    Ok(keys)
}
