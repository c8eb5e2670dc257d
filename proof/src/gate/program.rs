//! The programs of a deployment: gate, broker and handler, each started again and again.

use super::deployment::{Deployment, GateAddress};
use super::handler;
use super::store_probe::StoreProbe;
use crate::crash::{Case, Mode};
use crate::faults::plant;
use crate::harness::{FaultPoints, Intercepted, Ledger, ProcessConfig, Role, run_process};
use anyhow::Context;
use semel::protocol::InDoubt;
use semel::store::Letters;
use semel::work::{Backoff, Completes};
use semel_broker::Keep;
use semel_gate::settings::{
    Caller, FingerprintRule, KeyMissing, LetterLimits, Limits, OnExhausted, OnInvalid, Probe,
    RECONCILE_EVERY, RecordKeeping, Route, SenderAttempts, Settings, Source, Terms, Upstream,
    Verify,
};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

/// The queue that tasks are created in.
pub(super) const QUEUE: &str = "projects/proof/locations/here/queues/works";

/// How long outcomes are remembered: longer than any attack, and any jump of a clock.
const RETENTION: Duration = Duration::from_secs(24 * 3600);

/// How long the handler may take: longer than a pause of it.
const TIMEOUT: Duration = Duration::from_secs(8);

/// How long it may take where doubt is asked about: long effects are given up, and go on. Asked about is a run when it
/// acts no more, two seconds after its lease and its timeout at the earliest.
const PROBED_TIMEOUT: Duration = Duration::from_millis(300);
const PROBE_AFTER: Duration = Duration::from_secs(2);

/// The pause after a probe that was not answered.
const PROBE_AGAIN: Backoff = Backoff {
    first: Duration::from_millis(20),
    max: Duration::from_millis(500),
};

/// How long a duplicate waits for the run it meets.
const WAIT: Duration = Duration::from_secs(1);

/// How long a gate may finish what is in hand.
const GRACE: Duration = Duration::from_secs(9);

/// How long settled outcomes are kept in memory: short, so that most duplicates ask the store.
const CACHE: Duration = Duration::from_millis(200);

/// How long to try to take an address that the one before may still have.
const BIND_WITHIN: Duration = Duration::from_secs(40);
const BIND_AGAIN: Duration = Duration::from_millis(20);

/// Runs a gate, the broker or the handler until it is told to stop, or dies.
///
/// # Errors
/// When what it is started with cannot be read, or it cannot serve.
pub fn work(config: &str) -> anyhow::Result<()> {
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(2);
    run_process(config, runtime, run)
}

async fn run(config: ProcessConfig<Deployment>) -> anyhow::Result<()> {
    let deployment = &config.settings;
    let ledger = Ledger::open(&deployment.case.dir, config.number)?;
    let fault_points = FaultPoints::new(ledger.clone(), deployment.case.lease);
    if let Some(armed) = config.armed_fault {
        fault_points.arm(None, armed);
    }
    tokio::spawn(fault_points.clone().watch());
    match config.role {
        Role::Gate(number) => gate(deployment, number, ledger, fault_points).await,
        Role::Broker => broker(deployment, fault_points).await,
        Role::Handler => handler::serve(deployment, config.number, ledger, fault_points).await,
        Role::Worker => anyhow::bail!("a deployment has no workers"),
    }
}

async fn gate(
    deployment: &Deployment,
    number: usize,
    ledger: Ledger,
    fault_points: FaultPoints,
) -> anyhow::Result<()> {
    let gates = &deployment.gates;
    let address = gates.get(number).context("there is no such gate")?;
    let store = again(|| address.location.open()).await?;
    let store: Arc<dyn Letters> = Arc::new(Intercepted {
        store: plant(deployment.case.defect, store),
        interceptor: StoreProbe::new(&deployment.case, ledger, fault_points.clone()),
    });
    let settings = settings(deployment, address)?;
    semel_rig::failpoint::listen(move |point| fault_points.pass(None, point));
    let bound = again(|| semel_gate::Server::bind(settings.clone(), Arc::clone(&store))).await?;
    bound.serve(stopped()?).await;
    Ok(())
}

async fn broker(deployment: &Deployment, fault_points: FaultPoints) -> anyhow::Result<()> {
    let (_, queue) = QUEUE.rsplit_once('/').context("a queue has a name")?;
    let declared = format!(
        "project = \"proof\"\nlocation = \"here\"\n[[queue]]\nname = \"{queue}\"\nmax_concurrent_dispatches = 24\n\
         max_dispatches_per_second = 500\nmin_backoff = \"50ms\"\nmax_backoff = \"500ms\"\nmax_attempts = -1\n"
    );
    let faults = deployment.broker_faults.iter().map(|fault| fault.parse());
    let settings = semel_broker::Settings {
        listen: here(deployment.broker),
        keep: Keep::Directory(deployment.broker_dir.clone()),
        seed: deployment.seed,
        faults: faults.collect::<Result<_, _>>()?,
        declared: declared.parse()?,
        ..semel_broker::Settings::default()
    };
    semel_rig::failpoint::listen(move |point| fault_points.pass(None, point));
    let bound = again(|| semel_broker::Bound::bind(settings.clone())).await?;
    bound.serve(stopped()?).await;
    Ok(())
}

