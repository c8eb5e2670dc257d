//! What forgetting removes beside the record.

use crate::client::{Client, Failure};
use crate::names::{Collection, steps_of};
use crate::parts::Parts;
use crate::query;
use crate::turn::Turns;
use crate::value::Reader;
use crate::writes::delete;
use semel::Key;
use semel::clock::Time;
use semel::protocol::{Fence, Record, State};

/// How many steps of a forgotten incarnation are deleted at a time.
const STEPS_MAX: u32 = 300;

/// What is read of them: where their large results are.
const PARTS: [&str; 2] = ["parts", "part_id"];

/// Whether it is what forgetting leaves: an earlier turn may have come that far, and no further. Nobody can begin a step of a
/// record that waits, and whoever claims it once it has expired begins anew.
pub(crate) fn is_husk(record: &Record, now: Time) -> bool {
    record.state == State::Waiting && record.expired(now)
}

/// What ends with an incarnation that an operator ended. No run of it can write another step.
pub(crate) async fn delete_steps(
    client: &Client,
    key: &Key,
    born: Fence,
    turns: &mut Turns<'_>,
) -> Result<(), Failure> {
    let first = client
        .names
        .document(Collection::Steps, &steps_of(key, born));
    loop {
        let steps = query::beginning_with(client, Collection::Steps, &first, &PARTS, STEPS_MAX);
        let rows = client.query(steps, turns.within()).await?;
        let Some(full) = u32::try_from(rows.documents.len())
            .ok()
            .filter(|it| *it > 0)
        else {
            return Ok(());
        };
        let mut deletes = Vec::new();
        for step in rows.documents {
            // Its parts go with it: nobody could say later whose they were.
            if let Some(parts) = Parts::read(Reader { document: &step })? {
                let parts = parts.documents(client).into_iter();
                deletes.extend(parts.map(|part| delete(part, None)));
            }
            deletes.push(delete(step.name, None));
        }
        client.commit(deletes, turns.within()).await?;
        if full < STEPS_MAX {
            return Ok(());
        }
    }
}
