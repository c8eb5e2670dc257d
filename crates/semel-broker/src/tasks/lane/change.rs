//! Changes that callers ask for: tasks created and deleted, the queue changed, emptied and ended.

use super::{Lane, State};
use crate::clock::Time;
use crate::proto::tasks::{KeptTask, Queue, Task};
use crate::shelf::{Batch, ShelfError, Table};
use crate::tasks::names::TaskId;
use crate::tasks::queue::{Limits, Stage};
use crate::tasks::validate::{self, Context};
use crate::tasks::{errors, rows};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::Status;
use url::Url;

/// After how many used-up names those whose time is over are swept.
const SWEEP_EVERY: u32 = 500;

impl Lane {
    /// Accepts a task, under the id its creator chose or a generated one.
    pub(in crate::tasks) async fn accept(
        &self,
        task: Task,
        chosen: Option<&str>,
        functions_url: Option<&Url>,
    ) -> Result<Task, Status> {
        let _shared = self.changes.read().await;
        let (queue, id, sequence) = self.reserve(chosen)?;
        let named = chosen.is_some();
        let context = Context {
            queue: &queue,
            functions_url,
            now: self.now(),
        };
        let accepted = self.write(task, &id, named, sequence, &context).await;
        let mut state = self.state();
        state.changing.remove(&id);
        let task = accepted?;
        let at = task.schedule_time.as_ref().map(Time::of);
        state
            .line
            .add(&id, sequence, at.unwrap_or_default(), Stage::Fresh);
        drop(state);
        self.wake.notify_one();
        Ok(task)
    }

    /// Takes an id for a new task, so that nobody else takes it meanwhile.
    fn reserve(&self, chosen: Option<&str>) -> Result<(Arc<Queue>, TaskId, u64), Status> {
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
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        Ok((Arc::clone(&state.queue), id, sequence))
    }

    async fn write(
        &self,
        task: Task,
        id: &TaskId,
        named: bool,
        sequence: u64,
        context: &Context<'_>,
    ) -> Result<Task, Status> {
        let id = id.to_string();
        let shelf = &self.world().shelf;
        if named {
            let key = rows::task_key(&self.name, &id);
            let used_up = rows::is_used_up(shelf, &key, context.now);
            if used_up.map_err(|error| errors::shelf(&error))? {
                return Err(errors::task_name_is_used_up());
            }
        }
        let name = format!("{}/tasks/{id}", self.name);
        let task = validate::accepted(task, name, context)?;
        let kept = KeptTask {
            task: Some(task.clone()),
            sequence,
            named,
            previous_response: None,
        };
        let mut batch = Batch::default();
        rows::put_task(&mut batch, &self.name, &id, &kept);
        shelf
            .commit(batch)
            .await
            .map_err(|error| errors::shelf(&error))?;
        Ok(task)
    }

    /// Deletes a task; says whether there was one.
    pub(in crate::tasks) async fn delete(&self, id: &str) -> Result<bool, ShelfError> {
        let key = TaskId::new(id);
        let shared = self.changes.read().await;
        if self.state().line.flights_of(&key) == 0 {
            return self.delete_guarded(id, &key).await;
        }
        // A dispatch is on the way, which may be writing down its end.
        drop(shared);
        let _alone = self.changes.write().await;
        self.delete_guarded(id, &key).await
    }

    async fn delete_guarded(&self, id: &str, key: &TaskId) -> Result<bool, ShelfError> {
        {
            let mut state = self.state();
            if !state.line.remove(key) {
                return Ok(false);
            }
            state.changing.insert(key.clone());
        }
        let deleted = self.end(id).await;
        self.state().changing.remove(key);
        self.wake.notify_one();
        self.ground.tell();
        deleted.map(|()| true)
    }

    async fn end(&self, id: &str) -> Result<(), ShelfError> {
        let named = self.kept(id)?.is_some_and(|kept| kept.named);
        let mut batch = Batch::default();
        rows::end_task(&mut batch, &self.name, id, named, self.now());
        self.sweep_if_needed(&mut batch, u32::from(named))?;
        self.world().shelf.commit(batch).await
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
            .map_err(|error| errors::shelf(&error))
    }

    async fn adopt(&self, queue: Queue) -> Result<Queue, ShelfError> {
        let mut batch = Batch::default();
        rows::put_queue(&mut batch, &queue);
        self.world().shelf.commit(batch).await?;
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
        let purged = purged.map_err(|error| errors::shelf(&error))?;
        self.state().line.clear();
        self.ground.tell();
        let cleared = self.clear(true).await;
        cleared.map_err(|error| errors::shelf(&error))?;
        Ok(purged)
    }

    /// Ends the queue: nothing of it is sent out or accepted any more. Its rows are taken away with `batch` and
    /// after it.
    pub(in crate::tasks) async fn end_queue(&self, batch: Batch) -> Result<(), ShelfError> {
        let _alone = self.changes.write().await;
        {
            let mut state = self.state();
            state.gone = true;
            state.line.clear();
        }
        self.ground.tell();
        self.world().shelf.commit(batch).await?;
        self.clear(false).await
    }

    /// Takes all tasks off the shelf, a page at a time.
    async fn clear(&self, use_up_names: bool) -> Result<(), ShelfError> {
        let shelf = &self.world().shelf;
        let prefix = rows::task_prefix(&self.name);
        let mut after = None;
        loop {
            let page = shelf.scan(Table::Tasks, &prefix, after.as_deref(), rows::PAGE_ROWS)?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.key.to_vec());
            let mut batch = Batch::default();
            let mut used_up = 0;
            for row in page {
                let named = use_up_names && rows::kept_task(&row.value)?.named;
                let id = rows::split_task_key(&row.key).map_or("", |(_, id)| id);
                rows::end_task(&mut batch, &self.name, id, named, self.now());
                used_up += u32::from(named);
            }
            self.sweep_if_needed(&mut batch, used_up)?;
            shelf.commit(batch).await?;
        }
    }

    /// Now and then lets go of names that may be used again.
    pub(super) fn sweep_if_needed(&self, batch: &mut Batch, more: u32) -> Result<(), ShelfError> {
        let count = &self.ground.used_up;
        if more == 0 || count.fetch_add(more, Ordering::Relaxed) + more < SWEEP_EVERY {
            return Ok(());
        }
        count.store(0, Ordering::Relaxed);
        rows::sweep(&self.world().shelf, batch, self.now())
    }
}

// === impl State ===

impl State {
    /// An id nobody has: digits, as many as production's.
    fn free_id(&self) -> TaskId {
        loop {
            let id = TaskId::Number(rand::random_range(1_000_000_000_000_000_000..=u64::MAX / 2));
            if !self.line.holds(&id) && !self.changing.contains(&id) {
                return id;
            }
        }
    }
}
