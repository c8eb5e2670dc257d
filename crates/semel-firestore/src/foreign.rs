//! Documents among ours that somebody else has put there: whoever looks through a whole collection passes over them, and says
//! so once.

use semel::Error;
use std::collections::HashSet;
use std::sync::Mutex;

/// How many are remembered; beyond that, some are named again.
const NAMES_MAX: usize = 1_000;

/// Those that were named.
#[derive(Debug, Default)]
pub(crate) struct Foreign(Mutex<HashSet<String>>);

// === impl Foreign ===

impl Foreign {
    /// What was read of a document; nothing where it cannot be read, which is said the first time.
    pub(crate) fn pass_over<T>(&self, document: &str, read: Result<T, Error>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(error) => {
                let mut named = self.0.lock().expect("no holder of this lock panics");
                if named.len() >= NAMES_MAX {
                    named.clear();
                }
                if named.insert(document.to_owned()) {
                    tracing::error!(%error, "a document is passed over");
                }
                None
            }
        }
    }
}
