//! A gate in this process, before a handler that does what the test says, on a store that can be
//! switched off.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the command's tests use a part, and a test may fail where it stands"
)]

pub(crate) mod client;
pub(crate) mod deliveries;
pub(crate) mod handler;
pub(crate) mod operator;
pub(crate) mod prelude;
pub(crate) mod store;
pub(crate) mod wire;

pub(crate) use client::{Answer, Ask};
pub(crate) use deliveries::{BROKERS, SENDERS, Sender};
pub(crate) use handler::{Act, Handler, Say, Seen};
pub(crate) use store::{Down, Switch};

use prelude::*;
use semel::key::KeyRule;
use semel::letter::Letter;
use semel::protocol::{Claim, Claimed, Held, Lease, Owner, Record};
use semel::store::{Letters, Store};
use semel::work::Backoff;
use semel::{Fingerprint, Key};
use semel_gate::settings::{
    Caller, KeyMissing, LetterLimits, Limits, OnExhausted, Pass, RecordKeeping, SenderAttempts,
    Terms, Upstream, Verify,
};
use semel_gate::{Landings, Server, Unfinished};
use std::future::Future;
use tokio::sync::oneshot;

/// Nothing in these tests takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(15);

/// A gate at work.
pub(crate) struct Bed {
    pub(crate) gate: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) handler: Handler,
    pub(crate) store: Arc<Switch>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Unfinished>,
}

// === impl Bed ===

impl Bed {
    /// A gate with one route, `/work`, for every sender.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The same with another route.
    pub(crate) async fn route(change: impl FnOnce(&mut Route)) -> Self {
        Self::with(|settings| change(&mut settings.routes[0])).await
    }

    /// The same with other terms for every sender.
    pub(crate) async fn terms(change: impl Fn(&mut Terms)) -> Self {
        Self::route(|route| terms_of(route, change)).await
    }

    /// The same with other limits.
    pub(crate) async fn limits(change: impl FnOnce(&mut Limits)) -> Self {
        Self::with(|settings| change(&mut settings.limits)).await
    }

