//! What an operator does to a record. Each act also drops what this process remembers of the key. `by` says who and why, for
//! the record's history ([`act_by`](crate::protocol::act_by)); empty is nobody.

use super::Semel;
use crate::Key;
use crate::record::{Acted, Resolution};
use crate::store::{Error, StoreExt};
use bytes::Bytes;

impl Semel {
    /// An operator says what became of a parked run, or of the lapsed run that the resolution names.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn resolve(
        &self,
        key: &Key,
        how: &Resolution,
        by: impl Into<Bytes>,
    ) -> Result<Acted, Error> {
        let acted = self.store().resolve(key, how, by).await;
        self.inner.settled.drop_key(key);
        acted
    }

    /// An operator takes the right to run from whoever has it; that run is stale from then on.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn release(&self, key: &Key, by: impl Into<Bytes>) -> Result<Acted, Error> {
        let acted = self.store().release_by_operator(key, by).await;
        self.inner.settled.drop_key(key);
        acted
    }

    /// An operator makes a parked or failed record claimable again.
    ///
    /// # Errors
    /// Those of the store; `Unavailable` while the outcome of its last run is in hand here, because what is
    /// known is not run again.
    pub async fn redrive(&self, key: &Key, by: impl Into<Bytes>) -> Result<Acted, Error> {
        self.not_in_hand(key)?;
        let acted = self.store().redrive(key, by).await;
        self.inner.settled.drop_key(key);
        acted
    }

    /// An operator ends the incarnation of a key. Other processes may replay its outcome from
    /// memory for as long as their `shared_cache` says.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        let acted = self.store().forget(key).await;
        self.inner.settled.drop_key(key);
        acted
    }

    /// Sweeps the whole store once, window by window; says how many records went.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let (mut removed, mut after) = (0, None);
        loop {
            let swept = self.store().sweep(after.as_ref()).await?;
            removed += swept.removed;
            after = swept.next;
            if after.is_none() {
                return Ok(removed);
            }
        }
    }

    /// What is known is not run again.
    fn not_in_hand(&self, key: &Key) -> Result<(), Error> {
        if self.inner.outcomes.knows(key) {
            return Err(Error::unavailable(
                "the outcome of its last run is in hand and waits for the store; nothing was done, a retry is safe",
            ));
        }
        Ok(())
    }
}
