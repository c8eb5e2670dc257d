//! A broker in this process, asked over its own port, and a handler that it delivers to.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

pub(crate) mod grpc;
pub(crate) mod handler;
pub(crate) mod table;

pub(crate) use handler::{Handler, Seen};
pub(crate) use table::rows;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use semel_broker::{Bound, Keep, Settings, StartError};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Nothing in these tests takes longer, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A broker that serves until it is stopped.
pub(crate) struct Broker {
    pub(crate) address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

/// A response, whatever its status.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// An error as Google's front end words it.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) details: Value,
}

/// What a call comes to.
pub(crate) type ApiResult = Result<Value, ApiError>;

// === impl Broker ===

impl Broker {
    /// In memory, with these faults.
    pub(crate) async fn start(faults: &[&str]) -> Self {
        let faults = faults.iter().map(|fault| fault.parse().unwrap());
        Self::with(Settings {
            faults: faults.collect(),
            seed: 1,
            ..settings()
        })
        .await
    }

    pub(crate) async fn in_directory(directory: &Path) -> Self {
        Self::serve(bind_in(directory, settings()).await.unwrap())
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::serve(Bound::bind(settings).await.unwrap())
    }

    pub(crate) fn serve(bound: Bound) -> Self {
        let address = bound.address();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(bound.serve(async move { drop(stopped.await) }));
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self {
            address,
            client,
            stop,
            served,
        }
    }

    pub(crate) async fn stop(self) {
        drop(self.client);
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }

