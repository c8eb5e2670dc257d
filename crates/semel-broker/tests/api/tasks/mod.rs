//! Cloud Tasks over REST; time is put forward, not waited for.

mod queues;
mod updates;
mod create;
mod dispatch;
mod target;
mod retries;
mod faults;
mod restart;
mod beta;

use crate::support::{ApiResult, Broker, Handler, invalid, merged, ok, refused, rows, short};
use serde_json::{Value, json};
use std::ops::Deref;

const PARENT: &str = "/v2/projects/p/locations/l";
const QUEUE: &str = "/v2/projects/p/locations/l/queues/q";
const QUEUE_NAME: &str = "projects/p/locations/l/queues/q";
const PAST: &str = "The task no longer exists, though a task with this name existed recently. The task either successfully completed or was deleted.";
const USED_UP: &str = "The task cannot be created because a task with this name existed too recently. For more information about task de-duplication see https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues.tasks/create#body.request_body.FIELDS.task.";
const NO_QUEUE: &str = "Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.";
const NOT_FOUND: &str = "Requested entity was not found.";
const QUEUE_USED_UP: &str =
    "The queue cannot be created because a queue with this name existed too recently.";
const NO_CONNECTION: &str = "UNKNOWN(2): HTTP status code 0";

/// A broker, one queue, one handler.
struct TestQueue {
    broker: Broker,
    handler: Handler,
    /// When it started, in seconds since 1970.
    started: i64,
}

impl Deref for TestQueue {
    type Target = Broker;

    fn deref(&self) -> &Broker {
        &self.broker
    }
}

// === impl TestQueue ===

impl TestQueue {
    async fn new(faults: &[&str]) -> Self {
        Self::of(Broker::start(faults).await, json!({})).await
    }

    async fn with_queue(queue: Value) -> Self {
        Self::of(Broker::start(&[]).await, queue).await
    }

    async fn retrying(retry: Value) -> Self {
        Self::with_queue(json!({ "retryConfig": retry })).await
    }

    async fn of(broker: Broker, queue: Value) -> Self {
        let started = broker.now_us().await / 1_000_000;
        let handler = Handler::start().await;
        let test = Self {
            broker,
            handler,
            started,
        };
        test.create_queue("q", queue).await.unwrap();
        test
    }

    async fn create_queue(&self, id: &str, queue: Value) -> ApiResult {
        let name = json!({ "name": format!("projects/p/locations/l/queues/{id}") });
        let queue = merged(queue, name);
        self.post(&format!("{PARENT}/queues"), queue).await
    }

    /// A task for the handler; without a name if `id` is empty.
    fn task(&self, id: &str) -> Value {
        self.task_of(id, json!({}))
    }

    fn task_of(&self, id: &str, request: Value) -> Value {
        let url = json!({ "url": format!("{}/work", self.handler.url) });
        let task = json!({ "httpRequest": merged(url, request) });
        match id {
            "" => task,
            id => merged(task, json!({ "name": format!("{QUEUE_NAME}/tasks/{id}") })),
        }
    }

    /// A task that is due in some days.
    fn later(&self, id: &str) -> Value {
        merged(self.task(id), self.some_day())
    }

    fn some_day(&self) -> Value {
        json!({ "scheduleTime": timestamp(self.started + 20 * 86_400) })
    }

    async fn create(&self, task: Value) -> ApiResult {
        let request = json!({ "task": task, "responseView": "FULL" });
        self.post(&format!("{QUEUE}/tasks"), request).await
    }

    async fn task_named(&self, id: &str) -> ApiResult {
        self.get(&format!("{QUEUE}/tasks/{id}?responseView=FULL"))
            .await
    }

    async fn delete_task(&self, id: &str) -> ApiResult {
        self.delete(&format!("{QUEUE}/tasks/{id}")).await
    }

    async fn run(&self, id: &str) -> ApiResult {
        self.post(&format!("{QUEUE}/tasks/{id}:run"), json!({}))
            .await
    }

    /// Pauses, resumes or purges the queue.
    async fn tell_queue(&self, verb: &str) -> Value {
        let told = self.post(&format!("{QUEUE}:{verb}"), json!({})).await;
        told.unwrap()
    }

    async fn queue(&self) -> ApiResult {
        self.get(QUEUE).await
    }

    /// The ids of the queue's tasks.
    async fn ids(&self) -> Vec<String> {
        let list = self.get(&format!("{QUEUE}/tasks")).await.unwrap();
        let tasks = list["tasks"].as_array().into_iter().flatten();
        tasks.map(|task| short(task).to_owned()).collect()
    }

    /// Waits until nothing goes on but this many tasks' wait for their next attempt.
    async fn waits(&self, count: usize) {
        let line = format!("{QUEUE_NAME}: {count} tasks wait for their next attempt");
        let is_so = async |broker: &Broker| broker.busy(false).await == [line.as_str()];
        self.until("not waiting", is_so).await;
    }

    /// Creates so many at the same time.
    async fn create_many(&self, count: usize, task: &Value) {
        let request = json!({ "task": task });
        self.post_many(&format!("{QUEUE}/tasks"), &request, count)
            .await;
    }

    /// Waits until no dispatch is on the way and this many were made.
    async fn landed(&self, count: usize) {
        self.handler.wait_for(count).await;
        self.until("still on the way", async |broker| {
            let busy = broker.busy(false).await;
            !busy.iter().any(|line| line.contains("on the way"))
        })
        .await;
    }

    /// The status of a task's last attempt.
    async fn last_status(&self, id: &str) -> String {
        let task = self.task_named(id).await.unwrap();
        let status = &task["lastAttempt"]["responseStatus"]["message"];
        status.as_str().unwrap().to_owned()
    }

    /// A task of this name cannot be created now.
    async fn is_used_up(&self, id: &str) {
        let created = self.create(self.task(id)).await;
        refused(created, "ALREADY_EXISTS", USED_UP);
    }

    async fn is_past(&self, id: &str) {
        refused(self.task_named(id).await, "NOT_FOUND", PAST);
    }
}

fn timestamp(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap().to_string()
}

/// A moment of the interface in microseconds since 1970.
fn micros(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().unwrap().parse().unwrap();
    time.as_microsecond()
}

/// How often a task was dispatched, and how often answered.
fn counts(task: &Value) -> (i64, i64) {
    let count = |name: &str| task[name].as_i64().unwrap_or(0);
    (count("dispatchCount"), count("responseCount"))
}

fn rate(per_second: f64, concurrent: i32) -> Value {
    json!({ "rateLimits": { "maxDispatchesPerSecond": per_second, "maxConcurrentDispatches": concurrent } })
}
