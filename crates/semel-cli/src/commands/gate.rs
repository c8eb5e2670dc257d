//! `semel gate`: the reverse proxy, from its configuration to its orderly end.

use crate::admin::is_unavailable;
use crate::args::RunArgs;
use crate::config::{self, Broken, Config, Finding, Verdict};
use crate::late_store::LateStore;
use crate::open_landings::{self, OpenedLandings};
use crate::open_store::{self, Opened, Schema};
use crate::promise::{self, Shown, StoreFacts, demanded};
use crate::telemetry::Telemetry;
use crate::{file_limit, log, out};
use anyhow::Context;
use semel::protocol::Ending;
use semel_gate::settings::Route;
use semel_gate::{PromiseLine, PromiseLines, Server, Unfinished};
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where a gate listens, and for whom.
#[derive(Debug)]
struct Listening {
    deliveries: SocketAddr,
    admin: SocketAddr,
    routes: String,
}

/// The promises of the routes, and the places whose servers they depend on besides the store's.
struct Proofs {
    config: Config,
    landings: OpenedLandings,
    /// Announces each further landing whose server is read.
    reads: watch::Receiver<u64>,
    /// Findings that the log has.
    told: BTreeSet<String>,
}

/// The promises of the routes, by what was read so far.
struct Judged {
    /// Names of the routes whose demand is proved.
    proved: Vec<String>,
    lines: BTreeMap<String, PromiseLine>,
}

/// Something was left that a restart cannot find out by itself (EX_TEMPFAIL).
const OUTCOMES_LEFT: u8 = 75;

/// How long the end of the process waits for a reader of standard error.
const STDERR_WITHIN: Duration = Duration::from_secs(1);

/// The pause after the first attempt to open the store; it doubles with each further one.
const OPEN_PAUSE_MIN: Duration = Duration::from_millis(500);

/// The longest pause: so long after its store a gate is ready at the latest.
const OPEN_PAUSE_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let mut config = config::load(&args.gate)?;
    let findings = config::check(&config);
    if let Some(broken) = Broken::among(&findings) {
        return Err(broken.into());
    }
    let log = log::begin()?;
    warn(&findings);
    let telemetry = Telemetry::from_env();
    for warning in &telemetry.warnings {
        tracing::warn!("{warning}");
    }
    config.settings.otlp = telemetry.otlp;
    file_limit::fit(&mut config.settings);
    let stopped = stopped()?;
    let landings = open_landings::open(&config, args.fail_fast).await?;
    let settings = config.settings.clone();
    let left = match open(&config).await {
        Ok((Opened { store, says, .. }, facts)) => {
            let mut proofs = Proofs::of(config, landings);
            let judged = proofs.judge(&facts)?;
            let landings = &proofs.landings.landings;
            let bound = Server::bind_landing(settings, store, landings).await?;
            bound.shows_lines_dropped(log.dropped());
            tell_ready(&Listening::of(&bound)?, &says);
            let lines = bound.promise_lines();
            proofs.hold(&lines, judged);
            if proofs.landings.is_read() {
                bound.serve(stopped).await
            } else {
                let proving = async move { proofs.keep_up(&facts, &lines, pending()).await };
                serve_late(bound, tokio::spawn(proving), stopped).await?
            }
        }
        Err(error) if is_unavailable(&error) && !args.fail_fast => {
            let late = Arc::new(LateStore::of(&config.store));
            let store = Arc::clone(&late) as _;
            let bound = Server::bind_landing(settings, store, &landings.landings).await?;
            bound.shows_lines_dropped(log.dropped());
            let listening = Listening::of(&bound)?;
            tell_waiting(&error, OPEN_PAUSE_MIN);
            let lines = bound.promise_lines();
            let proofs = Proofs::of(config, landings);
            let opening = tokio::spawn(open_late(proofs, late, listening, lines));
            serve_late(bound, opening, stopped).await?
        }
        Err(error) => return Err(error),
    };
    tell(&left);
    Ok(if left.pending.is_empty() {
        0
    } else {
        OUTCOMES_LEFT
    })
}

/// Opens the store, with what was read of its server.
async fn open(config: &Config) -> anyhow::Result<(Opened, StoreFacts)> {
    let opened = if config.keeps_records() {
        open_store::open(&config.store, config.options, Schema::BroughtUpToDate).await?
    } else {
        Opened::nothing()
    };
    let mut facts = StoreFacts::unread(config);
    if let Some(server) = opened.server.clone() {
        facts = facts.read(server);
    }
    Ok((opened, facts))
}

fn warn(findings: &[Finding]) {
    for finding in findings.iter().filter(|f| f.verdict == Verdict::Warning) {
        tracing::warn!(route = finding.route, "{finding}");
    }
}

