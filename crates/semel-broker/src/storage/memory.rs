//! Rows in memory.

use super::{Batch, Row, scan_start};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::RwLock;

#[derive(Debug, Default)]
pub(super) struct Memory {
    rows: RwLock<BTreeMap<Vec<u8>, Bytes>>,
}

// === impl Memory ===

impl Memory {
    pub(super) fn commit(&self, batch: Batch) {
        let mut rows = self.rows.write().expect("nobody panics holding it");
        for change in batch.changes {
            match change.value {
                // A value may be a part of a request; a copy lets go of the rest.
                Some(value) => rows.insert(change.key, Bytes::copy_from_slice(&value)),
                None => rows.remove(&change.key),
            };
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Bytes> {
        let rows = self.rows.read().expect("nobody panics holding it");
        rows.get(key).cloned()
    }

    pub(super) fn scan(&self, prefix: &[u8], after: Option<Vec<u8>>, limit: usize) -> Vec<Row> {
        let rows = self.rows.read().expect("nobody panics holding it");
        rows.range((scan_start(prefix, after), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(limit)
            .map(|(key, value)| Row {
                key: Bytes::copy_from_slice(key.get(1..).unwrap_or_default()),
                value: value.clone(),
            })
            .collect()
    }
}
