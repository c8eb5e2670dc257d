//! Changes that callers ask for: tasks created and deleted, the queue changed, emptied and ended.

use super::{QueueRunner, SequenceNumbers, State};
use crate::clock::Time;
use crate::failpoint::{Point, pass};
use crate::proto::tasks::{Queue, StoredTask, Task};
use crate::storage::{Batch, Row, StorageError, Table};
use crate::tasks::names::TaskId;
use crate::tasks::schedule::{Limits, Stage};
use crate::tasks::validate::{self, Validation};
use crate::tasks::{errors, rows};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::Status;
use url::Url;

/// After how many new tombstones those whose time is over are swept.
const SWEEP_EVERY: u32 = 500;

/// How many sequence numbers are reserved at once, so that not every task writes its queue's row.
const RESERVED_AT_ONCE: u64 = 10_000;

/// What a task that is being created has taken already.
struct Reservation {
    queue: Arc<Queue>,
    id: TaskId,
    sequence: u64,
    /// The sequence numbers to reserve with it, up to this one.
    reserves: Option<u64>,
}

impl QueueRunner {
    /// Accepts a task, under the id its creator chose or a generated one.
    pub(in crate::tasks) async fn accept(
        &self,
        task: Task,
        chosen: Option<&str>,
        functions_url: Option<&Url>,
    ) -> Result<Task, Status> {
        let _shared = self.changes.read().await;
        let taken = self.reserve(chosen)?;
        let (id, sequence) = (&taken.id, taken.sequence);
        let validation = Validation {
            queue: &taken.queue,
            functions_url,
            now: self.now(),
        };
        let new = StoredTask {
            task: Some(task),
            sequence,
            named: chosen.is_some(),
            previous_response: None,
        };
        let accepted = self.write(new, id, taken.reserves, &validation).await;
        let mut state = self.state();
        state.changing.remove(id);
        let task = accepted?;
        let sequences = &mut state.sequences;
        sequences.reserved = sequences.reserved.max(taken.reserves.unwrap_or_default());
        let at = task
            .schedule_time
            .as_ref()
            .map(Time::of)
            .unwrap_or_default();
        state.schedule.add(id, sequence, at, Stage::Fresh);
        drop(state);
        self.wake.notify_one();
        Ok(task)
    }

    /// Takes an id for a new task, so that nobody else takes it meanwhile.
    fn reserve(&self, chosen: Option<&str>) -> Result<Reservation, Status> {
        let mut state = self.state();
        if state.gone {
            return Err(errors::no_queue());
        }
        let id = match chosen {
            Some(id) => TaskId::new(id),
            None => state.free_id(),
        };
        if state.schedule.holds(&id) || !state.changing.insert(id.clone()) {
            return Err(errors::task_exists());
        }
        let sequence = state.sequences.next;
        state.sequences.next += 1;
        Ok(Reservation {
            queue: Arc::clone(&state.queue),
            id,
            sequence,
            reserves: state.sequences.reserves(sequence),
        })
    }

    async fn write(
        &self,
        mut new: StoredTask,
        id: &TaskId,
        reserves: Option<u64>,
        validation: &Validation<'_>,
    ) -> Result<Task, Status> {
        let id = id.to_string();
        let storage = &self.context().storage;
        if new.named {
            let key = rows::task_key(&self.name, &id);
            if rows::has_tombstone(storage, &key, validation.now)? {
                return Err(errors::task_existed_recently());
            }
        }
        let name = format!("{}/tasks/{id}", self.name);
        let task = new.task.take().unwrap_or_default();
        new.task = Some(validate::accepted(task, name, validation)?);
        let mut batch = Batch::default();
        rows::put_task(&mut batch, &self.name, &id, &new);
        if let Some(reserved) = reserves {
            rows::put_queue(&mut batch, validation.queue, reserved);
        }
        storage.commit(batch).await?;
        pass(Point::TaskKept);
        Ok(new.task.unwrap_or_default())
    }

    /// Deletes a task; says whether there was one.
    pub(in crate::tasks) async fn delete(&self, id: &str) -> Result<bool, StorageError> {
        let key = TaskId::new(id);
        {
            let _shared = self.changes.read().await;
            let taken = self.state().take_out_resting(&key);
            if let Some(taken) = taken {
                return self.delete_taken(id, &key, taken).await;
            }
        }
        // A dispatch is on the way, which may be writing down its end.
        let _alone = self.changes.write().await;
        let taken = self.state().take_out(&key);
        self.delete_taken(id, &key, taken).await
    }

    async fn delete_taken(
        &self,
        id: &str,
        key: &TaskId,
        taken: bool,
    ) -> Result<bool, StorageError> {
        if !taken {
            return Ok(false);
        }
        let deleted = self.end(id).await;
        self.state().changing.remove(key);
        self.wake.notify_one();
        self.shared.tell();
        deleted.map(|()| true)
    }

