//! The calls of Cloud Tasks.

use super::errors;
use super::filter::QueueFilter;
use super::queue_runner::SequenceNumbers;
use super::schedule::Schedule;
use super::{QueueRunner, Tasks, config, mask, names, paging, rows, target, view};
use crate::methods::Methods;
use crate::policies::Policies;
use crate::proto::tasks::queue::State;
use crate::proto::tasks::{
    Attempt, CreateQueueRequest, CreateTaskRequest, DeleteQueueRequest, DeleteTaskRequest,
    GetQueueRequest, GetTaskRequest, ListQueuesRequest, ListQueuesResponse, ListTasksRequest,
    ListTasksResponse, PauseQueueRequest, PurgeQueueRequest, Queue, ResumeQueueRequest,
    RunTaskRequest, Task, UpdateQueueRequest,
};
use crate::storage::{Batch, Table};
use std::ops::Bound;
use std::sync::Arc;
use tonic::Status;

const QUEUES_PAGE_MAX: usize = 9800;
const TASKS_PAGE_MAX: usize = 1000;

// === impl Tasks ===

impl Tasks {
    /// The methods; those that are asked for most come first.
    pub(crate) fn methods(self: &Arc<Self>) -> Methods<Self> {
        let refusals = &self.shared.context.refusals;
        Methods::new("google.cloud.tasks.v2.CloudTasks", self, refusals)
            .change("CreateTask", Self::create_task)
            .immediate("GetTask", Self::get_task)
            .change("DeleteTask", Self::delete_task)
            .immediate("ListTasks", Self::list_tasks)
            .immediate("RunTask", Self::run_task)
            .immediate("ListQueues", Self::list_queues)
            .immediate("GetQueue", Self::get_queue)
            .change("CreateQueue", Self::create_queue)
            .change("UpdateQueue", Self::update_queue)
            .change("DeleteQueue", Self::delete_queue)
            .change("PurgeQueue", Self::purge_queue)
            .change("PauseQueue", Self::pause_queue)
            .change("ResumeQueue", Self::resume_queue)
            .immediate("GetIamPolicy", Self::get_iam_policy)
            .change("SetIamPolicy", Self::set_iam_policy)
            .immediate("TestIamPermissions", Self::test_iam_permissions)
    }

    fn list_queues(&self, request: &ListQueuesRequest) -> Result<ListQueuesResponse, Status> {
        names::location(&request.parent, "ListQueues")?;
        let size = paging::size(request.page_size, QUEUES_PAGE_MAX, "ListQueuesRequest")?;
        let list = format!("queues {} {}", request.parent, request.filter);
        let after = paging::after(&request.page_token, &list, self.now())?;
        let filter = QueueFilter::parse(&request.filter)?;
        let queues = self.queues_of(&request.parent, after);
        let queues: Vec<Queue> = queues
            .filter(|queue| filter.matches(queue))
            .take(size)
            .collect();
        // Production gives a token with every page that holds something, the last one too.
        let last = queues.last();
        let next_page_token = last.map(|it| paging::token(&list, &it.name, self.now()));
        Ok(ListQueuesResponse {
            queues,
            next_page_token: next_page_token.unwrap_or_default(),
        })
    }

    fn get_queue(&self, request: &GetQueueRequest) -> Result<Queue, Status> {
        names::queue(&request.name, "GetQueue")?;
        Ok((*self.runner(&request.name)?.queue()).clone())
    }

    async fn create_queue(self: Arc<Self>, request: CreateQueueRequest) -> Result<Queue, Status> {
        names::location(&request.parent, "CreateQueue")?;
        let queue = request.queue.unwrap_or_default();
        names::new_queue(&queue.name, &request.parent)?;
        let queue = config::of_new_queue(queue)?;
        let _alone = self.queue_changes.lock().await;
        match self.find(&queue.name) {
            Some(_) => Err(errors::queue_exists()),
            None => self.begin(queue).await,
        }
    }

    /// Makes the queue if there is none.
    pub(crate) async fn update_queue(
        self: Arc<Self>,
        request: UpdateQueueRequest,
    ) -> Result<Queue, Status> {
        let wanted = request.queue.unwrap_or_default();
        names::queue(&wanted.name, "UpdateQueue")?;
        let paths = request.update_mask.map(|mask| mask.paths);
        mask::check(paths.as_deref().unwrap_or_default())?;
        if let Some(target) = wanted.http_target.clone() {
            target::check_tokens(&target)?;
            target::checked(target)?;
        }
        self.update(wanted, paths).await
    }

    async fn delete_queue(self: Arc<Self>, request: DeleteQueueRequest) -> Result<(), Status> {
        let name = request.name;
        names::queue(&name, "DeleteQueue")?;
        let _alone = self.queue_changes.lock().await;
        let runner = self.runners_mut().remove(&name);
        let runner = runner.ok_or_else(errors::not_found)?;
        let mut batch = Batch::default();
        let key = rows::queue_key(&name);
        batch.delete(Table::Queues, &key);
        Policies::delete(&mut batch, &name);
        let end = self.now().plus(rows::QUEUE_TOMBSTONE_LIFE);
        rows::put_tombstone(&mut batch, &key, end);
        Ok(runner.end_queue(batch).await?)
    }

