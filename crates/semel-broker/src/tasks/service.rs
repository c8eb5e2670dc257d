//! The calls of Cloud Tasks.
//!
//! A change goes on when its caller hangs up: it runs in a task of its own.

use super::errors::{self, Rpc};
use super::filter::QueueFilter;
use super::queue_runner::SequenceNumbers;
use super::schedule::Schedule;
use super::{QueueRunner, Tasks, config, mask, names, paging, rows, target, view};
use crate::proto::tasks::cloud_tasks_server::CloudTasks;
use crate::proto::tasks::queue::State;
use crate::proto::tasks::{
    Attempt, CreateQueueRequest, CreateTaskRequest, DeleteQueueRequest, DeleteTaskRequest,
    GetQueueRequest, GetTaskRequest, ListQueuesRequest, ListQueuesResponse, ListTasksRequest,
    ListTasksResponse, PauseQueueRequest, PurgeQueueRequest, Queue, ResumeQueueRequest,
    RunTaskRequest, Task, UpdateQueueRequest,
};
use crate::storage::{Batch, StorageError, Table};
use std::future::Future;
use std::ops::Bound;
use std::sync::Arc;
use tonic::{Request, Response, Status};

const QUEUES_PAGE_MAX: usize = 9800;
const TASKS_PAGE_MAX: usize = 1000;

const fn rpc(method: &'static str, permission: &'static str) -> Rpc {
    Rpc { method, permission }
}

const LIST_QUEUES: Rpc = rpc("ListQueues", "queues.list");
const GET_QUEUE: Rpc = rpc("GetQueue", "queues.get");
const CREATE_QUEUE: Rpc = rpc("CreateQueue", "queues.create");
const UPDATE_QUEUE: Rpc = rpc("UpdateQueue", "queues.update");
const DELETE_QUEUE: Rpc = rpc("DeleteQueue", "queues.delete");
const PURGE_QUEUE: Rpc = rpc("PurgeQueue", "queues.purge");
const PAUSE_QUEUE: Rpc = rpc("PauseQueue", "queues.pause");
const RESUME_QUEUE: Rpc = rpc("ResumeQueue", "queues.resume");
const LIST_TASKS: Rpc = rpc("ListTasks", "tasks.list");
const GET_TASK: Rpc = rpc("GetTask", "tasks.get");
const CREATE_TASK: Rpc = rpc("CreateTask", "tasks.create");
const DELETE_TASK: Rpc = rpc("DeleteTask", "tasks.delete");
const RUN_TASK: Rpc = rpc("RunTask", "tasks.run");

/// Runs a change to its end even if nobody waits for it any more.
pub(super) async fn finish<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|error| Err(Status::internal(format!("the call ended early: {error}"))))
}

#[tonic::async_trait]
impl CloudTasks for Tasks {
    async fn list_queues(
        &self,
        request: Request<ListQueuesRequest>,
    ) -> Result<Response<ListQueuesResponse>, Status> {
        let request = request.into_inner();
        names::location(&request.parent, LIST_QUEUES)?;
        let size = paging::size(request.page_size, QUEUES_PAGE_MAX, "ListQueuesRequest")?;
        let now = self.0.shared.context.clock.now();
        let list = format!("queues {} {}", request.parent, request.filter);
        let after = paging::after(&request.page_token, &list, now)?;
        let filter = QueueFilter::parse(&request.filter)?;
        let queues = self.queues_of(&request.parent, after);
        let queues: Vec<Queue> = queues
            .filter(|queue| filter.matches(queue))
            .take(size)
            .collect();
        // Production gives a token with every page that holds something, the last one too.
        let last = queues.last();
        let next_page_token = last.map(|it| paging::token(&list, &it.name, now));
        Ok(Response::new(ListQueuesResponse {
            queues,
            next_page_token: next_page_token.unwrap_or_default(),
        }))
    }

    async fn get_queue(
        &self,
        request: Request<GetQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let name = request.into_inner().name;
        names::queue(&name, GET_QUEUE)?;
        Ok(Response::new((*self.runner(&name)?.queue()).clone()))
    }

    async fn create_queue(
        &self,
        request: Request<CreateQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let request = request.into_inner();
        names::location(&request.parent, CREATE_QUEUE)?;
        let queue = request.queue.unwrap_or_default();
        names::new_queue(&queue.name, &request.parent)?;
        let queue = config::of_new_queue(queue)?;
        let this = self.clone();
        let work = async move {
            let _alone = this.0.queue_changes.lock().await;
            match this.find(&queue.name) {
                Some(_) => Err(errors::queue_exists()),
                None => this.begin(queue).await,
            }
        };
        finish(work).await.map(Response::new)
    }

