//! One group: requests that are decided one after the other and written as one batch.

mod letters;
mod due;

use crate::codec::{self, Decode, Encode, Head, Incarnation, Row, RowKey};
use crate::durability::{begun_waits_for_disk, step_waits_for_disk, waits_for_disk};
use crate::engine::Engine;
use crate::request::{Reply, Request, StepAct};
use fjall::{OwnedWriteBatch, PersistMode, Slice};
use semel::clock::Time;
use semel::record::{self, Fence, Lease, Operation, Record, State, StepRecord};
use semel::{Error, Key};
use std::collections::{BTreeMap, HashMap};

/// How many running records are remembered: some 8 MiB.
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
    /// What later requests of the group find. One change per row also keeps the batch free of two
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

/// A reply, and the group that must be on disk before it is given.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) reply: Reply,
    pub(crate) after: u64,
}

// === impl Group ===

impl<'a> Group<'a> {
    /// An empty group with room for `requests`, to be written as the `number`th.
    pub(crate) fn new(
        engine: &'a Engine,
        number: u64,
        letters: u64,
        requests: usize,
        running: &'a mut Running,
    ) -> Self {
        Self {
            engine,
            number,
            now: engine.now(),
            letters,
            changes: Rows::with_capacity(requests + 1),
            running,
            due: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Decides one request on the rows as they are, the writes of this group included.
    pub(crate) fn decide(&mut self, request: &Request) -> Result<Decided, Error> {
        match request {
            Request::Record(key, operation) => self.decide_record(key, operation),
            Request::Step(lease, name, act) => self.decide_step(lease, name, act),
            Request::LetterPut(letter) => self.put_letter(letter),
            Request::LetterMark(id, mark) => self.mark_letter(id, *mark),
            Request::SweepLetters(ids) => self.sweep_letters(ids),
            Request::Sweep(rows) => self.sweep(rows),
            Request::Probe => Ok(self.probe()),
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
            .map_err(|error| self.engine.engine_error("write to", &error))?;
        Ok(Some(self.letters))
    }

    fn decide_record(&mut self, key: &Key, operation: &Operation) -> Result<Decided, Error> {
        let at = codec::record(key);
        let row = self.row::<Record>(&at)?;
        let decision = record::decide(row.as_ref().map(|row| &row.value), operation, self.now);
        let waits = waits_for_disk(operation, &decision.answer);
        let known = row.as_ref().map_or(0, |row| row.group);
        let after = match &decision.write {
            Some(_) => self.number,
            None => known,
        };
        if let Some(born) = decision.ended {
            self.remove_steps(key, born)?;
        }
        if let Some(record) = decision.write {
            self.note_due(key, row.as_ref().map(|row| &row.value), &record);
            let row = self.seal(&at, &record);
            let change = match record.state {
                State::Running => Change::Running(row),
                State::Succeeded | State::Failed | State::Waiting | State::Parked => {
                    Change::Kept(row)
                }
            };
            self.changes.insert(at, change);
        }
        Ok(Decided {
            reply: Reply::Record(decision.answer),
            after: if waits { after } else { 0 },
        })
    }

    fn decide_step(&mut self, lease: &Lease, name: &str, act: &StepAct) -> Result<Decided, Error> {
        let at = codec::step(&lease.key, lease.born, name);
        let row = self.row::<Record>(&codec::record(&lease.key))?;
        let step_row = self.row::<StepRecord>(&at)?;
        let record = row.as_ref().map(|row| &row.value);
        let step = step_row.as_ref().map(|row| &row.value);
        let (write, reply, waits) = match act {
            StepAct::Begin => {
                let decision = record::step_begin(record, step, lease, self.now);
                let waits = begun_waits_for_disk(&decision.answer);
                (decision.write, Reply::Begun(decision.answer), waits)
            }
            StepAct::Restart => held(record::step_restart(record, step, lease, self.now)),
            StepAct::Complete(result) => {
                held(record::step_complete(record, step, lease, result, self.now))
            }
        };
        let known = [row.map(|row| row.group), step_row.map(|row| row.group)];
        let known = known.into_iter().flatten().max().unwrap_or(0);
        let after = if write.is_some() { self.number } else { known };
        if let Some(step) = write {
            self.keep(at, &step);
        }
        Ok(Decided {
            reply,
            after: if waits { after } else { 0 },
        })
    }

    /// The head row, which every group writes, is enough.
    fn probe(&mut self) -> Decided {
        self.keep(codec::HEAD.into(), &Head::default());
        self.done(Reply::Probed)
    }

    /// Removes the steps of an incarnation, those of this very group included.
    fn remove_steps(&mut self, key: &Key, born: Fence) -> Result<(), Error> {
        let prefix = codec::steps(key, born);
        let stored = self.engine.keyspace.prefix(&prefix).map(|row| row.key());
        let stored: Vec<_> = stored
            .collect::<Result<_, _>>()
            .map_err(|error| self.engine.engine_error("read", &error))?;
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

    /// A reply to something that this group writes.
    const fn done(&self, reply: Reply) -> Decided {
        Decided {
            reply,
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

fn held(decision: record::StepDecision<record::Held>) -> (Option<StepRecord>, Reply, bool) {
    let waits = step_waits_for_disk(&decision.answer);
    (decision.write, Reply::Held(decision.answer), waits)
}