    async fn purge_queue(self: Arc<Self>, request: PurgeQueueRequest) -> Result<Queue, Status> {
        names::queue(&request.name, "PurgeQueue")?;
        self.runner(&request.name)?.purge().await
    }

    async fn pause_queue(self: Arc<Self>, request: PauseQueueRequest) -> Result<Queue, Status> {
        names::queue(&request.name, "PauseQueue")?;
        self.set_state(&request.name, State::Paused).await
    }

    async fn resume_queue(self: Arc<Self>, request: ResumeQueueRequest) -> Result<Queue, Status> {
        names::queue(&request.name, "ResumeQueue")?;
        self.set_state(&request.name, State::Running).await
    }

    fn list_tasks(&self, request: &ListTasksRequest) -> Result<ListTasksResponse, Status> {
        names::queue(&request.parent, "ListTasks")?;
        let size = paging::size(request.page_size, TASKS_PAGE_MAX, "ListTasksRequest")?;
        let list = format!("tasks {}", request.parent);
        let after = paging::after(&request.page_token, &list, self.now())?;
        let runner = self.runner(&request.parent)?;
        let after = after.map(|id| rows::task_key(&runner.name, &id));
        let prefix = rows::task_prefix(&runner.name);
        let page = self
            .storage()
            .scan(Table::Tasks, &prefix, after.as_deref(), size);
        let page = page?;
        let last = page.last().and_then(|row| rows::split_task_key(&row.key));
        let next_page_token = last.map(|(_, id)| paging::token(&list, id, self.now()));
        let mut tasks = Vec::with_capacity(page.len());
        for row in page {
            let stored = rows::stored_task(row.value)?;
            let task = stored.task.unwrap_or_default();
            tasks.push(view::listed(task, request.response_view));
        }
        Ok(ListTasksResponse {
            tasks,
            next_page_token: next_page_token.unwrap_or_default(),
        })
    }

    fn get_task(&self, request: &GetTaskRequest) -> Result<Task, Status> {
        let name = names::task(&request.name, "GetTask")?;
        let runner = self.find(name.queue).ok_or_else(errors::not_found)?;
        if let Some(stored) = runner.shown(name.id)? {
            let task = stored.task.unwrap_or_default();
            return Ok(view::shown(task, request.response_view));
        }
        let key = rows::task_key(name.queue, name.id);
        match rows::has_tombstone(self.storage(), &key, self.now())? {
            true => Err(errors::task_is_past()),
            false => Err(errors::not_found()),
        }
    }

    async fn create_task(self: Arc<Self>, request: CreateTaskRequest) -> Result<Task, Status> {
        names::queue(&request.parent, "CreateTask")?;
        let task = request.task.unwrap_or_default();
        let chosen = match task.name.as_str() {
            "" => None,
            name => Some(names::new_task(name, &request.parent)?.to_owned()),
        };
        let runner = self.runner(&request.parent)?;
        let functions_url = self.functions_url.as_ref();
        let task = runner
            .accept(task, chosen.as_deref(), functions_url)
            .await?;
        Ok(view::shown(task, request.response_view))
    }

    async fn delete_task(self: Arc<Self>, request: DeleteTaskRequest) -> Result<(), Status> {
        let name = names::task(&request.name, "DeleteTask")?;
        let runner = self.find(name.queue).ok_or_else(errors::not_found)?;
        match runner.delete(name.id).await? {
            true => Ok(()),
            false => Err(errors::not_found()),
        }
    }

    fn run_task(&self, request: &RunTaskRequest) -> Result<Task, Status> {
        let name = names::task(&request.name, "RunTask")?;
        let (stored, others) = self.runner(name.queue)?.run(name.id)?;
        let mut task = stored.task.unwrap_or_default();
        let others = i32::try_from(others).unwrap_or(i32::MAX - 1);
        task.dispatch_count = task.dispatch_count.saturating_add(others + 1);
        task.last_attempt = Some(Attempt {
            schedule_time: task.schedule_time,
            ..Attempt::default()
        });
        Ok(view::shown(task, request.response_view))
    }

    fn queues_of(&self, parent: &str, after: Option<String>) -> impl Iterator<Item = Queue> {
        let prefix = format!("{parent}/queues/");
        let first = match after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix.clone()),
        };
        let runners = self.runners.read().expect("nobody panics holding it");
        let here = runners
            .range((first, Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(&prefix));
        let here: Vec<Arc<QueueRunner>> = here.map(|(_, runner)| Arc::clone(runner)).collect();
        here.into_iter().map(|runner| (*runner.queue()).clone())
    }

    /// A queue begins, unless one of its name ended too recently. The caller sees to it that there is none.
    async fn begin(&self, queue: Queue) -> Result<Queue, Status> {
        let shared = &self.shared;
        let key = rows::queue_key(&queue.name);
        let now = shared.context.clock.now();
        if rows::has_tombstone(&shared.context.storage, &key, now)? {
            return Err(errors::queue_existed_recently());
        }
        let mut batch = Batch::default();
        rows::put_queue(&mut batch, &queue, 0);
        shared.context.storage.commit(batch).await?;
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
        let _alone = self.queue_changes.lock().await;
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

    async fn set_state(&self, name: &str, state: State) -> Result<Queue, Status> {
        let change = |old: &Queue| {
            Ok(Queue {
                state: state.into(),
                ..old.clone()
            })
        };
        self.runner(name)?.configure(change).await
    }
}