    async fn update_queue(
        &self,
        request: Request<UpdateQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let request = request.into_inner();
        let wanted = request.queue.unwrap_or_default();
        names::queue(&wanted.name, UPDATE_QUEUE)?;
        let paths = request.update_mask.map(|mask| mask.paths);
        mask::check(paths.as_deref().unwrap_or_default())?;
        if let Some(target) = wanted.http_target.clone() {
            target::check_tokens(&target)?;
            target::checked(target)?;
        }
        let this = self.clone();
        let work = async move { this.update(wanted, paths).await };
        finish(work).await.map(Response::new)
    }

    async fn delete_queue(
        &self,
        request: Request<DeleteQueueRequest>,
    ) -> Result<Response<()>, Status> {
        let name = request.into_inner().name;
        names::queue(&name, DELETE_QUEUE)?;
        let this = self.clone();
        let work = async move {
            let _alone = this.0.queue_changes.lock().await;
            let runner = this
                .runners_mut()
                .remove(&name)
                .ok_or_else(errors::not_found)?;
            let mut batch = Batch::default();
            let key = rows::queue_key(&name);
            batch.delete(Table::Queues, &key);
            let end = this
                .0
                .shared
                .context
                .clock
                .now()
                .plus(rows::QUEUE_TOMBSTONE_LIFE);
            rows::put_tombstone(&mut batch, &key, end);
            or_unavailable(runner.end_queue(batch).await)
        };
        finish(work).await.map(Response::new)
    }

    async fn purge_queue(
        &self,
        request: Request<PurgeQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let name = request.into_inner().name;
        names::queue(&name, PURGE_QUEUE)?;
        let runner = self.runner(&name)?;
        let work = async move { runner.purge().await };
        finish(work).await.map(Response::new)
    }

    async fn pause_queue(
        &self,
        request: Request<PauseQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let name = request.into_inner().name;
        names::queue(&name, PAUSE_QUEUE)?;
        self.set_state(&name, State::Paused).await
    }

    async fn resume_queue(
        &self,
        request: Request<ResumeQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let name = request.into_inner().name;
        names::queue(&name, RESUME_QUEUE)?;
        self.set_state(&name, State::Running).await
    }

    async fn list_tasks(
        &self,
        request: Request<ListTasksRequest>,
    ) -> Result<Response<ListTasksResponse>, Status> {
        let request = request.into_inner();
        names::queue(&request.parent, LIST_TASKS)?;
        let size = paging::size(request.page_size, TASKS_PAGE_MAX, "ListTasksRequest")?;
        let now = self.0.shared.context.clock.now();
        let list = format!("tasks {}", request.parent);
        let after = paging::after(&request.page_token, &list, now)?;
        let runner = self.runner(&request.parent)?;
        let after = after.map(|id| rows::task_key(&runner.name, &id));
        let prefix = rows::task_prefix(&runner.name);
        let storage = &self.0.shared.context.storage;
        let page = or_unavailable(storage.scan(Table::Tasks, &prefix, after.as_deref(), size))?;
        let last = page.last().and_then(|row| rows::split_task_key(&row.key));
        let next_page_token = last.map(|(_, id)| paging::token(&list, id, now));
        let mut tasks = Vec::with_capacity(page.len());
        for row in page {
            let task = or_unavailable(rows::stored_task(row.value))?
                .task
                .unwrap_or_default();
            tasks.push(view::listed(task, request.response_view));
        }
        Ok(Response::new(ListTasksResponse {
            tasks,
            next_page_token: next_page_token.unwrap_or_default(),
        }))
    }

    async fn get_task(&self, request: Request<GetTaskRequest>) -> Result<Response<Task>, Status> {
        let request = request.into_inner();
        let name = names::task(&request.name, GET_TASK)?;
        let runner = self.find(name.queue).ok_or_else(errors::not_found)?;
        match or_unavailable(runner.shown(name.id))? {
            Some(it) => {
                let task = it.task.unwrap_or_default();
                Ok(Response::new(view::shown(task, request.response_view)))
            }
            None => {
                let key = rows::task_key(name.queue, name.id);
                let past = rows::has_tombstone(&runner.context().storage, &key, runner.now());
                Err(if or_unavailable(past)? {
                    errors::task_is_past()
                } else {
                    errors::not_found()
                })
            }
        }
    }