    /// The same with other settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::on(Arc::default(), Handler::start().await, change).await
    }

    /// A gate on this store before this handler.
    pub(crate) async fn on(
        store: Arc<Switch>,
        handler: Handler,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        Self::landing(store, handler, &Landings::new(), change).await
    }

    /// The same whose deliveries land.
    pub(crate) async fn landing(
        store: Arc<Switch>,
        handler: Handler,
        landings: &Landings,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings = settings(handler.address);
        change(&mut settings);
        let kept: Arc<dyn Letters> = Arc::<Switch>::clone(&store);
        let bound = Server::bind_landing(settings, kept, landings);
        let bound = bound.await.unwrap();
        let (gate, admin) = (bound.address().unwrap(), bound.admin_address().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(bound.serve(async move { drop(stopped.await) }));
        Self {
            gate,
            admin,
            handler,
            store,
            stop,
            served,
        }
    }

    /// Sends a delivery and waits for the reply.
    pub(crate) async fn ask(&self, ask: Ask) -> Answer {
        ask.send(self.gate).await
    }

    /// Sends a delivery that must run well; the request that the handler saw.
    pub(crate) async fn forwards(&self, ask: Ask) -> Seen {
        self.ask(ask).await.is(200);
        self.handler.arrived().await
    }

    /// Sends an empty object under this name and waits for the reply.
    pub(crate) async fn deliver(&self, sender: Sender, name: &str) -> Answer {
        self.ask(sender.sends(name, "{}")).await
    }

    /// The same as an API client.
    pub(crate) async fn api(&self, key: &str) -> Answer {
        self.deliver(Sender::Api, key).await
    }

    /// The same as Cloud Tasks.
    pub(crate) async fn task(&self, name: &str) -> Answer {
        self.deliver(Sender::Task, name).await
    }

    /// Tells the handler to go on with what it holds; gives the reply.
    pub(crate) async fn go(&self, held: JoinHandle<Answer>) -> Answer {
        self.handler.go();
        held.await.unwrap()
    }

    /// Sends a delivery whose handler answers with 200 when it is told to go on; the handler has it.
    pub(crate) async fn hold(&self, ask: Ask) -> JoinHandle<Answer> {
        self.begin_with(Act::Hold(Say::new(200, "done")), ask).await
    }

    /// Sends a delivery with which the handler does this; the handler has it.
    pub(crate) async fn begin_with(&self, act: Act, ask: Ask) -> JoinHandle<Answer> {
        self.handler.will(act);
        let reply = self.begin(ask);
        self.handler.arrived().await;
        reply
    }

    /// Sends a delivery and goes on; the reply comes when it comes.
    pub(crate) fn begin(&self, ask: Ask) -> JoinHandle<Answer> {
        let gate = self.gate;
        tokio::spawn(async move { ask.send(gate).await })
    }

    /// Sends one duplicate more than may wait for a run. The first reply is that of the one too
    /// many, and by then all others are attached.
    pub(crate) async fn crowd(&self, ask: &Ask) -> (Answer, Vec<JoinHandle<Answer>>) {
        const WAITERS_MAX: usize = 64;
        let mut asked: Vec<_> = (0..=WAITERS_MAX).map(|_| self.begin(ask.clone())).collect();
        let first = within("a reply", futures_util::future::select_all(&mut asked)).await;
        let (answer, index, _) = first;
        drop(asked.swap_remove(index));
        (answer.unwrap(), asked)
    }

    /// What an operator or Prometheus reads.
    pub(crate) async fn admin(&self, path: &str) -> Answer {
        Ask::get(path).send(self.admin).await
    }

    /// The metrics have this text.
    pub(crate) async fn counts(&self, text: &str) {
        let metrics = self.admin("/metrics").await;
        assert!(metrics.text().contains(text), "{}", metrics.text());
    }

    /// Waits until the metrics have this text.
    pub(crate) async fn until_counted(&self, text: &str) {
        let told = async || self.admin("/metrics").await.text().contains(text);
        until(text, told).await;
    }

    /// How often the handler was asked.
    pub(crate) fn runs(&self) -> usize {
        self.handler.count()
    }

    /// All letters in the store, oldest first.
    pub(crate) async fn letters(&self) -> Vec<Letter> {
        let mut letters = Vec::new();
        let page = Letters::list(self.store.kept(), None, 100).await.unwrap();
        for head in page.items {
            letters.extend(self.store.kept().get(&head.id).await.unwrap());
        }
        letters
    }

    /// Why each of them was kept.
    pub(crate) async fn reasons(&self) -> Vec<Reason> {
        let letters = self.letters().await;
        letters.iter().map(|letter| letter.reason).collect()
    }

    /// All records in the store.
    pub(crate) async fn records(&self) -> Vec<(Key, Record)> {
        Store::list(self.store.kept(), None, None, 100)
            .await
            .unwrap()
            .items
    }

    /// The one key in the store.
    pub(crate) async fn key(&self) -> Key {
        let records = self.records().await;
        assert_eq!(records.len(), 1, "{records:?}");
        records[0].0
    }

    /// The record of the one key in the store.
    pub(crate) async fn record(&self) -> Record {
        let key = self.key().await;
        self.store.kept().look(&key).await.unwrap().unwrap()
    }

    /// The id of the one letter in the store.
    pub(crate) async fn letter(&self) -> String {
        let letters = self.letters().await;
        assert_eq!(letters.len(), 1, "{letters:?}");
        letters[0].id.to_string()
    }

    /// Claims a key, and does nothing with it: a gate that died.
    pub(crate) async fn claims(&self, key: Key, payload: Fingerprint, lease: Duration) -> Lease {
        let claim = Claim {
            lease,
            retention: Duration::from_secs(3600),
            ..Claim::new(key, payload)
        };
        let claimed = self.store.kept().claim(&claim).await.unwrap();
        let Claimed::Granted(lease) = claimed else {
            panic!("{claimed:?}")
        };
        lease
    }

    /// Completes the one run, as the handler's own transaction does.
    pub(crate) async fn complete(&self, outcome: Outcome) {
        let (key, record) = self.records().await[0].clone();
        let lease = Lease {
            key,
            owner: record.owner,
            fence: record.fence,
            born: record.born,
            attempt: record.attempts,
            in_doubt: record.in_doubt,
        };
        let retention = Duration::from_secs(3600);
        let kept = self.store.kept();
        let held = kept.complete(&lease, &outcome.encode(), retention).await;
        assert_eq!(held.unwrap(), Held::Applied(State::Succeeded));
    }

    /// Tells the gate to stop.
    pub(crate) fn stop(self) -> (JoinHandle<Unfinished>, Handler, Arc<Switch>) {
        drop(self.stop);
        (self.served, self.handler, self.store)
    }
}

