//! Cloud Tasks: queues that keep tasks and send them to handlers, again and again until one succeeds.

mod service;
mod queue_runner;
mod dispatch;
mod schedule;
mod attempt;
mod outcome;
mod rows;
mod validate;
mod config;
mod target;
mod headers;
mod names;
mod errors;
mod view;
mod paging;
mod mask;
mod access;
mod beta;
mod filter;

use crate::admin::Service;
use crate::clock::Time;
use crate::context::Context;
use crate::proto::tasks::task::MessageType;
use crate::proto::tasks::{HttpMethod, HttpRequest, Queue, Task};
use crate::rest::Buffered;
use crate::storage::{Batch, Row, Storage, StorageError, Table};
use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use names::TaskId;
use queue_runner::{QueueRunner, SequenceNumbers, TasksShared};
use schedule::{Schedule, Stage};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, RwLock};
use tokio::sync::{Mutex, watch};
use tonic::Status;
use url::Url;

/// Cloud Tasks.
#[derive(Debug)]
pub(crate) struct Tasks {
    shared: Arc<TasksShared>,
    /// Where tasks without an address go: this, then project, location and queue.
    functions_url: Option<Url>,
    runners: RwLock<BTreeMap<String, Arc<QueueRunner>>>,
    /// Held while a queue comes or goes.
    queue_changes: Arc<Mutex<()>>,
}

/// A queue as people are shown it.
#[derive(Debug)]
pub(crate) struct ShownQueue {
    pub(crate) queue: Arc<Queue>,
    pub(crate) tasks: usize,
    pub(crate) in_flight: u32,
}

/// The tasks of a queue as they are found in storage.
#[derive(Debug, Default)]
struct FoundTasks {
    schedule: Schedule,
    next_sequence: u64,
}

// === impl Tasks ===

impl Tasks {
    /// Finds what is in storage, and begins to send tasks out.
    ///
    /// # Errors
    /// When storage cannot be read.
    pub(crate) fn open(
        context: Arc<Context>,
        functions_url: Option<Url>,
        app_engine_url: Option<Url>,
    ) -> Result<Self, StorageError> {
        let shared = Arc::new(TasksShared {
            context,
            app_engine_url,
            changed: watch::Sender::new(0),
            tombstones: AtomicU32::new(0),
        });
        let storage = &shared.context.storage;
        let mut found = find_tasks(storage)?;
        let mut runners = BTreeMap::new();
        for (queue, reserved) in find_queues(storage)? {
            let name = queue.name.clone();
            let tasks = found.remove(&name).unwrap_or_default();
            let sequences = SequenceNumbers {
                next: tasks.next_sequence.max(reserved),
                reserved,
            };
            let runner = QueueRunner::start(Arc::clone(&shared), queue, tasks.schedule, sequences);
            runners.insert(name, runner);
        }
        let this = Self {
            shared,
            functions_url,
            runners: RwLock::new(runners),
            queue_changes: Arc::default(),
        };
        this.tidy(found.into_keys().collect());
        Ok(this)
    }

    /// Takes away what queues left behind that ended in the middle of something. Nobody begins a queue meanwhile: one
    /// of the same name would lose its tasks.
    fn tidy(&self, queues: Vec<String>) {
        let context = Arc::clone(&self.shared.context);
        let alone = Arc::clone(&self.queue_changes).try_lock_owned();
        tokio::spawn(async move {
            let work = async {
                clear_tasks(&context.storage, queues).await?;
                drop(alone);
                sweep_names(&context.storage, context.clock.now()).await
            };
            if let Err(error) = work.await {
                tracing::error!(%error, "what earlier queues left behind could not be taken away");
            }
        });
    }

    /// Makes a task of a request that came for a queue: its body and headers are the task's.
    ///
    /// # Errors
    /// As production refuses it.
    pub(crate) async fn buffer(self: Arc<Self>, buffered: Buffered) -> Result<Task, Status> {
        names::queue(&buffered.queue, "BufferTask")?;
        let task_id = buffered.task_id.as_deref();
        task_id.map_or(Ok(()), names::task_id)?;
        let runner = self.runner(&buffered.queue)?;
        let target = runner.queue().http_target.clone();
        if target.as_ref().and_then(target::address).is_none() {
            return Err(Status::failed_precondition(
                "Tasks can be buffered only in a queue whose httpTarget has a uriOverride with a host: set it with UpdateQueue.",
            ));
        }
        let request = HttpRequest {
            http_method: HttpMethod::from_str_name(buffered.method.as_str())
                .unwrap_or(HttpMethod::Post)
                .into(),
            headers: text_headers(&buffered.headers),
            body: buffered.body,
            ..HttpRequest::default()
        };
        let task = Task {
            message_type: Some(MessageType::HttpRequest(Box::new(request))),
            ..Task::default()
        };
        let task = runner.accept(task, task_id, None).await?;
        Ok(view::shown(task, 0))
    }