    async fn end(&self, id: &str) -> Result<(), StorageError> {
        let named = self.stored(id)?.is_some_and(|stored| stored.named);
        let mut batch = Batch::default();
        rows::end_task(&mut batch, &self.name, id, named, self.now());
        self.sweep_if_needed(&mut batch, u32::from(named))?;
        self.context().storage.commit(batch).await
    }

    /// Changes the configuration; `change` may refuse.
    pub(in crate::tasks) async fn configure(
        &self,
        change: impl FnOnce(&Queue) -> Result<Queue, Status>,
    ) -> Result<Queue, Status> {
        let _alone = self.changes.write().await;
        if self.state().gone {
            return Err(errors::no_queue());
        }
        let queue = change(&self.queue())?;
        Ok(self.store_config(queue).await?)
    }

    async fn store_config(&self, queue: Queue) -> Result<Queue, StorageError> {
        let mut batch = Batch::default();
        let reserved = self.state().sequences.reserved;
        rows::put_queue(&mut batch, &queue, reserved);
        self.context().storage.commit(batch).await?;
        let mut state = self.state();
        state.limits = Limits::of(&queue);
        state.queue = Arc::new(queue.clone());
        drop(state);
        self.wake.notify_one();
        self.shared.tell();
        Ok(queue)
    }

    /// Deletes all tasks that are there now.
    pub(in crate::tasks) async fn purge(&self) -> Result<Queue, Status> {
        let _alone = self.changes.write().await;
        if self.state().gone {
            return Err(errors::no_queue());
        }
        let purged = Queue {
            purge_time: Some(self.now().timestamp()),
            ..(*self.queue()).clone()
        };
        let purged = self.store_config(purged).await?;
        self.state().schedule.clear();
        self.shared.tell();
        self.clear(true).await?;
        Ok(purged)
    }

    /// Ends the queue: nothing of it is sent out or accepted any more. Its rows are taken away with `batch` and
    /// after it.
    pub(in crate::tasks) async fn end_queue(&self, batch: Batch) -> Result<(), StorageError> {
        let _alone = self.changes.write().await;
        {
            let mut state = self.state();
            state.gone = true;
            state.schedule.clear();
        }
        self.shared.tell();
        self.context().storage.commit(batch).await?;
        self.clear(false).await
    }

    /// Takes all tasks out of storage, a page at a time.
    async fn clear(&self, leave_tombstones: bool) -> Result<(), StorageError> {
        let storage = &self.context().storage;
        let (mut batch, mut tombstones) = (Batch::default(), 0);
        for row in storage.rows(Table::Tasks, &rows::task_prefix(&self.name)) {
            let Row { key, value } = row?;
            let named = leave_tombstones && rows::stored_task(value)?.named;
            let id = rows::split_task_key(&key).map_or("", |(_, id)| id);
            rows::end_task(&mut batch, &self.name, id, named, self.now());
            tombstones += u32::from(named);
            if batch.len() >= rows::PAGE_ROWS {
                self.sweep_if_needed(&mut batch, std::mem::take(&mut tombstones))?;
                storage.commit(std::mem::take(&mut batch)).await?;
            }
        }
        self.sweep_if_needed(&mut batch, tombstones)?;
        storage.commit(batch).await
    }

    /// Now and then lets go of names that may be used again.
    pub(super) fn sweep_if_needed(&self, batch: &mut Batch, more: u32) -> Result<(), StorageError> {
        let count = &self.shared.tombstones;
        if more == 0 || count.fetch_add(more, Ordering::Relaxed) + more < SWEEP_EVERY {
            return Ok(());
        }
        count.store(0, Ordering::Relaxed);
        rows::sweep(&self.context().storage, batch, self.now())
    }
}

// === impl SequenceNumbers ===

impl SequenceNumbers {
    /// What a task of this number reserves, if its number is not reserved yet.
    fn reserves(self, sequence: u64) -> Option<u64> {
        let block = sequence / RESERVED_AT_ONCE + 1;
        (sequence >= self.reserved).then_some(block * RESERVED_AT_ONCE)
    }
}

// === impl State ===

impl State {
    /// Takes a task out of the schedule to delete it, so that nobody sends it out or creates it meanwhile; says whether
    /// it was there.
    fn take_out(&mut self, id: &TaskId) -> bool {
        let taken = self.schedule.remove(id);
        if taken {
            self.changing.insert(id.clone());
        }
        taken
    }

    /// The same; nothing while a dispatch of it is on the way.
    fn take_out_resting(&mut self, id: &TaskId) -> Option<bool> {
        (self.schedule.in_flight_of(id) == 0).then(|| self.take_out(id))
    }

    /// An id nobody has: digits, as many as production's.
    #[allow(
        clippy::disallowed_methods,
        reason = "ids of tasks are random, as in production"
    )]
    fn free_id(&self) -> TaskId {
        loop {
            let id = TaskId::Number(rand::random_range(1_000_000_000_000_000_000..=u64::MAX / 2));
            if !self.schedule.holds(&id) && !self.changing.contains(&id) {
                return id;
            }
        }
    }
}
