//! Changes that callers ask for: tasks created and deleted, the queue changed, emptied and ended.

use super::{Lane, Numbers, State};
use crate::clock::Time;
use crate::failpoint::{Point, pass};
use crate::proto::tasks::{KeptTask, Queue, Task};
use crate::storage::{Batch, StorageError, Table};
use crate::tasks::names::TaskId;
use crate::tasks::queue::{Limits, Stage};
use crate::tasks::validate::{self, Validation};
use crate::tasks::{errors, rows};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::Status;
use url::Url;

/// After how many used-up names those whose time is over are swept.
const SWEEP_EVERY: u32 = 500;

/// How many numbers of tasks are reserved at once, so that not every task writes its queue's row.
const RESERVED_AT_ONCE: u64 = 10_000;

/// What a task that is being created has taken already.
struct Place {
    queue: Arc<Queue>,
    id: TaskId,
    sequence: u64,
    /// The numbers to reserve with it, up to this one.
    reserves: Option<u64>,
}

impl Lane {
    /// Accepts a task, under the id its creator chose or a generated one.
    pub(in crate::tasks) async fn accept(
        &self,
        task: Task,
        chosen: Option<&str>,
        functions_url: Option<&Url>,
    ) -> Result<Task, Status> {
        let _shared = self.changes.read().await;
        let Place {
            queue,
            id,
            sequence,
            reserves,
        } = self.reserve(chosen)?;
        let named = chosen.is_some();
        let validation = Validation {
            queue: &queue,
            functions_url,
            now: self.now(),
        };
        let new = KeptTask {
            task: Some(task),
            sequence,
            named,
            previous_response: None,
        };
        let accepted = self.write(new, &id, reserves, &validation).await;
        let mut state = self.state();
        state.changing.remove(&id);
        let task = accepted?;
        let numbers = &mut state.numbers;
        numbers.reserved = numbers.reserved.max(reserves.unwrap_or_default());
        let at = task.schedule_time.as_ref().map(Time::of);
        state
            .line
            .add(&id, sequence, at.unwrap_or_default(), Stage::Fresh);
        drop(state);
        self.wake.notify_one();
        Ok(task)
    }

    /// Takes an id for a new task, so that nobody else takes it meanwhile.
    fn reserve(&self, chosen: Option<&str>) -> Result<Place, Status> {
        let mut state = self.state();
        if state.gone {
            return Err(errors::no_queue());
        }
        let id = match chosen {
            Some(id) => TaskId::new(id),
            None => state.free_id(),
        };
        if state.line.holds(&id) || !state.changing.insert(id.clone()) {
            return Err(errors::task_exists());
        }
        let sequence = state.numbers.next;
        state.numbers.next += 1;
        Ok(Place {
            queue: Arc::clone(&state.queue),
            id,
            sequence,
            reserves: state.numbers.reserves(sequence),
        })
    }

    async fn write(
        &self,
        mut new: KeptTask,
        id: &TaskId,
        reserves: Option<u64>,
        validation: &Validation<'_>,
    ) -> Result<Task, Status> {
        let id = id.to_string();
        let storage = &self.context().storage;
        if new.named {
            let key = rows::task_key(&self.name, &id);
            let used_up = rows::is_used_up(storage, &key, validation.now);
            if used_up.map_err(|error| errors::storage(&error))? {
                return Err(errors::task_name_is_used_up());
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
        storage
            .commit(batch)
            .await
            .map_err(|error| errors::storage(&error))?;
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
        self.ground.tell();
        deleted.map(|()| true)
    }

    async fn end(&self, id: &str) -> Result<(), StorageError> {
        let named = self.kept(id)?.is_some_and(|kept| kept.named);
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
        self.adopt(queue)
            .await
            .map_err(|error| errors::storage(&error))
    }

    async fn adopt(&self, queue: Queue) -> Result<Queue, StorageError> {
        let mut batch = Batch::default();
        let reserved = self.state().numbers.reserved;
        rows::put_queue(&mut batch, &queue, reserved);
        self.context().storage.commit(batch).await?;
        let mut state = self.state();
        state.limits = Limits::of(&queue);
        state.queue = Arc::new(queue.clone());
        drop(state);
        self.wake.notify_one();
        self.ground.tell();
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
        let purged = self.adopt(purged).await;
        let purged = purged.map_err(|error| errors::storage(&error))?;
        self.state().line.clear();
        self.ground.tell();
        let cleared = self.clear(true).await;
        cleared.map_err(|error| errors::storage(&error))?;
        Ok(purged)
    }

    /// Ends the queue: nothing of it is sent out or accepted any more. Its rows are taken away with `batch` and
    /// after it.
    pub(in crate::tasks) async fn end_queue(&self, batch: Batch) -> Result<(), StorageError> {
        let _alone = self.changes.write().await;
        {
            let mut state = self.state();
            state.gone = true;
            state.line.clear();
        }
        self.ground.tell();
        self.context().storage.commit(batch).await?;
        self.clear(false).await
    }

    /// Takes all tasks out of storage, a page at a time.
    async fn clear(&self, use_up_names: bool) -> Result<(), StorageError> {
        let storage = &self.context().storage;
        let prefix = rows::task_prefix(&self.name);
        let mut after = None;
        loop {
            let page = storage.scan(Table::Tasks, &prefix, after.as_deref(), rows::PAGE_ROWS)?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.key.to_vec());
            let mut batch = Batch::default();
            let mut used_up = 0;
            for row in page {
                let named = use_up_names && rows::kept_task(row.value)?.named;
                let id = rows::split_task_key(&row.key).map_or("", |(_, id)| id);
                rows::end_task(&mut batch, &self.name, id, named, self.now());
                used_up += u32::from(named);
            }
            self.sweep_if_needed(&mut batch, used_up)?;
            storage.commit(batch).await?;
        }
    }

    /// Now and then lets go of names that may be used again.
    pub(super) fn sweep_if_needed(&self, batch: &mut Batch, more: u32) -> Result<(), StorageError> {
        let count = &self.ground.used_up;
        if more == 0 || count.fetch_add(more, Ordering::Relaxed) + more < SWEEP_EVERY {
            return Ok(());
        }
        count.store(0, Ordering::Relaxed);
        rows::sweep(&self.context().storage, batch, self.now())
    }
}

// === impl Numbers ===

impl Numbers {
    /// What a task of this number reserves, if its number is not reserved yet.
    fn reserves(self, sequence: u64) -> Option<u64> {
        let block = sequence / RESERVED_AT_ONCE + 1;
        (sequence >= self.reserved).then_some(block * RESERVED_AT_ONCE)
    }
}

// === impl State ===

impl State {
    /// Takes a task out of the line to delete it, so that nobody sends it out or creates it meanwhile; says whether
    /// it was there.
    fn take_out(&mut self, id: &TaskId) -> bool {
        let taken = self.line.remove(id);
        if taken {
            self.changing.insert(id.clone());
        }
        taken
    }

    /// The same; nothing while a dispatch of it is on the way.
    fn take_out_resting(&mut self, id: &TaskId) -> Option<bool> {
        (self.line.flights_of(id) == 0).then(|| self.take_out(id))
    }

    /// An id nobody has: digits, as many as production's.
    #[allow(
        clippy::disallowed_methods,
        reason = "ids of tasks are random, as in production"
    )]
    fn free_id(&self) -> TaskId {
        loop {
            let id = TaskId::Number(rand::random_range(1_000_000_000_000_000_000..=u64::MAX / 2));
            if !self.line.holds(&id) && !self.changing.contains(&id) {
                return id;
            }
        }
    }
}