    /// Every queue, of all projects.
    pub(crate) fn shown(&self) -> Vec<ShownQueue> {
        let shown = |runner: Arc<QueueRunner>| {
            let (tasks, in_flight) = runner.counts();
            ShownQueue {
                queue: runner.queue(),
                tasks,
                in_flight,
            }
        };
        self.all().into_iter().map(shown).collect()
    }

    fn now(&self) -> Time {
        self.shared.context.clock.now()
    }

    fn storage(&self) -> &Storage {
        &self.shared.context.storage
    }

    fn runner(&self, name: &str) -> Result<Arc<QueueRunner>, Status> {
        self.find(name).ok_or_else(errors::no_queue)
    }

    fn find(&self, name: &str) -> Option<Arc<QueueRunner>> {
        let runners = self.runners.read().expect("nobody panics holding it");
        runners.get(name).cloned()
    }

    fn all(&self) -> Vec<Arc<QueueRunner>> {
        let runners = self.runners.read().expect("nobody panics holding it");
        runners.values().cloned().collect()
    }

    fn runners_mut(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<QueueRunner>>> {
        self.runners.write().expect("nobody panics holding it")
    }
}

/// The queues in storage, and the sequences their next tasks have at least.
fn find_queues(storage: &Storage) -> Result<Vec<(Queue, u64)>, StorageError> {
    let queues = storage.rows(Table::Queues, &[]);
    queues.map(|row| rows::queue(&row?.value)).collect()
}

/// The tasks in storage by their queues' names. Of each only what its place in the schedule needs is remembered.
fn find_tasks(storage: &Storage) -> Result<HashMap<String, FoundTasks>, StorageError> {
    let mut found: HashMap<String, FoundTasks> = HashMap::new();
    for row in storage.rows(Table::Tasks, &[]) {
        let Row { key, value } = row?;
        let Some((queue, id)) = rows::split_task_key(&key) else {
            continue;
        };
        if !found.contains_key(queue) {
            found.insert(queue.into(), FoundTasks::default());
        }
        if let Some(found) = found.get_mut(queue) {
            found.add(id, value)?;
        }
    }
    Ok(found)
}

/// Takes away the tasks of these queues.
async fn clear_tasks(storage: &Storage, queues: Vec<String>) -> Result<(), StorageError> {
    for queue in queues {
        rows::clear(storage, Table::Tasks, &rows::task_prefix(&queue)).await?;
    }
    Ok(())
}

/// Takes away all names that may be used again.
async fn sweep_names(storage: &Storage, now: Time) -> Result<(), StorageError> {
    loop {
        let mut batch = Batch::default();
        rows::sweep(storage, &mut batch, now)?;
        if batch.is_empty() {
            return Ok(());
        }
        storage.commit(batch).await?;
    }
}

/// The caller's headers, without the proof of who called us.
fn text_headers(headers: &HeaderMap) -> HashMap<String, String> {
    let of_task = headers.iter().filter(|(name, _)| **name != AUTHORIZATION);
    of_task
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect()
}

#[async_trait]
impl Service for Tasks {
    fn counts(&self) -> Vec<(&'static str, usize)> {
        vec![("queues", self.storage().count(Table::Queues))]
    }

    /// Empty when nothing is left to do but tasks of the future and of paused queues.
    fn busy(&self, _pull: bool, limit: usize) -> Vec<String> {
        let all = self.all();
        let busy = all.iter().flat_map(|runner| runner.busy());
        busy.take(limit).collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Forgets which names were used, too. What is on its way changes nothing any more.
    async fn reset(&self) -> Result<(), StorageError> {
        let _alone = self.queue_changes.lock().await;
        let runners = std::mem::take(&mut *self.runners_mut());
        for runner in runners.values() {
            runner.end_queue(Batch::default()).await?;
        }
        for table in [Table::Queues, Table::Tasks, Table::Tombstones] {
            rows::clear(self.storage(), table, &[]).await?;
        }
        // The other service's policies too: everything is reset together.
        rows::clear(self.storage(), Table::Policies, &[]).await?;
        self.shared.tell();
        Ok(())
    }
}

// === impl FoundTasks ===

impl FoundTasks {
    fn add(&mut self, id: &str, row: Bytes) -> Result<(), StorageError> {
        let stored = rows::stored_task(row)?;
        let task = stored.task.unwrap_or_default();
        let at = task
            .schedule_time
            .as_ref()
            .map(Time::of)
            .unwrap_or_default();
        let stage = match task.dispatch_count {
            0 => Stage::Fresh,
            _ => Stage::Retry,
        };
        let id = TaskId::new(id);
        self.schedule.add(&id, stored.sequence, at, stage);
        self.next_sequence = self.next_sequence.max(stored.sequence + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