/// Sends a delivery that must be refused with this problem; the reply.
pub(crate) async fn refused(bed: &Bed, ask: Ask, status: u16, code: &str) -> Answer {
    let answer = bed.ask(ask).await;
    answer.is_problem(status, code);
    answer
}

/// Waits for what must happen.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(done) => done,
        Err(_) => panic!("{what} did not happen within {PATIENCE:?}"),
    }
}

/// Looks again and again until it is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let looks = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    within(what, looks).await;
}

/// An address of this host with a free port.
pub(crate) fn here() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Where a handler listens.
pub(crate) fn upstream(address: SocketAddr) -> Upstream {
    Upstream {
        base: format!("http://{address}").parse().unwrap(),
        ca: None,
        h2c: false,
    }
}

/// Forwards these paths to the handler of the route.
pub(crate) fn pass(settings: &mut Settings, paths: &[&str]) {
    settings.pass = Some(Pass {
        paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
        upstream: settings.routes[0].upstream.clone(),
    });
}

pub(crate) fn settings(handler: SocketAddr) -> Settings {
    Settings {
        listen: here(),
        tls: None,
        admin: here(),
        admin_token: None,
        name: "gate".into(),
        index: false,
        admin_view_token: None,
        admin_hosts: Vec::new(),
        steps: here(),
        steps_url: None,
        namespace: "test".into(),
        routes: vec![route("work", "/work", handler)],
        pass: None,
        bodies_bytes_max: 64 * 1024 * 1024,
        connections_max: 1000,
        proxies: Vec::new(),
        limits: Limits::default(),
        grace: Duration::from_secs(5),
        shared_cache: Duration::from_secs(5),
        // Once at the start, then never again: what a test sees is its own doing.
        reconcile_every: Duration::from_secs(24 * 3600),
        otlp: None,
    }
}

/// A route for every sender.
pub(crate) fn route(name: &str, path: &str, handler: SocketAddr) -> Route {
    Route {
        name: name.into(),
        path: path.parse().unwrap(),
        path_allows: Vec::new(),
        methods: Vec::new(),
        sources: Source::ALL.to_vec(),
        verify: Verify::Off,
        caller: Some(Caller::Header("x-caller".into())),
        key_missing: KeyMissing::Refuse,
        webhook_origins: Vec::new(),
        fingerprint: FingerprintRule::Full,
        fingerprint_ignores: Vec::new(),
        require: Vec::new(),
        record: RecordKeeping::Store,
        platform_timeout: None,
        dead_letter_topic: false,
        terms: [
            terms("idempotency-key"),
            terms("cloud-tasks"),
            terms("pubsub"),
            terms("cloudevents"),
            terms("standard-webhooks"),
        ],
        in_doubt: InDoubt::Retry,
        probe: None,
        completes: Completes::Run,
        downstream: None,
        promise: None,
        task_names_unique: false,
        final_statuses: Vec::new(),
        undone_statuses: Vec::new(),
        max_attempts: 0,
        backoff: Backoff::default(),
        concurrency: 100,
        queue: 100,
        upstream: upstream(handler),
        land: None,
        on_invalid: OnInvalid::Letter,
        on_exhausted: OnExhausted::Letter,
        cors: Vec::new(),
        letters: LetterLimits {
            count_max: 10_000,
            bytes_max: 256 * 1024 * 1024,
        },
        body_bytes_max: 1024 * 1024,
        answer_bytes_max: 64 * 1024,
        private: None,
        keep_payload: false,
        show_bodies: false,
    }
}

fn terms(key: &str) -> Terms {
    Terms {
        key: key.parse().unwrap(),
        lease: Duration::from_secs(5),
        timeout: Duration::from_secs(10),
        deadline: None,
        retention: Duration::from_secs(3600),
        horizon: None,
        delivers_for: None,
        gap: None,
        max_in_doubt: 0,
        doubt_age: Duration::ZERO,
        park_after: None,
        sender_attempts: SenderAttempts {
            most: None,
            declared: true,
        },
        wait: Duration::from_secs(10),
    }
}

/// Gives every source of a route the same change.
pub(crate) fn terms_of(route: &mut Route, change: impl Fn(&mut Terms)) {
    route.terms.iter_mut().for_each(change);
}

/// The same rule for every source.
pub(crate) fn keyed_by(route: &mut Route, rule: &str) {
    let rule: KeyRule = rule.parse().unwrap();
    terms_of(route, |terms| terms.key = rule.clone());
}
