//! A handler in this process that writes down each effect, and can be held.

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Counts effects. Bodies that begin with `held` wait, after their effect, until they are let go.
#[derive(Debug)]
pub(crate) struct Counter {
    pub(crate) port: u16,
    shared: Arc<CounterState>,
    _runtime: Runtime,
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The body of the delivery, which names the work here.
    pub(crate) work: String,
    /// The gate that sent it, by the port of its steps.
    pub(crate) gate: u16,
}

#[derive(Debug)]
struct CounterState {
    effects: Mutex<Vec<Effect>>,
    let_go: watch::Sender<bool>,
    pause: std::time::Duration,
}

// === impl Counter ===

impl Counter {
    /// Serves on a free port. Each effect takes `pause`, so that runs are in flight when something happens.
    pub(crate) fn start(pause: std::time::Duration) -> Self {
        let shared = Arc::new(CounterState {
            effects: Mutex::default(),
            let_go: watch::Sender::new(false),
            pause,
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new()
            .fallback(effect)
            .with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            port,
            shared,
            _runtime: runtime,
        }
    }

    pub(crate) fn effects(&self) -> Vec<Effect> {
        self.shared.effects.lock().unwrap().clone()
    }

    /// How often this work took effect.
    pub(crate) fn count(&self, work: &str) -> usize {
        let effects = self.effects();
        effects.iter().filter(|effect| effect.work == work).count()
    }

    /// Lets everything go that is held.
    pub(crate) fn let_go(&self) {
        self.shared.let_go.send_replace(true);
    }
}

async fn effect(
    State(shared): State<Arc<CounterState>>,
    headers: HeaderMap,
    body: String,
) -> String {
    let gate = headers
        .get("semel-steps")
        .and_then(|url| url.to_str().ok()?.split(['/', ':']).nth(4)?.parse().ok());
    let effect = Effect {
        work: body.clone(),
        gate: gate.unwrap_or_default(),
    };
    shared.effects.lock().unwrap().push(effect);
    if body.starts_with("held") {
        let mut let_go = shared.let_go.subscribe();
        // It fails only when the test is over.
        let_go.wait_for(|let_go| *let_go).await.ok();
    }
    tokio::time::sleep(shared.pause).await;
    format!("did {body}")
}
