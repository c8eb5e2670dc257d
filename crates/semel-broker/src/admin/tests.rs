//! Every endpoint, with services that are made up.

mod shown;
mod whole;

use super::*;
use crate::clock::Time;
use crate::history::{DispatchResult, DispatchStart};
use crate::storage::Storage;
use axum::body::Body;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use std::time::Duration;
use tower::ServiceExt;

const QUEUE: &str = "projects/p/locations/l/queues/q";

/// A service that is as busy as it is told.
#[derive(Debug, Default)]
struct FakeService {
    tasks: std::sync::Mutex<Vec<String>>,
    changed: watch::Sender<u64>,
    /// What this one gives the other when it is looked at, done with its own.
    hands_over: std::sync::Mutex<Option<Arc<Self>>>,
}

/// Counts how often it was asked.
#[derive(Debug, Default)]
struct FakeProvisioner {
    made: std::sync::Mutex<usize>,
    fails: bool,
}

struct TestAdmin {
    admin: Admin,
    context: Arc<Context>,
    fakes: [Arc<FakeService>; 2],
    start: Arc<FakeProvisioner>,
}

// === impl FakeService ===

impl FakeService {
    fn set(&self, tasks: &[&str]) {
        *self.tasks.lock().unwrap() = tasks.iter().map(|&it| it.into()).collect();
        self.changed.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl super::Service for FakeService {
    fn counts(&self) -> Vec<(&'static str, usize)> {
        vec![("tasks", self.tasks.lock().unwrap().len())]
    }

    fn busy(&self, pull: bool, limit: usize) -> Vec<String> {
        let other = self.hands_over.lock().unwrap().take();
        if let Some(other) = other {
            other.tasks.lock().unwrap().push("handed over".into());
            self.set(&[]);
        }
        let tasks = self.tasks.lock().unwrap();
        let counts = tasks.iter().filter(|it| pull || !it.contains("pull"));
        counts.take(limit).cloned().collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    async fn reset(&self) -> Result<(), StorageError> {
        self.set(&[]);
        Ok(())
    }
}

#[async_trait]
impl Provisioner for FakeProvisioner {
    async fn provision(&self) -> Result<(), String> {
        *self.made.lock().unwrap() += 1;
        if self.fails {
            return Err("no room".into());
        }
        Ok(())
    }
}

// === impl TestAdmin ===

impl TestAdmin {
    fn new(faults: &[&str]) -> Self {
        Self::with(faults, FakeProvisioner::default(), Guard::default())
    }

    fn with(faults: &[&str], start: FakeProvisioner, guard: Guard) -> Self {
        let context = Context::in_test(Storage::in_memory(), faults);
        let fakes = [
            Arc::new(FakeService::default()),
            Arc::new(FakeService::default()),
        ];
        let start = Arc::new(start);
        let services = fakes.iter().map(|it| Arc::clone(it) as _).collect();
        let declared: Arc<dyn Provisioner> = Arc::clone(&start) as _;
        Self {
            admin: Admin::new(Arc::clone(&context), services, declared, guard),
            context,
            fakes,
            start,
        }
    }

    fn dispatches(&self, ids: &[&str]) {
        for id in ids {
            let number = self.context.history.begin(DispatchStart {
                at: Time(1),
                resource: QUEUE,
                id,
                attempt: 1,
                target: "http://127.0.0.1:1/",
                faults: vec!["duplicate"],
            });
            let history = &self.context.history;
            history.end(number, DispatchResult::TimedOut, Duration::ZERO);
        }
    }

    async fn ask(&self, method: Method, path: &str, body: &str) -> (StatusCode, String) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(Body::from(body.to_owned()))
            .unwrap();
        let response = routes(self.admin.clone()).oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn json(&self, method: Method, path: &str, body: &str) -> Value {
        let (status, text) = self.ask(method, path, body).await;
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// What is said, with which status, when something is refused.
    async fn refused(&self, method: Method, path: &str, body: &str) -> (u16, Value) {
        let (status, text) = self.ask(method, path, body).await;
        let json: Value = serde_json::from_str(&text).unwrap();
        assert!(json["error"].is_string() && json["retry_is_safe"].is_boolean());
        (status.as_u16(), json)
    }
}

fn ids(history: &Value) -> Vec<&str> {
    let list = history["dispatches"].as_array().unwrap();
    list.iter().map(|it| it["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_front_page_says_what_is_there() {
    let test = TestAdmin::new(&["duplicate=0.5"]);
    test.fakes[0].set(&["a", "b"]);
    for path in ["/_semel", "/_semel/"] {
        let page = test.json(Method::GET, path, "").await;
        assert_eq!(page["faults"]["faults"], json!(["duplicate=0.5"]));
        assert_eq!(page["clock"]["ahead_ms"], 0);
        assert!(page["counts"]["tasks"].is_number());
    }
}

#[tokio::test]
async fn wrong_methods_and_paths_are_named() {
    let test = TestAdmin::new(&[]);
    for (method, path, status) in [
        (Method::GET, "/_semel/reset", 405),
        (Method::POST, "/_semel/history", 405),
        (Method::PATCH, "/_semel/faults", 405),
        (Method::GET, "/_semel/wait-idle", 405),
        (Method::DELETE, "/_semel/", 405),
        (Method::GET, "/_semel/no/where", 404),
        (Method::POST, "/_semel/rest", 404),
    ] {
        let (refused, _) = test.refused(method, path, "").await;
        assert_eq!(refused, status, "{path}");
    }
}

#[tokio::test]
async fn every_path_is_guarded() {
    let guard = Guard::new(Some("s3cret"), false);
    let test = TestAdmin::with(&[], FakeProvisioner::default(), guard);
    for line in ENDPOINTS {
        let (method, path) = line.split_once(' ').unwrap();
        let path = path.split('?').next().unwrap();
        let (refused, _) = test.refused(method.parse().unwrap(), path, "").await;
        assert_eq!(refused, 401, "{line}");
    }
    assert_eq!(test.refused(Method::GET, "/_semel/x", "").await.0, 401);
    assert_eq!(*test.start.made.lock().unwrap(), 0);
    let request = Request::get("/_semel/")
        .header("authorization", "Bearer s3cret")
        .header("origin", "http://localhost")
        .body(Body::empty())
        .unwrap();
    let response = routes(test.admin.clone()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 403);
}
