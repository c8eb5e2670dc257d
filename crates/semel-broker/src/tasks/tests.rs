//! What only storage shows: what a crash, a restart, a reset and a hang-up leave behind.

use super::*;
use crate::handler::Handler;
use crate::history::{DispatchResult, HistoryFilter};
use crate::proto::tasks::cloud_tasks_server::CloudTasks;
use crate::proto::tasks::{
    CreateQueueRequest, CreateTaskRequest, DeleteTaskRequest, GetTaskRequest, PurgeQueueRequest,
    StoredTask,
};
use std::time::Duration;
use tempfile::TempDir;
use tonic::Request;

const QUEUE: &str = "projects/p/locations/l/queues/q";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// One queue on a storage, and a handler.
struct Setup {
    tasks: Tasks,
    context: Arc<Context>,
    handler: Handler,
}

// === impl Setup ===

impl Setup {
    async fn new(storage: &Storage) -> Self {
        let setup = Self::open(storage, Handler::start().await);
        setup.create_queue().await;
        setup
    }

    fn open(storage: &Storage, handler: Handler) -> Self {
        let context = Context::in_test(storage.clone(), &[]);
        Self {
            tasks: Tasks::open(Arc::clone(&context), None).unwrap(),
            context,
            handler,
        }
    }

    async fn create_queue(&self) {
        let request = CreateQueueRequest {
            parent: "projects/p/locations/l".into(),
            queue: Some(Queue {
                name: QUEUE.into(),
                ..Queue::default()
            }),
        };
        self.tasks
            .create_queue(Request::new(request))
            .await
            .unwrap();
    }

    /// Creates a task that is due after a while; without a name if `id` is empty.
    async fn create(&self, id: &str, due: Duration) -> Task {
        let request = HttpRequest {
            url: self.handler.url.clone(),
            ..HttpRequest::default()
        };
        let task = Task {
            name: if id.is_empty() {
                String::new()
            } else {
                name(id)
            },
            message_type: Some(MessageType::HttpRequest(Box::new(request))),
            schedule_time: Some(self.context.clock.now().plus(due).timestamp()),
            ..Task::default()
        };
        let request = CreateTaskRequest {
            parent: QUEUE.into(),
            task: Some(task),
            response_view: 0,
        };
        let created = self.tasks.create_task(Request::new(request)).await;
        created.unwrap().into_inner()
    }

    async fn delete(&self, id: &str) {
        let request = DeleteTaskRequest { name: name(id) };
        self.tasks.delete_task(Request::new(request)).await.unwrap();
    }

    async fn is_there(&self, id: &str) -> bool {
        let request = GetTaskRequest {
            name: name(id),
            response_view: 0,
        };
        self.tasks.get_task(Request::new(request)).await.is_ok()
    }

