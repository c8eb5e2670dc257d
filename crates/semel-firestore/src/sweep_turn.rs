//! When a sweep begins: each reads every document, and reads are billed, so one is enough for all who share the
//! collections. Whoever begins one writes down when the next is due.

use crate::client::{Client, Failure};
use crate::index::until_fields;
use crate::names::Collection;
use crate::turn::Turns;
use crate::value::Reader;
use crate::writes::replace;
use semel::Error;
use semel::clock::Time;
use std::sync::Mutex;
use std::time::Duration;

/// The document in the index that says so. No name that is looked for begins like it.
const DOCUMENT: &str = "sweep";

/// Whose turn it is to sweep.
#[derive(Debug)]
pub(crate) struct SweepTurn {
    every: Duration,
    /// When the next one is due, as far as this process knows.
    due: Mutex<Option<Time>>,
}

// === impl SweepTurn ===

impl SweepTurn {
    pub(crate) const fn new(every: Duration) -> Self {
        Self {
            every,
            due: Mutex::new(None),
        }
    }

    /// Whether a sweep is due; then it is ours.
    pub(crate) async fn take(&self, client: &Client, timeout: Duration) -> Result<bool, Error> {
        let due = *self.due.lock().expect("no holder of this lock panics");
        if self.every.is_zero() {
            return Ok(true);
        }
        if let (Some(due), Some(now)) = (due, client.clock.now())
            && now < due
        {
            return Ok(false);
        }
        let mut turns = Turns::new(client, timeout);
        loop {
            match self.try_take(client, &mut turns).await {
                Ok((is_ours, due)) => {
                    *self.due.lock().expect("no holder of this lock panics") = Some(due);
                    return Ok(is_ours);
                }
                Err(failure) => turns.after(failure).await?,
            }
        }
    }

    /// Whether it is ours, and when the next one is due.
    async fn try_take(
        &self,
        client: &Client,
        turns: &mut Turns<'_>,
    ) -> Result<(bool, Time), Failure> {
        let name = client.names.document(Collection::Index, DOCUMENT);
        let seen = client.read(vec![name.clone()], turns.within()).await?;
        let found = seen.documents.into_iter().next().flatten();
        let due = found.as_ref().map(|document| Reader { document });
        let due = due.map(|it| it.time("expires_at")).transpose()?;
        if let Some(due) = due.filter(|due| seen.now < *due) {
            return Ok((false, due));
        }
        let next = seen.now.plus(self.every);
        let version = found.and_then(|it| it.update_time);
        let writes = vec![replace(name, until_fields(next), version)];
        client.commit(writes, turns.within()).await?;
        Ok((true, next))
    }
}
