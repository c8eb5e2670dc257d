//! Opening the store that a URL names.

use semel::Error;
use semel::memory::MemoryStore;
use semel::store::Letters;
use std::sync::Arc;

/// As the command opens it; and `memory:`, which is for tests of functions.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Letters>, Error> {
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::new()));
    }
    semel_cli::open_store(url).await
}
