//! Letters of tasks: kept, listed, redriven and closed in the store of their records.

use crate::error;
use crate::home::{Inner, stopped};
use crate::terms::Terms;
use crate::wait;
use bytes::Bytes;
use pyo3::prelude::*;
use semel::letter::{
    Attempt, KeepDecision, Letter, LetterHead, LetterId, Mark, Put, Reason, Standing,
};
use semel::protocol::{Acted, Fence, State};
use semel::store::{Letters, StoreExt};
use semel::{Error, Fingerprint, Key};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::oneshot;

/// How many letters are read at once.
const PAGE: u32 = 100;

/// A letter for Python: its id, its reason, how it stands, and its delivery.
pub(crate) type Shown = (String, &'static str, String, Vec<u8>);

/// What is to be kept.
pub(crate) struct Given {
    pub(crate) route: String,
    pub(crate) reason: Reason,
    pub(crate) identity: Option<(Key, Fingerprint)>,
    /// The message's own id, for one that has no key.
    pub(crate) transport: String,
    pub(crate) retention: std::time::Duration,
    /// The fence of its own run, if it ran.
    pub(crate) ran: Option<Fence>,
    pub(crate) delivery: Bytes,
}

/// What became of a letter.
pub(crate) enum Kept {
    Yes(LetterId),
    /// Its work has succeeded, or an operator discarded it.
    NothingToKeep,
    /// What its message was told of is not decided yet: it must come again.
    Unsettled,
}

// === impl Given ===

impl Given {
    pub(crate) fn new(
        py: Python<'_>,
        terms: &Terms,
        payloads: Option<(Vec<u8>, Vec<u8>)>,
        transport: String,
        reason: &str,
        delivery: Vec<u8>,
    ) -> PyResult<Self> {
        let reasons = [
            Reason::Parked,
            Reason::Failed,
            Reason::Mismatched,
            Reason::Invalid,
        ];
        let Some(reason) = reasons.into_iter().find(|it| it.word() == reason) else {
            return Err(error::of_setting(
                py,
                &format!("{reason:?} is not why a letter is kept"),
            ));
        };
        let identity = payloads.and_then(|(payload, own)| terms.identify(&payload, &own).ok());
        Ok(Self {
            route: terms.route().into(),
            reason,
            identity: identity.map(|it| (it.key, it.fingerprint)),
            transport,
            retention: terms.retention(),
            ran: None,
            delivery: delivery.into(),
        })
    }

    fn letter(self, reason: Reason, fence: Fence) -> Letter {
        let id = match &self.identity {
            Some((key, fingerprint)) => LetterId::of_key(reason, key, fingerprint),
            None => {
                LetterId::of_delivery(reason, &self.transport, &Fingerprint::of(&self.delivery))
            }
        };
        Letter {
            id,
            key: self.identity.map(|(key, _)| key),
            route: self.route,
            reason,
            fence,
            retention: self.retention,
            redriven: false,
            alarmed: false,
            delivery: self.delivery,
        }
    }
}

/// Keeps a letter.
pub(crate) fn keep(py: Python<'_>, inner: &Inner, given: Given) -> PyResult<Kept> {
    let letters = Arc::clone(&inner.store);
    ask(py, inner, async move {
        let (reason, fence) = match given.identity {
            None => (given.reason, Fence(0)),
            Some((key, fingerprint)) => {
                let record = letters.look(&key).await?;
                // A message that is not acknowledged comes again.
                match KeepDecision::of(
                    given.reason,
                    record.as_ref(),
                    &fingerprint,
                    given.ran,
                    Attempt::OneOfMany,
                ) {
                    KeepDecision::Keep(reason, fence) => (reason, fence),
                    KeepDecision::Succeeded => return Ok(Kept::NothingToKeep),
                    KeepDecision::Unsettled => return Ok(Kept::Unsettled),
                }
            }
        };
        let letter = given.letter(reason, fence);
        match letters.put(&letter).await? {
            Put::Applied | Put::Already => Ok(Kept::Yes(letter.id)),
            Put::Closed => Ok(Kept::NothingToKeep),
        }
    })
}

/// All open letters, oldest first. One whose work has succeeded meanwhile is closed and left out.
pub(crate) fn list(py: Python<'_>, inner: &Inner) -> PyResult<Vec<Shown>> {
    let letters = Arc::clone(&inner.store);
    ask(py, inner, async move {
        let (mut shown, mut after) = (Vec::new(), None);
        loop {
            let page = Letters::list(letters.as_ref(), after.as_ref(), PAGE).await?;
            for head in &page.items {
                shown.extend(show(letters.as_ref(), head).await?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(shown);
            }
        }
    })
}

async fn show(letters: &dyn Letters, head: &LetterHead) -> Result<Option<Shown>, Error> {
    let Some(letter) = letters.get(&head.id).await? else {
        return Ok(None);
    };
    let record = letters.look(&head.work_key()).await?;
    let standing = match head.standing(record.as_ref()) {
        Standing::Succeeded => {
            // Somebody else may have closed it.
            let _closed = letters.mark(&head.id, Mark::Closed).await?;
            return Ok(None);
        }
        Standing::Unfinished(state) => state.word().to_owned(),
        Standing::NotRun => "not run".into(),
        Standing::Unknown => "unknown".into(),
    };
    let delivery = letter.delivery.to_vec();
    Ok(Some((
        head.id.to_string(),
        head.reason.word(),
        standing,
        delivery,
    )))
}

/// Closes a letter.
pub(crate) fn close(py: Python<'_>, inner: &Inner, id: &str) -> PyResult<()> {
    let (letters, id) = (Arc::clone(&inner.store), read_id(py, id)?);
    ask(py, inner, async move {
        letters.mark(&id, Mark::Closed).await.map(drop)
    })
}

/// Makes the work of a letter claimable again: whoever calls then publishes its message.
pub(crate) fn redrive(py: Python<'_>, inner: &Inner, id: &str, run_again: bool) -> PyResult<()> {
    let (letters, id) = (Arc::clone(&inner.store), read_id(py, id)?);
    let semel = inner.semel.clone();
    let refused = ask(py, inner, async move {
        let Some(letter) = letters.get(&id).await? else {
            return Ok(Some("it is closed, or was never kept"));
        };
        let head = letter.head(semel::clock::Time(0));
        let record = letters.look(&head.work_key()).await?;
        let claimable = match head.standing(record.as_ref()) {
            Standing::Succeeded => {
                let _closed = letters.mark(&id, Mark::Closed).await?;
                return Ok(Some(
                    "its work has succeeded, so it is closed now; nothing was published",
                ));
            }
            Standing::Unfinished(State::Running) => {
                return Ok(Some("its work is running; nothing was published"));
            }
            Standing::Unknown if !run_again => {
                return Ok(Some(
                    "its record is gone, so nobody knows whether it has run: look, then discard it or pass run_again=True; \
                     nothing was published",
                ));
            }
            Standing::Unfinished(State::Parked | State::Failed) => false,
            Standing::Unfinished(State::Waiting | State::Succeeded)
            | Standing::NotRun
            | Standing::Unknown => true,
        };
        // Before anything may run because of it.
        let _marked = letters.mark(&id, Mark::Redriven).await?;
        if claimable {
            return Ok(None);
        }
        Ok(match semel.redrive(&head.work_key(), "redrive").await? {
            Acted::Applied | Acted::Gone(_) => None,
            Acted::Refused => {
                Some("its record has changed meanwhile; look again, nothing was published")
            }
        })
    })?;
    match refused {
        None => Ok(()),
        Some(why) => Err(error::of_setting(
            py,
            &format!("letter {id} is not redriven: {why}"),
        )),
    }
}

pub(crate) fn read_id(py: Python<'_>, id: &str) -> PyResult<LetterId> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(id, &mut bytes).map_err(|_| {
        let message = format!("{id:?} is not the id of a letter: it has 64 hex digits");
        error::of_setting(py, &message)
    })?;
    Ok(LetterId(bytes))
}

/// Asks the store on the runtime, and waits.
fn ask<T: Send + 'static>(
    py: Python<'_>,
    inner: &Inner,
    asks: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> PyResult<T> {
    let (answers, answer) = oneshot::channel();
    inner.runtime.spawn(async move { answers.send(asks.await) });
    let answered = wait::listening(py, answer)?.map_err(|_| stopped())?;
    answered.map_err(|error| error::of_store(py, &error))
}
