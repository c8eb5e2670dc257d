//! What callers ask of the writer, and what they are told.

use crate::due::DueRow;
use bytes::Bytes;
use semel::letter::{Letter, LetterId, Mark, Marked, Put};
use semel::record::{Acted, Answer, Claimed, Held, Lease, Operation, Record, StepBegun};
use semel::{Error, Key};
use tokio::sync::oneshot;

/// One call of the store that may write.
#[derive(Debug)]
pub(crate) enum Request {
    /// An operation on the record of a key.
    Record(Key, Operation),
    /// An operation on a step of a run.
    Step(Lease, String, StepAct),
    /// Keep a letter.
    LetterPut(Letter),
    /// Mark a letter.
    LetterMark(LetterId, Mark),
    /// Remove those of these letters whose tombstones have expired.
    SweepLetters(Vec<LetterId>),
    /// Take up what is due: remove those records that may still be swept.
    Sweep(Vec<DueRow>),
    /// Write something and sync it, to know that it can be done.
    Probe,
}

/// What is done to a step.
#[derive(Debug)]
pub(crate) enum StepAct {
    Begin,
    Restart,
    Complete(Bytes),
}

/// The answer to a [`Request`], of the kind that belongs to it.
#[derive(Debug)]
pub(crate) enum Reply {
    Record(Answer),
    Begun(StepBegun),
    Held(Held),
    Put(Put),
    Marked(Marked),
    Swept(u64),
    Probed,
}

/// A request that waits for its reply.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) request: Request,
    pub(crate) caller: Caller,
}

/// Whoever waits for a reply.
#[derive(Debug)]
pub(crate) struct Caller(oneshot::Sender<Result<Reply, Error>>);

// === impl Reply ===

impl Reply {
    pub(crate) fn claimed(self) -> Result<Claimed, Error> {
        let Self::Record(Answer::Claimed(claimed)) = self else {
            return Err(mixed_up());
        };
        Ok(claimed)
    }

    /// The answer to a write under a lease, on a record or on a step.
    pub(crate) fn held(self) -> Result<Held, Error> {
        let (Self::Record(Answer::Held(held)) | Self::Held(held)) = self else {
            return Err(mixed_up());
        };
        Ok(held)
    }

    pub(crate) fn looked(self) -> Result<Option<Record>, Error> {
        let Self::Record(Answer::Looked(record)) = self else {
            return Err(mixed_up());
        };
        Ok(record)
    }

    pub(crate) fn acted(self) -> Result<Acted, Error> {
        let Self::Record(Answer::Acted(acted)) = self else {
            return Err(mixed_up());
        };
        Ok(acted)
    }

    pub(crate) fn begun(self) -> Result<StepBegun, Error> {
        let Self::Begun(begun) = self else {
            return Err(mixed_up());
        };
        Ok(begun)
    }

    pub(crate) fn put(self) -> Result<Put, Error> {
        let Self::Put(put) = self else {
            return Err(mixed_up());
        };
        Ok(put)
    }

    pub(crate) fn marked(self) -> Result<Marked, Error> {
        let Self::Marked(marked) = self else {
            return Err(mixed_up());
        };
        Ok(marked)
    }

    pub(crate) fn probed(self) -> Result<(), Error> {
        let Self::Probed = self else {
            return Err(mixed_up());
        };
        Ok(())
    }

    pub(crate) fn swept(self) -> Result<u64, Error> {
        let Self::Swept(swept) = self else {
            return Err(mixed_up());
        };
        Ok(swept)
    }
}

fn mixed_up() -> Error {
    Error::Bug("the writer gave the answer to another question".to_owned())
}

// === impl Pending ===

impl Pending {
    /// A request and where its reply will arrive.
    pub(crate) fn new(request: Request) -> (Self, oneshot::Receiver<Result<Reply, Error>>) {
        let (sender, receiver) = oneshot::channel();
        let caller = Caller(sender);
        (Self { request, caller }, receiver)
    }
}

// === impl Caller ===

impl Caller {
    /// Tells the caller; one that hung up is not missed.
    pub(crate) fn tell(self, reply: Result<Reply, Error>) {
        drop(self.0.send(reply));
    }
}