    /// Sends a request to a path, with the broker's own name as host.
    pub(crate) async fn send(&self, request: http::request::Builder, body: &str) -> Response {
        let request: Request<Full<Bytes>> = request.body(body.to_owned().into()).unwrap();
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().unwrap();
        parts.uri = format!("http://{}{path}", self.address).parse().unwrap();
        let request = Request::from_parts(parts, body);
        let (parts, body) = self.client.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Response {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: &Value) -> ApiResult {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder().method(method).uri(path);
        let response = self.send(request, &body).await;
        let json: Value = serde_json::from_str(&response.text).unwrap_or_default();
        if response.status.is_success() {
            return Ok(json);
        }
        let error = json.get("error").unwrap_or(&json);
        let text = |name: &str| error[name].as_str().unwrap_or(&response.text).to_owned();
        Err(ApiError {
            status: text("status"),
            message: text("message"),
            details: error["details"].clone(),
        })
    }

    pub(crate) async fn get(&self, path: &str) -> ApiResult {
        self.ask("GET", path, &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> ApiResult {
        self.ask("POST", path, &body).await
    }

    /// Posts the same so many times at the same time.
    pub(crate) async fn post_many(&self, path: &str, body: &Value, count: usize) {
        let mut posts = tokio::task::JoinSet::new();
        for _ in 0..count {
            let request = Request::post(format!("http://{}{path}", self.address));
            let request = request.body(body.to_string().into()).unwrap();
            posts.spawn(self.client.request(request));
        }
        while let Some(posted) = posts.join_next().await {
            assert!(posted.unwrap().unwrap().status().is_success());
        }
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> ApiResult {
        self.ask("PUT", path, &body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> ApiResult {
        self.ask("PATCH", path, &body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> ApiResult {
        self.ask("DELETE", path, &Value::Null).await
    }

    /// Puts the broker's clock forward.
    pub(crate) async fn advance(&self, seconds: u64) {
        let by = json!({ "seconds": seconds });
        self.post("/_semel/clock/advance", by).await.unwrap();
    }

    /// What the broker's clock shows, in microseconds since 1970.
    pub(crate) async fn now_us(&self) -> i64 {
        let clock = self.get("/_semel/clock").await.unwrap();
        clock["now_us"].as_i64().unwrap()
    }

    pub(crate) async fn set_faults(&self, faults: &[&str]) {
        let faults = json!({ "faults": faults });
        self.put("/_semel/faults", faults).await.unwrap();
    }

    /// Every dispatch so far.
    pub(crate) async fn history(&self) -> Vec<Value> {
        let history = self.get("/_semel/history?limit=10000").await.unwrap();
        history["dispatches"].as_array().unwrap().clone()
    }

    /// What came of each dispatch.
    pub(crate) async fn results(&self) -> Vec<String> {
        let text = |it: &Value| it["result"].as_str().unwrap().to_owned();
        self.history().await.iter().map(text).collect()
    }

    /// What is still to be done, in words; what waits for a pull too, if wanted.
    pub(crate) async fn busy(&self, pull: bool) -> Vec<String> {
        let now = json!({ "timeout": "0s", "pull": pull }).to_string();
        let request = Request::post("/_semel/wait-idle");
        let response = self.send(request, &now).await;
        let json: Value = serde_json::from_str(&response.text).unwrap();
        let busy = json["busy"].as_array().into_iter().flatten();
        busy.map(|it| it.as_str().unwrap().to_owned()).collect()
    }

    /// Waits until nothing is left to be done.
    pub(crate) async fn idle(&self, pull: bool) {
        let wait = json!({ "timeout": "10s", "pull": pull });
        self.post("/_semel/wait-idle", wait).await.unwrap();
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl AsyncFnMut(&Self) -> bool) {
        let wait = async { while !is_so(self).await {} };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        assert!(waited.is_ok(), "{what}: {:?}", self.busy(true).await);
    }

    /// Waits until some dispatch has this result.
    pub(crate) async fn until_any(&self, result: &str) {
        self.until_results(|all| all.iter().any(|it| it == result))
            .await;
    }

    /// Waits until the results of all dispatches are as wanted.
    pub(crate) async fn until_results(&self, are_so: impl Fn(&[String]) -> bool) {
        let is_so = async |broker: &Self| are_so(&broker.results().await);
        self.until("other results", is_so).await;
    }
}

/// A broker in a directory; waits for the one before it to let go of it.
pub(crate) async fn bind_in(directory: &Path, settings: Settings) -> Result<Bound, StartError> {
    let settings = Settings {
        keep: Keep::Directory(directory.into()),
        ..settings
    };
    let bound = async {
        loop {
            match Bound::bind(settings.clone()).await {
                Err(StartError::Keep(_)) => tokio::task::yield_now().await,
                bound => return bound,
            }
        }
    };
    let bound = tokio::time::timeout(PATIENCE, bound).await;
    bound.expect("the directory stays locked")
}

/// On a free port, in memory.
pub(crate) fn settings() -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        ..Settings::default()
    }
}

/// An object with the fields of another over its own.
pub(crate) fn merged(mut base: Value, over: Value) -> Value {
    if let Value::Object(over) = over {
        base.as_object_mut().unwrap().extend(over);
    }
    base
}

/// What a call gives that is not refused.
pub(crate) async fn ok(call: impl Future<Output = ApiResult>) -> Value {
    call.await.unwrap()
}

/// Checks how a call is refused.
pub(crate) fn refused(answer: ApiResult, status: &str, message: &str) {
    let refused = answer.unwrap_err();
    assert_eq!((&*refused.status, &*refused.message), (status, message));
}

/// Checks that a call is refused as invalid.
pub(crate) fn invalid(answer: ApiResult, message: &str) {
    refused(answer, "INVALID_ARGUMENT", message);
}

/// The last part of a resource's name.
pub(crate) fn short(resource: &Value) -> &str {
    let name = resource["name"].as_str().unwrap();
    name.rsplit('/').next().unwrap()
}

/// The claims of the token that a request carries.
pub(crate) fn claims(seen: &Seen) -> Value {
    use base64::Engine;
    let token = seen
        .header("authorization")
        .strip_prefix("Bearer ")
        .unwrap();
    let claims = token.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims);
    serde_json::from_slice(&claims.unwrap()).unwrap()
}

pub(crate) fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
