//! First runs on the embedded store against plain writes to the same disk, and against its engine alone.

use std::path::Path;
use std::sync::Arc;

use semel::{Semel, Settings, Store};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};

use crate::disk;
use crate::first_run::FirstRuns;
use crate::plain_disk::{
    APPENDED_BYTES, AppendAndSync, BATCH_ROWS, FjallBatches, claim_row_bytes, completion_row_bytes,
};
use crate::report::{Group, Row};
use crate::rounds::{Contenders, Pace, rounds};

const CALLERS: usize = 64;

/// A first run writes the claim and the completion.
const ROWS_PER_RUN: f64 = 2.0;

const SYNC_TARGET: f64 = 7.0;
const FJALL_TARGET: f64 = 0.3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Library,
    AppendAndSync,
    FjallBatches,
}

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let dir = disk::directory()?;
    let semel = Semel::with_settings(open(dir.path())?, Settings::default());
    let library = FirstRuns {
        semel,
        callers: CALLERS,
    };
    let contenders: Contenders<Id> = vec![
        (Id::Library, Box::new(library)),
        (Id::AppendAndSync, Box::new(AppendAndSync::new()?)),
        (Id::FjallBatches, Box::new(FjallBatches::new()?)),
    ];
    let rates = rounds(contenders, pace).await?;
    let runs = rates.of(Id::Library);
    let name = format!("{CALLERS} callers");
    let synced = ("append, sync", rates.of(Id::AppendAndSync));
    let batches = ("fjall", rates.of(Id::FjallBatches));
    Ok(Group {
        title: "Embedded: first runs",
        conditions: conditions(),
        rows: vec![
            Row::ratio(&name, "first runs; records", runs, synced, SYNC_TARGET),
            Row::ratio(
                &name,
                "rows",
                &runs.times(ROWS_PER_RUN),
                batches,
                FJALL_TARGET,
            ),
        ],
        facts: Vec::new(),
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
pub(crate) fn open(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    let store = EmbeddedStore::open(dir.join("store"), EmbeddedSettings::default())?;
    Ok(Arc::new(store))
}
