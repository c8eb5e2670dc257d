//! First runs on the embedded store against plain writes to the same disk, and against its engine alone.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use semel::store::Letters;
use semel::{Semel, Settings};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};

use crate::disk;
use crate::first_run::FirstRuns;
use crate::plain_disk::{
    APPENDED_BYTES, AppendAndSync, BATCH_ROWS, FjallBatches, claim_row_bytes, completion_row_bytes,
};
use crate::report::{Group, Row, Target};
use crate::rounds::{Pace, rounds};

const CALLERS: usize = 64;

/// A first run writes the claim and the completion.
const ROWS_PER_RUN: f64 = 2.0;

const SYNC_TARGET: Target = Target::RatioAtLeast(7.0);
const FJALL_TARGET: Target = Target::RatioAtLeast(0.3);

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let dir = disk::directory()?;
    let semel = Semel::with_settings(open(dir.path())?, Settings::default());
    let library = FirstRuns {
        semel,
        callers: CALLERS,
        label: Bytes::new(),
    };
    let [runs, synced, batches] = rounds(
        [
            ("the library", Box::new(library)),
            ("append, sync", Box::new(AppendAndSync::new()?)),
            ("fjall", Box::new(FjallBatches::new()?)),
        ],
        pace,
    )
    .await?;
    let records = Row::rate(format!("{CALLERS} callers (first runs; records)"), &runs);
    let rows = runs.times(ROWS_PER_RUN);
    let rows = Row::rate(format!("{CALLERS} callers (rows)"), &rows);
    Ok(Group {
        title: "Embedded: first runs",
        conditions: conditions(),
        rows: vec![
            records.beside("append, sync", &synced).judged(SYNC_TARGET),
            rows.beside("fjall", &batches).judged(FJALL_TARGET),
        ],
    })
}

fn conditions() -> Vec<String> {
    vec![
        "A directory on the disk of the project; a completion is answered after its sync."
            .to_owned(),
        format!("Append, sync: one thread, {APPENDED_BYTES} B and fdatasync for each record."),
        format!(
            "fjall: one thread, batches of {BATCH_ROWS} rows, one SyncData for each batch, without compression; 33 B of \
             key, values of {} B and {} B in turn, as a first run's two rows have.",
            claim_row_bytes(),
            completion_row_bytes()
        ),
    ]
}

/// A new store in a directory.
pub(crate) fn open(dir: &Path) -> anyhow::Result<Arc<dyn Letters>> {
    let store = EmbeddedStore::open(dir.join("store"), EmbeddedSettings::default())?;
    Ok(Arc::new(store))
}