pub(super) fn here(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The one before may have died a moment ago.
async fn again<T, E, F>(mut bind: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let until = Instant::now() + BIND_WITHIN;
    loop {
        match bind().await {
            Err(_) if Instant::now() < until => sleep(BIND_AGAIN).await,
            bound => return bound,
        }
    }
}

/// Resolves when this process is told to stop.
pub(super) fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        terminate.recv().await;
    })
}

fn settings(deployment: &Deployment, address: &GateAddress) -> anyhow::Result<Settings> {
    Ok(Settings {
        listen: here(address.port),
        tls: None,
        admin: here(0),
        admin_token: None,
        name: "gate".into(),
        index: false,
        admin_view_token: None,
        admin_hosts: Vec::new(),
        steps: here(0),
        steps_url: None,
        namespace: deployment.case.name.clone(),
        routes: vec![route(deployment, address)?],
        pass: None,
        bodies_bytes_max: 256 * 1024 * 1024,
        connections_max: 10_000,
        proxies: Vec::new(),
        limits: Limits::default(),
        grace: GRACE,
        shared_cache: CACHE,
        reconcile_every: RECONCILE_EVERY,
        otlp: None,
    })
}

/// One route for both: a broker's tasks are told from API clients by their headers.
fn route(deployment: &Deployment, address: &GateAddress) -> anyhow::Result<Route> {
    let mode = deployment.case.mode;
    let terms = terms(&deployment.case)?;
    let terms = std::array::from_fn(|_| terms.clone());
    Ok(Route {
        name: "crash".into(),
        path: "/work".parse()?,
        path_allows: Vec::new(),
        methods: Vec::new(),
        sources: Source::ALL.to_vec(),
        verify: Verify::Off,
        caller: Some(Caller::Shared),
        key_missing: KeyMissing::Refuse,
        webhook_origins: Vec::new(),
        fingerprint: FingerprintRule::Full,
        fingerprint_ignores: Vec::new(),
        require: Vec::new(),
        record: RecordKeeping::Store,
        platform_timeout: None,
        dead_letter_topic: false,
        terms,
        in_doubt: match mode {
            Mode::Park => InDoubt::Park,
            Mode::Probe => InDoubt::Probe,
            Mode::Retry | Mode::Downstream | Mode::Transaction => InDoubt::Retry,
        },
        probe: (mode == Mode::Probe).then(|| Probe {
            method: hyper::Method::GET,
            path: "/effects/{key}".into(),
            fences: true,
            after: PROBE_AFTER,
        }),
        completes: match mode {
            Mode::Transaction => Completes::Handler,
            Mode::Park | Mode::Probe | Mode::Retry | Mode::Downstream => Completes::Run,
        },
        downstream: None,
        promise: None,
        task_names_unique: false,
        final_statuses: vec![handler::FINAL_STATUS..=handler::FINAL_STATUS],
        // The handler says so before it has done anything.
        undone_statuses: vec![503..=503],
        max_attempts: 0,
        backoff: match mode {
            Mode::Probe => PROBE_AGAIN,
            Mode::Park | Mode::Retry | Mode::Downstream | Mode::Transaction => Backoff::default(),
        },
        concurrency: 32,
        queue: 1_000,
        upstream: Upstream {
            base: format!("http://127.0.0.1:{}", address.handler).parse()?,
            ca: None,
            h2c: false,
        },
        land: None,
        on_invalid: OnInvalid::Letter,
        on_exhausted: OnExhausted::Letter,
        cors: Vec::new(),
        letters: LetterLimits {
            count_max: 10_000,
            bytes_max: 256 * 1024 * 1024,
        },
        body_bytes_max: 1024 * 1024,
        answer_bytes_max: 1024 * 1024,
        private: None,
        keep_payload: false,
        show_bodies: false,
    })
}

fn terms(case: &Case) -> anyhow::Result<Terms> {
    Ok(Terms {
        key: "/work".parse()?,
        lease: case.lease,
        timeout: match case.mode {
            Mode::Probe => PROBED_TIMEOUT,
            Mode::Park | Mode::Retry | Mode::Downstream | Mode::Transaction => TIMEOUT,
        },
        deadline: None,
        retention: RETENTION,
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
        wait: WAIT,
    })
}
