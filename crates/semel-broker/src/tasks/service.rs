//! The calls of Cloud Tasks.
//!
//! A change goes on when its caller hangs up: it runs in a task of its own.

use super::errors::{self, Rpc};
use super::filter::Filter;
use super::lane::Numbers;
use super::queue::Line;
use super::{Lane, Tasks, config, mask, names, pages, rows, target, view};
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
        let size = pages::size(request.page_size, QUEUES_PAGE_MAX, "ListQueuesRequest")?;
        let now = self.0.ground.context.clock.now();
        let list = format!("queues {} {}", request.parent, request.filter);
        let after = pages::after(&request.page_token, &list, now)?;
        let filter = Filter::read(&request.filter)?;
        let queues = self.queues_of(&request.parent, after);
        let queues: Vec<Queue> = queues
            .filter(|queue| filter.lets_through(queue))
            .take(size)
            .collect();
        // Production gives a token with every page that holds something, the last one too.
        let last = queues.last();
        let next_page_token = last.map(|it| pages::token(&list, &it.name, now));
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
        Ok(Response::new((*self.lane(&name)?.queue()).clone()))
    }

    async fn create_queue(
        &self,
        request: Request<CreateQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let request = request.into_inner();
        names::location(&request.parent, CREATE_QUEUE)?;
        let queue = request.queue.unwrap_or_default();
        names::new_queue(&queue.name, &request.parent)?;
        let queue = config::fresh(queue)?;
        let this = self.clone();
        let work = async move {
            let _alone = this.0.coming_and_going.lock().await;
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
            let _alone = this.0.coming_and_going.lock().await;
            let lane = this
                .lanes_mut()
                .remove(&name)
                .ok_or_else(errors::not_found)?;
            let mut batch = Batch::default();
            let key = rows::queue_key(&name);
            batch.delete(Table::Queues, &key);
            let end = this
                .0
                .ground
                .context
                .clock
                .now()
                .plus(rows::QUEUE_NAME_REST);
            rows::use_up(&mut batch, &key, end);
            kept(lane.end_queue(batch).await)
        };
        finish(work).await.map(Response::new)
    }

    async fn purge_queue(
        &self,
        request: Request<PurgeQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let name = request.into_inner().name;
        names::queue(&name, PURGE_QUEUE)?;
        let lane = self.lane(&name)?;
        let work = async move { lane.purge().await };
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
        let size = pages::size(request.page_size, TASKS_PAGE_MAX, "ListTasksRequest")?;
        let now = self.0.ground.context.clock.now();
        let list = format!("tasks {}", request.parent);
        let after = pages::after(&request.page_token, &list, now)?;
        let lane = self.lane(&request.parent)?;
        let after = after.map(|id| rows::task_key(&lane.name, &id));
        let prefix = rows::task_prefix(&lane.name);
        let storage = &self.0.ground.context.storage;
        let page = kept(storage.scan(Table::Tasks, &prefix, after.as_deref(), size))?;
        let last = page.last().and_then(|row| rows::split_task_key(&row.key));
        let next_page_token = last.map(|(_, id)| pages::token(&list, id, now));
        let mut tasks = Vec::with_capacity(page.len());
        for row in page {
            let task = kept(rows::kept_task(row.value))?.task.unwrap_or_default();
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
        let lane = self.find(name.queue).ok_or_else(errors::not_found)?;
        match kept(lane.shown(name.id))? {
            Some(it) => {
                let task = it.task.unwrap_or_default();
                Ok(Response::new(view::shown(task, request.response_view)))
            }
            None => {
                let key = rows::task_key(name.queue, name.id);
                let past = rows::is_used_up(&lane.context().storage, &key, lane.now());
                Err(if kept(past)? {
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
        let lane = self.lane(&request.parent)?;
        let this = self.clone();
        let work = async move {
            let functions_url = this.0.functions_url.as_ref();
            lane.accept(task, chosen.as_deref(), functions_url).await
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
        let lane = self.find(taken.queue).ok_or_else(errors::not_found)?;
        let id = taken.id.to_owned();
        let work = async move {
            if kept(lane.delete(&id).await)? {
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
        let (kept, others) = self.lane(name.queue)?.run(name.id)?;
        let mut task = kept.task.unwrap_or_default();
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
        let lanes = self.0.lanes.read().expect("nobody panics holding it");
        let here = lanes
            .range((first, Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(&prefix));
        let here: Vec<Arc<Lane>> = here.map(|(_, lane)| Arc::clone(lane)).collect();
        here.into_iter().map(|lane| (*lane.queue()).clone())
    }

    /// A queue begins, unless one of its name ended too recently. The caller sees to it that there is none.
    async fn begin(&self, queue: Queue) -> Result<Queue, Status> {
        let ground = &self.0.ground;
        let key = rows::queue_key(&queue.name);
        let now = ground.context.clock.now();
        if kept(rows::is_used_up(&ground.context.storage, &key, now))? {
            return Err(errors::queue_name_is_used_up());
        }
        let mut batch = Batch::default();
        rows::put_queue(&mut batch, &queue, 0);
        kept(ground.context.storage.commit(batch).await)?;
        let lane = Lane::start(
            Arc::clone(ground),
            queue.clone(),
            Line::default(),
            Numbers::default(),
        );
        self.lanes_mut().insert(queue.name.clone(), lane);
        Ok(queue)
    }

    async fn update(&self, wanted: Queue, paths: Option<Vec<String>>) -> Result<Queue, Status> {
        let _alone = self.0.coming_and_going.lock().await;
        let change = |old: &Queue| {
            let new = match &paths {
                Some(paths) => mask::merged(old, &wanted, paths),
                None => Queue {
                    state: old.state,
                    purge_time: old.purge_time,
                    ..wanted.clone()
                },
            };
            config::filled(new)
        };
        if let Some(lane) = self.find(&wanted.name) {
            return lane.configure(change).await;
        }
        let nothing = Queue {
            name: wanted.name.clone(),
            state: State::Running.into(),
            ..Queue::default()
        };
        self.begin(change(&nothing)?).await
    }

    async fn set_state(&self, name: &str, state: State) -> Result<Response<Queue>, Status> {
        let lane = self.lane(name)?;
        let change = move |old: &Queue| {
            Ok(Queue {
                state: state.into(),
                ..old.clone()
            })
        };
        let work = async move { lane.configure(change).await };
        finish(work).await.map(Response::new)
    }
}

/// The storage's failure, as a caller is told it.
fn kept<T>(result: Result<T, StorageError>) -> Result<T, Status> {
    result.map_err(|error| errors::storage(&error))
}
