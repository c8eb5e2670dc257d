//! One group: calls that are decided one after the other and written as one batch.

mod letters;
mod due;
mod index;

use crate::codec::{self, Decode, Encode, Head, History, Incarnation, Row, RowKey};
use crate::durability::waits_for_disk;
use crate::engine::Engine;
use fjall::{OwnedWriteBatch, PersistMode, Slice};
use semel::clock::Time;
use semel::protocol::{Answer, Fence, Operation, Record, State, StepRecord, Superseded, decide};
use semel::{Error, Key};
use std::collections::{BTreeMap, HashMap};

/// How many running records are remembered: some 16 MiB.
const RUNNING_ITEMS_MAX: usize = 32_768;

/// Rows by their keys. The standard hasher, because senders have a hand in the keys.
type Rows<T> = HashMap<RowKey, T>;

/// What is decided so far, not yet written.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    engine: &'a Engine,
    number: u64,
    now: Time,
    letters: u64,
    /// What later calls of the group find. One change per row also keeps the batch free of two
    /// values under one key, whose order the engine would not promise.
    changes: Rows<Change>,
    running: &'a mut Running,
    /// What is to be looked at, and when.
    due: BTreeMap<Time, Vec<Incarnation>>,
    scratch: Vec<u8>,
}

/// What becomes of a row.
#[derive(Debug)]
enum Change {
    /// Kept; a run holds it, and comes back to say how it ended.
    Running(Slice),
    Kept(Slice),
    Removed,
}

/// The rows of running records that were written last: one writer may trust its memory, and is
/// spared half of its searches.
#[derive(Debug, Default)]
pub(crate) struct Running(Rows<Slice>);

/// An answer, and the group that must be on disk before it is given.
#[derive(Debug)]
pub(crate) struct Decided<A> {
    pub(crate) answer: A,
    pub(crate) after: u64,
}

// === impl Group ===

