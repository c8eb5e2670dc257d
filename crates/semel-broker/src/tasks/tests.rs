//! What only storage shows: what a crash, a restart, a reset and a hang-up leave behind.

use super::*;
use crate::handler::Handler;
use crate::history::{DispatchResult, HistoryFilter};
use crate::proto::tasks::StoredTask;
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;

const QUEUE: &str = "projects/p/locations/l/queues/q";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// One queue on a storage, and a handler.
struct TestTasks {
    tasks: Arc<Tasks>,
    context: Arc<Context>,
    handler: Handler,
}

// === impl TestTasks ===

impl TestTasks {
    async fn new(storage: &Storage) -> Self {
        let test = Self::open(storage, Handler::start().await);
        test.create_queue().await;
        test
    }

    fn open(storage: &Storage, handler: Handler) -> Self {
        let context = Context::in_test(storage.clone(), &[]);
        Self {
            tasks: Arc::new(Tasks::open(Arc::clone(&context), None, None).unwrap()),
            context,
            handler,
        }
    }

    async fn create_queue(&self) {
        let queue = json!({ "parent": "projects/p/locations/l", "queue": { "name": QUEUE } });
        self.call("CreateQueue", queue).await.unwrap();
    }

    /// Creates a task that is due after a while; without a name if `id` is empty.
    async fn create(&self, id: &str, due: Duration) -> Value {
        let due = self.context.clock.now().plus(due).0;
        let task = json!({
            "name": if id.is_empty() { String::new() } else { name(id) },
            "httpRequest": { "url": self.handler.url },
            "scheduleTime": jiff::Timestamp::from_microsecond(due).unwrap().to_string(),
        });
        let request = json!({ "parent": QUEUE, "task": task });
        self.call("CreateTask", request).await.unwrap()
    }

    async fn call(&self, method: &str, request: Value) -> Result<Value, Status> {
        self.tasks.methods().call(method, request).await
    }

    async fn delete(&self, id: &str) {
        let task = json!({ "name": name(id) });
        self.call("DeleteTask", task).await.unwrap();
    }

    async fn is_there(&self, id: &str) -> bool {
        let task = json!({ "name": name(id) });
        self.call("GetTask", task).await.is_ok()
    }

    /// Waits until something is so; fails after ten seconds.
    async fn until(&self, is_so: impl Fn() -> bool) {
        let mut changed = self.tasks.changes();
        let wait = async {
            while !is_so() {
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
        assert!(waited.is_ok(), "{:?}", self.tasks.busy(false, 1));
    }

    async fn idle(&self) {
        self.until(|| self.tasks.busy(false, 1).is_empty()).await;
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
    let test = TestTasks::new(&Storage::in_memory()).await;
    let task = test.create("", Duration::ZERO).await;
    test.handler.wait_for(1).await;
    test.idle().await;
    let id = names::short(task["name"].as_str().unwrap());
    assert!(!test.is_there(id).await);
    assert_eq!(test.rows(Table::Tombstones, &[]), 0);
}

#[tokio::test]
async fn a_broker_that_dies_in_a_dispatch_delivers_again() {
    let storage = Storage::in_memory();
    let first = TestTasks::new(&storage).await;
    first.handler.hold();
    first.create("t", Duration::ZERO).await;
    first.handler.wait_for(1).await;
    let second = TestTasks::open(&storage, first.handler.clone());
    let seen = second.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskretrycount"), "0");
    second.handler.let_go();
    second.idle().await;
    assert!(!second.is_there("t").await);
}

#[tokio::test]
async fn what_a_deleted_queue_left_behind_is_taken_away() {
    let storage = Storage::in_memory();
    let test = TestTasks::new(&storage).await;
    test.create("t", DAY).await;
    // As if the broker had died between the queue's row and its tasks'.
    let mut batch = Batch::default();
    batch.delete(Table::Queues, &rows::queue_key(QUEUE));
    storage.commit(batch).await.unwrap();
    let test = TestTasks::open(&storage, test.handler);
    assert!(test.tasks.runner(QUEUE).is_err());
    eventually(|| test.rows(Table::Tasks, &[]) == 0).await;
}

#[tokio::test]
async fn a_dropped_broker_sends_nothing_more() {
    let test = TestTasks::new(&Storage::in_memory()).await;
    test.create("t", DAY).await;
    let (clock, handler) = (test.context.clock.clone(), test.handler.clone());
    let context = Arc::downgrade(&test.context);
    drop(test);
    clock.advance(2 * DAY);
    eventually(|| context.upgrade().is_none()).await;
    assert!(handler.seen().is_empty());
}

#[tokio::test]
async fn a_reset_forgets_everything_and_nothing_comes_back() {
    let test = TestTasks::new(&Storage::in_memory()).await;
    test.create("used", DAY).await;
    test.delete("used").await;
    test.handler.hold();
    test.handler.answer_next(&[500]);
    test.create("t", Duration::ZERO).await;
    test.handler.wait_for(1).await;
    test.tasks.reset().await.unwrap();
    assert!(test.tasks.busy(false, 1).is_empty());
    assert!(test.tasks.runner(QUEUE).is_err());
    test.create_queue().await;
    test.create("used", DAY).await;
    test.handler.let_go();
    let all = HistoryFilter {
        limit: 1,
        ..HistoryFilter::default()
    };
    let ended = || test.context.history.list(&all).0[0].result != DispatchResult::Running;
    test.until(ended).await;
    assert!(!test.is_there("t").await);
    assert!(test.is_there("used").await);
    assert_eq!(test.rows(Table::Tasks, &[]), 1);
}

#[tokio::test]
async fn a_caller_who_hangs_up_changes_nothing() {
    let test = TestTasks::new(&Storage::in_memory()).await;
    let mut create = Box::pin(test.create("t", Duration::ZERO));
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(create.as_mut().poll(context).is_ready())
    })
    .await;
    drop(create);
    test.handler.wait_for(1).await;
    test.idle().await;
}

#[tokio::test]
async fn sequence_numbers_begin_anew_after_a_reset() {
    let test = TestTasks::new(&Storage::in_memory()).await;
    test.create("a", DAY).await;
    test.create("b", DAY).await;
    assert_eq!((test.sequence("a"), test.sequence("b")), (0, 1));
    test.tasks.reset().await.unwrap();
    test.create_queue().await;
    test.create("c", DAY).await;
    assert_eq!(test.sequence("c"), 0);
}

#[tokio::test]
async fn what_a_restart_finds_does_not_change_the_dice() {
    let mut numbers = Vec::new();
    for left in [true, false] {
        let storage = Storage::in_memory();
        let test = TestTasks::new(&storage).await;
        for id in ["a", "b", "c"] {
            test.create(id, DAY).await;
            if !left {
                test.delete(id).await;
            }
        }
        let queue = json!({ "name": QUEUE });
        test.call("PurgeQueue", queue).await.unwrap();
        let test = TestTasks::open(&storage, test.handler);
        test.create("d", DAY).await;
        numbers.push(test.sequence("d"));
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
    let test = TestTasks::new(&storage).await;
    test.create("new", DAY).await;
    let left = rows::task_key(QUEUE, "left-");
    eventually(|| test.rows(Table::Tasks, &left) == 0).await;
    assert!(test.is_there("new").await);
    assert_eq!(test.rows(Table::Tasks, &[]), 1);
}