    /// Waits until something is so; fails after ten seconds.
    async fn until(&self, is_so: impl Fn() -> bool) {
        let mut changed = self.tasks.changed();
        let wait = async {
            while !is_so() {
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
        assert!(waited.is_ok(), "{:?}", self.tasks.busy());
    }

    async fn idle(&self) {
        self.until(|| self.tasks.busy().is_empty()).await;
    }

    fn sequence(&self, id: &str) -> u64 {
        let stored = rows::task(&self.context.storage, QUEUE, id).unwrap();
        stored.unwrap().sequence
    }

    fn rows(&self, table: Table, prefix: &[u8]) -> usize {
        let rows = self.context.storage.scan(table, prefix, None, 10);
        rows.unwrap().len()
    }
}

fn name(id: &str) -> String {
    format!("{QUEUE}/tasks/{id}")
}

/// Lets others run until something is so.
async fn eventually(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
    waited.expect("it stays as it is");
}

#[tokio::test]
async fn a_generated_name_leaves_nothing_behind() {
    let setup = Setup::new(&Storage::in_memory()).await;
    let task = setup.create("", Duration::ZERO).await;
    setup.handler.wait_for(1).await;
    setup.idle().await;
    assert!(!setup.is_there(names::short(&task.name)).await);
    assert_eq!(setup.rows(Table::Tombstones, &[]), 0);
}

#[tokio::test]
async fn a_broker_that_dies_in_a_dispatch_delivers_again() {
    let storage = Storage::in_memory();
    let first = Setup::new(&storage).await;
    first.handler.hold();
    first.create("t", Duration::ZERO).await;
    first.handler.wait_for(1).await;
    let second = Setup::open(&storage, first.handler.clone());
    let seen = second.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskretrycount"), "0");
    second.handler.let_go();
    second.idle().await;
    assert!(!second.is_there("t").await);
}

#[tokio::test]
async fn what_a_deleted_queue_left_behind_is_taken_away() {
    let storage = Storage::in_memory();
    let setup = Setup::new(&storage).await;
    setup.create("t", DAY).await;
    // As if the broker had died between the queue's row and its tasks'.
    let mut batch = Batch::default();
    batch.delete(Table::Queues, &rows::queue_key(QUEUE));
    storage.commit(batch).await.unwrap();
    let setup = Setup::open(&storage, setup.handler);
    assert!(setup.tasks.runner(QUEUE).is_err());
    eventually(|| setup.rows(Table::Tasks, &[]) == 0).await;
}

#[tokio::test]
async fn a_dropped_broker_sends_nothing_more() {
    let setup = Setup::new(&Storage::in_memory()).await;
    setup.create("t", DAY).await;
    let (clock, handler) = (setup.context.clock.clone(), setup.handler.clone());
    let context = Arc::downgrade(&setup.context);
    drop(setup);
    clock.advance(2 * DAY);
    eventually(|| context.upgrade().is_none()).await;
    assert!(handler.seen().is_empty());
}

#[tokio::test]
async fn a_reset_forgets_everything_and_nothing_comes_back() {
    let setup = Setup::new(&Storage::in_memory()).await;
    setup.create("used", DAY).await;
    setup.delete("used").await;
    setup.handler.hold();
    setup.handler.answer_next(&[500]);
    setup.create("t", Duration::ZERO).await;
    setup.handler.wait_for(1).await;
    setup.tasks.reset().await.unwrap();
    assert!(setup.tasks.busy().is_empty());
    assert!(setup.tasks.runner(QUEUE).is_err());
    setup.create_queue().await;
    setup.create("used", DAY).await;
    setup.handler.let_go();
    let all = HistoryFilter {
        limit: 1,
        ..HistoryFilter::default()
    };
    let ended = || setup.context.history.list(&all).0[0].result != DispatchResult::Running;
    setup.until(ended).await;
    assert!(!setup.is_there("t").await);
    assert!(setup.is_there("used").await);
    assert_eq!(setup.rows(Table::Tasks, &[]), 1);
}

#[tokio::test]
async fn a_caller_who_hangs_up_changes_nothing() {
    let setup = Setup::new(&Storage::in_memory()).await;
    let mut create = Box::pin(setup.create("t", Duration::ZERO));
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(create.as_mut().poll(context).is_ready())
    })
    .await;
    drop(create);
    setup.handler.wait_for(1).await;
    setup.idle().await;
}

#[tokio::test]
async fn sequence_numbers_begin_anew_after_a_reset() {
    let setup = Setup::new(&Storage::in_memory()).await;
    setup.create("a", DAY).await;
    setup.create("b", DAY).await;
    assert_eq!((setup.sequence("a"), setup.sequence("b")), (0, 1));
    setup.tasks.reset().await.unwrap();
    setup.create_queue().await;
    setup.create("c", DAY).await;
    assert_eq!(setup.sequence("c"), 0);
}

#[tokio::test]
async fn what_a_restart_finds_does_not_change_the_dice() {
    let mut numbers = Vec::new();
    for left in [true, false] {
        let storage = Storage::in_memory();
        let setup = Setup::new(&storage).await;
        for id in ["a", "b", "c"] {
            setup.create(id, DAY).await;
            if !left {
                setup.delete(id).await;
            }
        }
        let purge = PurgeQueueRequest { name: QUEUE.into() };
        setup.tasks.purge_queue(Request::new(purge)).await.unwrap();
        let setup = Setup::open(&storage, setup.handler);
        setup.create("d", DAY).await;
        numbers.push(setup.sequence("d"));
    }
    assert_eq!(numbers[0], numbers[1]);
    assert!(numbers[0] > 2, "{numbers:?}");
}

#[tokio::test]
async fn a_queue_that_begins_while_an_old_one_is_cleared_away_keeps_its_tasks() {
    let directory = TempDir::new().unwrap();
    let storage = Storage::open(directory.path()).unwrap();
    let mut batch = Batch::default();
    for number in 0..20_500 {
        let id = format!("left-{number}");
        rows::put_task(&mut batch, QUEUE, &id, &StoredTask::default());
    }
    storage.commit(batch).await.unwrap();
    let setup = Setup::new(&storage).await;
    setup.create("new", DAY).await;
    let left = rows::task_key(QUEUE, "left-");
    eventually(|| setup.rows(Table::Tasks, &left) == 0).await;
    assert!(setup.is_there("new").await);
    assert_eq!(setup.rows(Table::Tasks, &[]), 1);
}
