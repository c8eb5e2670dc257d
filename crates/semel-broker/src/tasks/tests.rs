//! The calls as a client makes them, against real handlers; time is put forward, not waited for.

mod queues;
mod updates;
mod create;
mod dispatch;
mod target;
mod retries;
mod faults;
mod durable;

use super::*;
use crate::handler::Handler;
use crate::history::{Dispatch, HistoryFilter};
use crate::proto::tasks::cloud_tasks_server::CloudTasks;
use crate::proto::tasks::task::View;
use crate::proto::tasks::{
    CreateQueueRequest, CreateTaskRequest, DeleteQueueRequest, DeleteTaskRequest, GetQueueRequest,
    GetTaskRequest, ListTasksRequest, PauseQueueRequest, PurgeQueueRequest, RateLimits,
    ResumeQueueRequest, RetryConfig, RunTaskRequest,
};
use std::time::Duration;
use tonic::{Code, Request};

const PARENT: &str = "projects/p/locations/l";
const QUEUE: &str = "projects/p/locations/l/queues/q";
const PAST: &str = "The task no longer exists, though a task with this name existed recently. The task either successfully completed or was deleted.";
const USED_UP: &str = "The task cannot be created because a task with this name existed too recently. For more information about task de-duplication see https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues.tasks/create#body.request_body.FIELDS.task.";
const NO_QUEUE: &str = "Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.";
const NOT_FOUND: &str = "Requested entity was not found.";

/// A broker, one queue, one handler.
struct Desk {
    tasks: Tasks,
    context: Arc<Context>,
    handler: Handler,
}

// === impl Desk ===

impl Desk {
    async fn open(faults: &[&str]) -> Self {
        Self::with(Context::for_test(faults), Queue::default()).await
    }

    async fn retrying(retry: RetryConfig) -> Self {
        let queue = Queue {
            retry_config: Some(retry),
            ..Queue::default()
        };
        Self::with(Context::for_test(&[]), queue).await
    }

    async fn with(context: Arc<Context>, queue: Queue) -> Self {
        let desk = Self {
            tasks: Tasks::open(Arc::clone(&context), None).unwrap(),
            context,
            handler: Handler::start().await,
        };
        desk.create_queue("q", queue).await.unwrap();
        desk
    }

    async fn create_queue(&self, id: &str, queue: Queue) -> Result<Queue, Status> {
        let queue = Queue {
            name: format!("{PARENT}/queues/{id}"),
            ..queue
        };
        let request = CreateQueueRequest {
            parent: PARENT.into(),
            queue: Some(queue),
        };
        let created = self.tasks.create_queue(Request::new(request)).await;
        created.map(tonic::Response::into_inner)
    }

    /// A task for the handler; without a name if `id` is empty.
    fn task(&self, id: &str) -> Task {
        self.task_of(id, HttpRequest::default())
    }

    fn task_of(&self, id: &str, request: HttpRequest) -> Task {
        let url = if request.url.is_empty() {
            format!("{}/work", self.handler.url)
        } else {
            request.url.clone()
        };
        Task {
            name: name(id),
            message_type: Some(MessageType::HttpRequest(Box::new(HttpRequest {
                url,
                ..request
            }))),
            ..Task::default()
        }
    }

    /// A task that is due in a day.
    fn later(&self, id: &str) -> Task {
        let day = Duration::from_secs(24 * 3600);
        Task {
            schedule_time: Some(self.context.clock.now().plus(day).timestamp()),
            ..self.task(id)
        }
    }

    async fn create(&self, task: Task) -> Result<Task, Status> {
        let request = CreateTaskRequest {
            parent: QUEUE.into(),
            task: Some(task),
            response_view: View::Full.into(),
        };
        let created = self.tasks.create_task(Request::new(request)).await;
        created.map(tonic::Response::into_inner)
    }

    async fn get(&self, id: &str) -> Result<Task, Status> {
        let request = GetTaskRequest {
            name: name(id),
            response_view: View::Full.into(),
        };
        let got = self.tasks.get_task(Request::new(request)).await;
        got.map(tonic::Response::into_inner)
    }