impl<'a> Group<'a> {
    /// An empty group with room for so many calls, to be written as the `number`th.
    pub(crate) fn new(
        engine: &'a Engine,
        number: u64,
        letters: u64,
        calls: usize,
        running: &'a mut Running,
    ) -> Self {
        Self {
            engine,
            number,
            now: engine.now(),
            letters,
            changes: Rows::with_capacity(calls + 1),
            running,
            due: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Hands the whole group to the operating system; says how many letters were ever put.
    /// `None` when there was nothing to write.
    pub(crate) fn write(mut self) -> Result<Option<u64>, Error> {
        if self.changes.is_empty() {
            return Ok(None);
        }
        self.write_due();
        let head = Head {
            clock: self.now,
            synced: self.engine.progress.synced(),
            letters: self.letters,
        };
        self.keep(codec::HEAD.into(), &head);
        let keyspace = &self.engine.keyspace;
        let database = self.engine.database.clone();
        let mut batch = OwnedWriteBatch::with_capacity(database, self.changes.len())
            .durability(Some(PersistMode::Buffer));
        for (key, change) in self.changes {
            self.running.learn(&key, &change);
            match change {
                Change::Running(value) | Change::Kept(value) => batch.insert(keyspace, key, value),
                Change::Removed => batch.remove(keyspace, key),
            }
        }
        batch
            .commit()
            .map_err(|error| self.engine.engine_error("write to", error))?;
        Ok(Some(self.letters))
    }

    /// Decides one operation on the rows as they are, the writes of this group included.
    pub(crate) fn apply(&mut self, operation: &Operation) -> Result<Decided<Answer>, Error> {
        if let Operation::Index { key, ids, keep } = operation {
            return self.index(key, ids, *keep);
        }
        let Some(key) = operation.key() else {
            return Ok(self.probe());
        };
        let at = codec::record(key);
        let row = self.row::<Record>(&at)?;
        let step = operation.step();
        let step_at = step.map(|(lease, name)| codec::step(&lease.key, lease.born, name));
        let step_row = match &step_at {
            Some(at) => self.row::<StepRecord>(at)?,
            None => None,
        };
        let record = row.as_ref().map(|row| &row.value);
        let step = step_row.as_ref().map(|row| &row.value);
        let decision = decide(record, step, operation, self.now);
        let known = [
            row.as_ref().map(|row| row.group),
            step_row.as_ref().map(|row| row.group),
        ];
        let after = if decision.write.is_some() || decision.step.is_some() {
            self.number
        } else {
            known.into_iter().flatten().max().unwrap_or(0)
        };
        if let Some(born) = decision.ended {
            self.remove_steps(key, born)?;
        }
        if decision.ended.is_some() && matches!(operation, Operation::Forget(_)) {
            self.unindex(key)?;
        }
        if let Some(new) = decision.write {
            self.note_due(key, record, &new);
            self.keep_record(at, &new);
            if let Some(superseded) = decision.superseded {
                self.remember(key, new, superseded)?;
            }
        }
        if let (Some(at), Some(step)) = (step_at, decision.step) {
            self.keep(at, &step);
        }
        let waits = waits_for_disk(operation, &decision.answer);
        let mut answer = decision.answer;
        if let Answer::Looked(Some(record)) = &mut answer {
            record.history = self.history(key, record.born)?;
        }
        Ok(Decided {
            answer,
            after: if waits { after } else { 0 },
        })
    }

    /// Adds to the history of an incarnation, which records are read without.
    fn remember(
        &mut self,
        key: &Key,
        mut record: Record,
        superseded: Superseded,
    ) -> Result<(), Error> {
        record.history = self.history(key, record.born)?;
        record.remember(Some(superseded));
        self.keep(codec::history(key, record.born), &History(record.history));
        Ok(())
    }

    fn history(&self, key: &Key, born: Fence) -> Result<Vec<Superseded>, Error> {
        let row = self.row::<History>(&codec::history(key, born))?;
        Ok(row.map(|row| row.value.0).unwrap_or_default())
    }

    fn keep_record(&mut self, at: RowKey, record: &Record) {
        let row = self.seal(&at, record);
        let change = match record.state {
            State::Running => Change::Running(row),
            State::Succeeded | State::Failed | State::Waiting | State::Parked => Change::Kept(row),
        };
        self.changes.insert(at, change);
    }

    /// The head row, which every group writes, is enough.
    fn probe(&mut self) -> Decided<Answer> {
        self.keep(codec::HEAD.into(), &Head::default());
        self.written(Answer::Ready)
    }

    /// Removes the steps and the history of an incarnation, those of this very group included.
    fn remove_steps(&mut self, key: &Key, born: Fence) -> Result<(), Error> {
        let prefix = codec::steps(key, born);
        let stored = self.engine.keyspace.prefix(&prefix).map(|row| row.key());
        let stored: Vec<_> = stored
            .collect::<Result<_, _>>()
            .map_err(|error| self.engine.engine_error("read", error))?;
        stored.into_iter().for_each(|at| self.remove(at));
        for (at, change) in &mut self.changes {
            if at.starts_with(&prefix) {
                *change = Change::Removed;
            }
        }
        Ok(())
    }

    fn row<T: Decode>(&self, key: &RowKey) -> Result<Option<Row<T>>, Error> {
        match self.changes.get(key) {
            Some(Change::Running(row) | Change::Kept(row)) => {
                self.engine.unseal(key, row).map(Some)
            }
            Some(Change::Removed) => Ok(None),
            None => match self.running.0.get(key) {
                Some(row) => self.engine.unseal(key, row).map(Some),
                None => self.engine.row(key),
            },
        }
    }

    fn seal(&mut self, key: &RowKey, value: &impl Encode) -> Slice {
        codec::seal(key, value, self.number, &mut self.scratch)
    }

    fn keep(&mut self, key: RowKey, value: &impl Encode) {
        let row = self.seal(&key, value);
        self.changes.insert(key, Change::Kept(row));
    }

    fn remove(&mut self, key: RowKey) {
        self.changes.insert(key, Change::Removed);
    }

    /// The answer to something that this group writes.
    const fn written<A>(&self, answer: A) -> Decided<A> {
        Decided {
            answer,
            after: self.number,
        }
    }
}

// === impl Running ===

impl Running {
    /// Keeps what a run will ask for again, drops what nobody will.
    fn learn(&mut self, key: &RowKey, change: &Change) {
        match change {
            Change::Running(row) => {
                // Runs that never come back fill it in the end; the engine knows them as well.
                if self.0.len() >= RUNNING_ITEMS_MAX {
                    self.0.clear();
                }
                self.0.insert(key.clone(), row.clone());
            }
            Change::Kept(_) | Change::Removed => drop(self.0.remove(key)),
        }
    }
}