    async fn create_task(
        &self,
        request: Request<CreateTaskRequest>,
    ) -> Result<Response<Task>, Status> {
        let request = request.into_inner();
        names::queue(&request.parent, CREATE_TASK)?;
        let task = request.task.unwrap_or_default();
        let chosen = match task.name.as_str() {
            "" => None,
            name => Some(names::new_task(name, &request.parent)?.to_owned()),
        };
        let runner = self.runner(&request.parent)?;
        let this = self.clone();
        let work = async move {
            let functions_url = this.0.functions_url.as_ref();
            runner.accept(task, chosen.as_deref(), functions_url).await
        };
        let task = finish(work).await?;
        Ok(Response::new(view::shown(task, request.response_view)))
    }

    async fn delete_task(
        &self,
        request: Request<DeleteTaskRequest>,
    ) -> Result<Response<()>, Status> {
        let name = request.into_inner().name;
        let taken = names::task(&name, DELETE_TASK)?;
        let runner = self.find(taken.queue).ok_or_else(errors::not_found)?;
        let id = taken.id.to_owned();
        let work = async move {
            if or_unavailable(runner.delete(&id).await)? {
                Ok(())
            } else {
                Err(errors::not_found())
            }
        };
        finish(work).await.map(Response::new)
    }

    async fn run_task(&self, request: Request<RunTaskRequest>) -> Result<Response<Task>, Status> {
        let request = request.into_inner();
        let name = names::task(&request.name, RUN_TASK)?;
        let (stored, others) = self.runner(name.queue)?.run(name.id)?;
        let mut task = stored.task.unwrap_or_default();
        let others = i32::try_from(others).unwrap_or(i32::MAX - 1);
        task.dispatch_count = task.dispatch_count.saturating_add(others + 1);
        task.last_attempt = Some(Attempt {
            schedule_time: task.schedule_time,
            ..Attempt::default()
        });
        Ok(Response::new(view::shown(task, request.response_view)))
    }
}

// === impl Tasks ===

impl Tasks {
    fn queues_of(&self, parent: &str, after: Option<String>) -> impl Iterator<Item = Queue> {
        let prefix = format!("{parent}/queues/");
        let first = match after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix.clone()),
        };
        let runners = self.0.runners.read().expect("nobody panics holding it");
        let here = runners
            .range((first, Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(&prefix));
        let here: Vec<Arc<QueueRunner>> = here.map(|(_, runner)| Arc::clone(runner)).collect();
        here.into_iter().map(|runner| (*runner.queue()).clone())
    }

    /// A queue begins, unless one of its name ended too recently. The caller sees to it that there is none.
    async fn begin(&self, queue: Queue) -> Result<Queue, Status> {
        let shared = &self.0.shared;
        let key = rows::queue_key(&queue.name);
        let now = shared.context.clock.now();
        if or_unavailable(rows::has_tombstone(&shared.context.storage, &key, now))? {
            return Err(errors::queue_existed_recently());
        }
        let mut batch = Batch::default();
        rows::put_queue(&mut batch, &queue, 0);
        or_unavailable(shared.context.storage.commit(batch).await)?;
        let runner = QueueRunner::start(
            Arc::clone(shared),
            queue.clone(),
            Schedule::default(),
            SequenceNumbers::default(),
        );
        self.runners_mut().insert(queue.name.clone(), runner);
        Ok(queue)
    }

    async fn update(&self, wanted: Queue, paths: Option<Vec<String>>) -> Result<Queue, Status> {
        let _alone = self.0.queue_changes.lock().await;
        let change = |old: &Queue| {
            let new = match &paths {
                Some(paths) => mask::merged(old, &wanted, paths),
                None => Queue {
                    state: old.state,
                    purge_time: old.purge_time,
                    ..wanted.clone()
                },
            };
            config::with_defaults(new)
        };
        if let Some(runner) = self.find(&wanted.name) {
            return runner.configure(change).await;
        }
        let nothing = Queue {
            name: wanted.name.clone(),
            state: State::Running.into(),
            ..Queue::default()
        };
        self.begin(change(&nothing)?).await
    }

    async fn set_state(&self, name: &str, state: State) -> Result<Response<Queue>, Status> {
        let runner = self.runner(name)?;
        let change = move |old: &Queue| {
            Ok(Queue {
                state: state.into(),
                ..old.clone()
            })
        };
        let work = async move { runner.configure(change).await };
        finish(work).await.map(Response::new)
    }
}

/// The storage's failure, as a caller is told it.
fn or_unavailable<T>(result: Result<T, StorageError>) -> Result<T, Status> {
    result.map_err(|error| errors::storage(&error))
}