    async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteTaskRequest { name: name(id) };
        let deleted = self.tasks.delete_task(Request::new(request)).await;
        deleted.map(tonic::Response::into_inner)
    }

    async fn run(&self, id: &str) -> Result<Task, Status> {
        let request = RunTaskRequest {
            name: name(id),
            response_view: 0,
        };
        let run = self.tasks.run_task(Request::new(request)).await;
        run.map(tonic::Response::into_inner)
    }

    async fn pause(&self) -> Queue {
        let request = PauseQueueRequest { name: QUEUE.into() };
        let paused = self.tasks.pause_queue(Request::new(request)).await;
        paused.unwrap().into_inner()
    }

    async fn resume(&self) -> Queue {
        let request = ResumeQueueRequest { name: QUEUE.into() };
        let resumed = self.tasks.resume_queue(Request::new(request)).await;
        resumed.unwrap().into_inner()
    }

    async fn purge(&self) -> Queue {
        let request = PurgeQueueRequest { name: QUEUE.into() };
        let purged = self.tasks.purge_queue(Request::new(request)).await;
        purged.unwrap().into_inner()
    }

    async fn queue(&self) -> Result<Queue, Status> {
        let request = GetQueueRequest { name: QUEUE.into() };
        let got = self.tasks.get_queue(Request::new(request)).await;
        got.map(tonic::Response::into_inner)
    }

    async fn delete_queue(&self) -> Result<(), Status> {
        let request = DeleteQueueRequest { name: QUEUE.into() };
        let deleted = self.tasks.delete_queue(Request::new(request)).await;
        deleted.map(tonic::Response::into_inner)
    }

    /// The ids of the queue's tasks.
    async fn ids(&self) -> Vec<String> {
        let request = ListTasksRequest {
            parent: QUEUE.into(),
            ..ListTasksRequest::default()
        };
        let list = self.tasks.list_tasks(Request::new(request)).await.unwrap();
        let tasks = list.into_inner().tasks;
        let short = |task: &Task| names::short(&task.name).to_owned();
        tasks.iter().map(short).collect()
    }

    /// Waits until something is so; fails after ten seconds.
    async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let mut changed = self.tasks.changed();
        let wait = async {
            while !is_so() {
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
        assert!(waited.is_ok(), "{what}: {:?}", self.tasks.busy());
    }

    /// Waits until nothing goes on but this many tasks' wait for their next attempt.
    async fn waits(&self, count: usize) {
        let line = format!("{QUEUE}: {count} tasks wait for their next attempt");
        let is_so = || self.tasks.busy() == [line.as_str()];
        self.until("not waiting", is_so).await;
    }

    /// Creates so many at the same time.
    async fn create_many(&self, count: usize, task: &Task) {
        let mut creates = tokio::task::JoinSet::new();
        for _ in 0..count {
            let (tasks, task) = (self.tasks.clone(), task.clone());
            let request = CreateTaskRequest {
                parent: QUEUE.into(),
                task: Some(task),
                response_view: 0,
            };
            creates.spawn(async move { tasks.create_task(Request::new(request)).await });
        }
        while let Some(created) = creates.join_next().await {
            created.unwrap().unwrap();
        }
    }

    async fn idle(&self) {
        self.until("not idle", || self.tasks.busy().is_empty())
            .await;
    }

    /// Waits until no dispatch is on the way and this many were made.
    async fn landed(&self, count: usize) {
        self.handler.wait_for(count).await;
        let flies = |line: &String| line.contains("on the way");
        self.until("still on the way", || !self.tasks.busy().iter().any(flies))
            .await;
    }

    fn history(&self) -> Vec<Dispatch> {
        let all = HistoryFilter {
            limit: 1000,
            ..HistoryFilter::default()
        };
        self.context.history.list(&all).0
    }

    fn results(&self) -> Vec<crate::history::DispatchResult> {
        self.history().into_iter().map(|it| it.result).collect()
    }
}

fn name(id: &str) -> String {
    if id.is_empty() {
        String::new()
    } else {
        format!("{QUEUE}/tasks/{id}")
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, message: &str) {
    let status = result.unwrap_err();
    assert_eq!((status.code(), status.message()), (code, message));
}

fn secs(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn sent(task: &Task) -> &HttpRequest {
    match task.message_type.as_ref() {
        Some(MessageType::HttpRequest(request)) => request,
        other => panic!("not an HTTP request: {other:?}"),
    }
}