/// Serves while the store is being opened or a landing read, and after that; ends with an error when it turns out that waiting
/// is of no use.
async fn serve_late(
    bound: Server,
    opening: JoinHandle<anyhow::Result<()>>,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<Unfinished> {
    let mut outcome = Ok(());
    let abort = opening.abort_handle();
    let stop = async {
        let mut stopped = std::pin::pin!(stopped);
        tokio::select! {
            () = &mut stopped => {}
            opened = opening => match opened.context("opening the store").flatten() {
                Ok(()) => stopped.await,
                Err(error) => outcome = Err(error),
            },
        }
    };
    let left = bound.serve(stop).await;
    abort.abort();
    outcome.map(|()| left)
}

/// Opens the store as soon as it is there. Until then rows land whose routes need no store for what they promise.
async fn open_late(
    mut proofs: Proofs,
    late: Arc<LateStore>,
    listening: Listening,
    lines: PromiseLines,
) -> anyhow::Result<()> {
    let unread = StoreFacts::unread(&proofs.config);
    let judged = proofs.judge(&unread)?;
    proofs.hold(&lines, judged);
    let mut pause = OPEN_PAUSE_MIN;
    loop {
        let paused = tokio::time::sleep(pause);
        proofs.keep_up(&unread, &lines, paused).await?;
        pause = OPEN_PAUSE_MAX.min(pause * 2);
        match open(&proofs.config).await {
            Ok((Opened { store, says, .. }, facts)) => {
                let judged = proofs.judge(&facts)?;
                late.is(store);
                tell_ready(&listening, &says);
                proofs.hold(&lines, judged);
                return proofs.keep_up(&facts, &lines, pending()).await;
            }
            Err(error) if is_unavailable(&error) => tell_waiting(&error, pause),
            Err(error) => return Err(error),
        }
    }
}

fn tell_waiting(error: &anyhow::Error, pause: Duration) {
    tracing::warn!(
        why = out::told(error),
        again_ms = pause.as_secs_f64() * 1e3,
        "waiting for the store: not ready, and senders hear 503; --fail-fast would exit instead"
    );
}

fn tell_ready(listening: &Listening, store: &str) {
    tracing::info!(
        listen = %listening.deliveries,
        admin = %listening.admin,
        routes = listening.routes,
        store,
        version = crate::VERSION,
        "ready"
    );
}

// === impl Proofs ===

impl Proofs {
    fn of(config: Config, landings: OpenedLandings) -> Self {
        Self {
            config,
            reads: landings.reads(),
            landings,
            told: BTreeSet::new(),
        }
    }

    /// Judges what the routes promise by what was read so far. Says what is new.
    ///
    /// # Errors
    /// A demanded promise that does not hold.
    fn judge(&mut self, facts: &StoreFacts) -> anyhow::Result<Judged> {
        self.reads.mark_unchanged();
        let mut facts = facts.clone();
        self.landings.add_to(&mut facts);
        let mut findings = config::check_promises(&self.config, &facts);
        if let Some(broken) = Broken::among(&findings) {
            return Err(broken.into());
        }
        findings.retain(|finding| self.told.insert(finding.to_string()));
        warn(&findings);
        for finding in findings.iter().filter(|f| f.route.is_some()) {
            tracing::info!(route = finding.route, "{finding}");
        }
        let routes = &self.config.settings.routes;
        let is_proved = |route: &&Route| {
            let shown = route.promise.map(|it| demanded(route, &facts, it));
            matches!(shown, Some(Shown::Proved(..)))
        };
        let proved = routes.iter().filter(is_proved);
        Ok(Judged {
            proved: proved.map(|route| route.name.clone()).collect(),
            lines: promise::lines(routes, &facts),
        })
    }

    /// Judges again whenever the server of a landing was read, until `end`. Until then, no row of a route that demands a promise
    /// lands there.
    ///
    /// # Errors
    /// A demanded promise that does not hold.
    async fn keep_up(
        &mut self,
        facts: &StoreFacts,
        lines: &PromiseLines,
        end: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return Ok(()),
                _ = self.reads.changed() => {
                    let judged = self.judge(facts)?;
                    self.hold(lines, judged);
                }
            }
        }
    }

    /// Shows what was judged, and lets the rows land of the routes whose demand is proved.
    fn hold(&self, lines: &PromiseLines, judged: Judged) {
        for route in &judged.proved {
            self.landings.prove(route);
        }
        lines.prove(judged.lines);
    }
}

// === impl Listening ===

impl Listening {
    fn of(bound: &Server) -> anyhow::Result<Self> {
        Ok(Self {
            deliveries: bound.address()?,
            admin: bound.admin_address()?,
            routes: bound.route_names().join(" "),
        })
    }
}

/// Resolves when somebody wants this process to end.
pub(crate) fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => return tracing::info!("SIGTERM: draining"),
                _ = interrupt.recv() => return tracing::info!("SIGINT: draining"),
                _ = hangup.recv() => tracing::warn!("SIGHUP: the configuration is read once; restart to read it again"),
            }
        }
    })
}

/// The log may be on the disk whose lack of room left outcomes unrecorded, or nobody may read it any more: what is left
/// is said on standard error, too.
fn tell(left: &Unfinished) {
    let mut text = String::new();
    for (route, key) in &left.runs {
        tracing::warn!(route, %key, "left: sent to its handler and not ended; its lease lapses and another delivery decides");
    }
    for outcome in &left.pending {
        let (key, fence, status) = (&outcome.key, outcome.fence.0, outcome.status);
        let word = match outcome.ending {
            Ending::Succeeded => "succeeded",
            Ending::Failed => "failed",
        };
        text.push_str(&format!(
            "left: the outcome of {key} (fence {fence}, status {status}, {word}) is not recorded; when the store is back: semel records \
             resolve {key} --as {word} --fence {fence}\n"
        ));
        tracing::error!(
            %key, fence, status, outcome = word,
            "left: this outcome is not recorded, and its work may run again; when the store is back and its lease has \
             lapsed, say `semel records resolve {key} --as {word} --fence {fence}`"
        );
    }
    tracing::info!(
        left = left.runs.len(),
        pending = left.pending.len(),
        "stopped"
    );
    out::to_stderr_within(text, STDERR_WITHIN);
}
