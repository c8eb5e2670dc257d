//! The evidence: everything a case left behind, gathered once it has ended.

use super::case::Case;
use super::downstream::{Charge, Downstream};
use super::drive::DriveLog;
use crate::harness::{Event, Ledger, WorkId};
use semel::protocol::{Record, State};
use semel::store::StoreExt;
use semel::{Key, Store};
use std::collections::{BTreeMap, HashMap};

/// Everything a case left behind.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) case: Case,
    /// Deliveries and faults.
    pub(crate) drive: DriveLog,
    /// What each process wrote, by its number.
    pub(crate) ledgers: BTreeMap<u32, Vec<Event>>,
    pub(crate) charges: Vec<Charge>,
    /// The effects that were committed together with their completion.
    pub(crate) rows: Vec<EffectRow>,
    pub(crate) records: BTreeMap<WorkId, Record>,
    /// The work that the store lists as parked.
    pub(crate) parked: Vec<WorkId>,
}

/// An effect as a row of the handler's own table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EffectRow {
    pub(crate) work: WorkId,
    pub(crate) fence: u64,
    /// Drawn for this one execution.
    pub(crate) nonce: String,
}

// === impl Evidence ===

impl Evidence {
    /// Gathers it. Nobody else may have the store open.
    pub(crate) async fn gather(
        case: &Case,
        drive: DriveLog,
        downstream: &Downstream,
    ) -> anyhow::Result<Self> {
        let store = case.location.open().await?;
        let ledgers = (0..drive.processes)
            .map(|process| Ok((process, Ledger::read(&case.dir, process)?)))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            case: case.clone(),
            ledgers,
            charges: downstream.charges(),
            rows: super::transaction::rows(case).await?,
            records: records(case, drive.works, store.as_ref()).await?,
            parked: parked(case, drive.works, store.as_ref()).await?,
            drive,
        })
    }

    /// How many records ended in this state.
    pub(crate) fn in_state(&self, state: State) -> usize {
        let records = self.records.values();
        records.filter(|record| record.state == state).count()
    }

    /// How many deliveries there were whose process died before it answered.
    pub(crate) fn unknown(&self) -> usize {
        self.drive.sent.iter().filter(|sent| sent.unknown).count()
    }
}

async fn records(
    case: &Case,
    works: u32,
    store: &dyn Store,
) -> anyhow::Result<BTreeMap<WorkId, Record>> {
    let mut records = BTreeMap::new();
    for work in (0..works).map(WorkId) {
        if let Some(record) = store.look(&case.key(work)?).await? {
            records.insert(work, record);
        }
    }
    Ok(records)
}

async fn parked(case: &Case, works: u32, store: &dyn Store) -> anyhow::Result<Vec<WorkId>> {
    let keys = (0..works).map(|work| Ok((case.key(WorkId(work))?, WorkId(work))));
    let ours: HashMap<Key, WorkId> = keys.collect::<anyhow::Result<_>>()?;
    let (mut parked, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(Some(State::Parked), after.as_ref(), 100).await?;
        parked.extend(page.items.iter().filter_map(|(key, _)| ours.get(key)));
        after = page.next;
        if after.is_none() {
            parked.sort_unstable();
            return Ok(parked);
        }
    }
}
