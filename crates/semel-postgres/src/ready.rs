//! Whether the server takes writes now.

use crate::connections::Connections;
use crate::errors::QueryError;
use crate::statement::{READY, ROOM};
use semel::Error;

/// Writes one small row. After a write that found the disk full, makes sure that there is room for a larger one, too: a
/// row of its own size fits into the page it had.
pub(crate) async fn check(connections: &Connections) -> Result<(), Error> {
    if connections.found_full() {
        connections.query(&ROOM, &[]).await?;
        connections.found_room();
    }
    match connections.query(&READY, &[]).await {
        // Another gate is writing it, so it can be written.
        Ok(_) | Err(QueryError::Held | QueryError::Again) => Ok(()),
        Err(error @ (QueryError::Failed(_) | QueryError::Broken(_))) => Err(error.into()),
    }
}
