//! `FirestoreStore`: the store, whose every operation is a few turns of read, decide, commit.

use crate::apply::apply;
use crate::belief::Beliefs;
use crate::client::Client;
use crate::settings::FirestoreSettings;
use crate::sweep_turn::{Begin, SweepTurn};
use crate::{index, letters, list, steps, sweep};
use async_trait::async_trait;
use semel::letter::{self, Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, StoreExt, Swept};
use semel::{Error, Key, Store};
use std::time::Duration;

/// It is somebody else's turn, or nobody's.
const NOTHING_SWEPT: Swept = Swept {
    removed: 0,
    next: None,
};

/// A store in a Firestore database. See the [crate] for what it needs.
#[derive(Debug)]
pub struct FirestoreStore {
    client: Client,
    beliefs: Option<Beliefs>,
    timeout: Duration,
    sweep_turn: SweepTurn,
}

// === impl FirestoreStore ===

impl FirestoreStore {
    /// Connects, after a write that leaves nothing has shown that the database can keep records.
    ///
    /// # Errors
    /// `Invalid` when a setting is wrong: the database is not there, is in Datastore mode, or is not ours to write, say.
    /// `Unavailable` when it cannot be asked.
    pub async fn connect(settings: FirestoreSettings) -> Result<Self, Error> {
        let client = Client::new(&settings)?;
        let store = Self {
            client,
            beliefs: settings.guess.then(Beliefs::default),
            timeout: settings.timeout,
            sweep_turn: SweepTurn::new(settings.sweep_every),
        };
        // Reading says what is wrong with the database, writing what is wrong with our rights.
        let looked = store.look(&Key::from_bytes([0; 32])).await;
        looked.map_err(at_start)?;
        store.ready().await.map_err(at_start)?;
        Ok(store)
    }

    /// Where records are, in one phrase.
    #[must_use]
    pub fn place(&self) -> String {
        self.client.place.to_string()
    }

    /// For tests: how many calls were made.
    #[doc(hidden)]
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.client.calls()
    }

    /// For tests: from now on the server's clock counts as this much further.
    #[doc(hidden)]
    pub fn let_pass(&self, by: Duration) {
        self.client.clock.let_pass(by);
    }
}

/// At a start, what is denied is a mistake in the settings.
fn at_start(error: Error) -> Error {
    match error {
        Error::Denied(why) => Error::Invalid(why),
        Error::Unavailable(_) | Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_) => error,
    }
}

#[async_trait]
impl Store for FirestoreStore {
    fn sharing(&self) -> Sharing {
        Sharing::Shared
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        operation.validate()?;
        let (client, timeout) = (&self.client, self.timeout);
        if let Operation::Steps(key) = operation {
            return steps::show(client, key, timeout).await.map(Answer::Steps);
        }
        if let Operation::Index { key, ids, keep } = operation {
            let kept = index::keep(client, key, ids, *keep, timeout).await;
            return kept.map(|()| Answer::Indexed);
        }
        if let Operation::Find(id) = operation {
            return index::find(client, id, timeout).await.map(Answer::Found);
        }
        apply(&self.client, self.beliefs.as_ref(), operation, self.timeout).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        list::list(&self.client, state, after, limit, self.timeout).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        let (client, turn, timeout) = (&self.client, &self.sweep_turn, self.timeout);
        if !turn.is_shared() {
            return sweep::sweep(client, after, timeout).await;
        }
        let left = match after {
            Some(_) => None,
            None => match turn.begin(client, timeout).await? {
                Begin::From(left) => left,
                Begin::NotYet => return Ok(NOTHING_SWEPT),
            },
        };
        let swept = sweep::sweep(client, after.or(left.as_ref()), timeout).await?;
        let Some(next) = &swept.next else {
            turn.finish(client, timeout).await?;
            return Ok(swept);
        };
        let is_ours = turn.reach(client, next, timeout).await?;
        Ok(Swept {
            next: swept.next.filter(|_| is_ours),
            ..swept
        })
    }
}

#[async_trait]
impl Letters for FirestoreStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        let put = |stored: Option<&_>, now| letter::put(stored, letter, now);
        letters::change(&self.client, &letter.id, put, self.timeout).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        letters::list(&self.client, after, limit, self.timeout).await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        letters::get(&self.client, id, self.timeout).await
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        let decide = |stored: Option<&_>, now| letter::mark(stored, mark, now);
        letters::change(&self.client, id, decide, self.timeout).await
    }
}
