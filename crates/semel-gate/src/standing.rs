//! How a letter stands: derived from the record of its work by whoever looks, never written where keys
//! settle. So it also covers other gates, operators and handlers that complete by themselves.

use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Standing};
use semel::{Error, Key, Store};

/// Looks at the record of a letter's work; a letter whose work has succeeded is closed.
pub(crate) async fn look(store: &dyn Store, head: &LetterHead) -> Result<Standing, Error> {
    let record = store.look(&head.work_key()).await?;
    settle(
        store,
        &head.id,
        &head.work_key(),
        head.standing(record.as_ref()),
    )
    .await
}

/// The same for a whole letter.
pub(crate) async fn look_at(store: &dyn Store, letter: &Letter) -> Result<Standing, Error> {
    let record = store.look(&letter.work_key()).await?;
    let standing = letter.standing(record.as_ref());
    settle(store, &letter.id, &letter.work_key(), standing).await
}

async fn settle(
    store: &dyn Store,
    id: &LetterId,
    key: &Key,
    standing: Standing,
) -> Result<Standing, Error> {
    match standing {
        Standing::Succeeded => {}
        Standing::Unfinished(_) | Standing::NotRun | Standing::Unknown => return Ok(standing),
    }
    match store.letter_mark(id, Mark::Closed).await? {
        Marked::Applied => {
            tracing::info!(letter = %id, %key, "a letter is closed: its work has succeeded");
        }
        // Somebody else was first.
        Marked::Gone => {}
    }
    Ok(standing)
}
