//! `semel gate`: the reverse proxy, from its configuration to its orderly end.

use crate::args::GateArgs;
use crate::config::{self, Broken, Config, Verdict};
use crate::open_store::{self, Opened, Schema};
use crate::{file_limit, log, out};
use semel::protocol::Ending;
use semel_gate::{Server, Unfinished};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Something was left that a restart cannot find out by itself (EX_TEMPFAIL).
const OUTCOMES_LEFT: u8 = 75;

/// How long the end of the process waits for a reader of standard error.
const STDERR_WITHIN: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: &GateArgs) -> anyhow::Result<u8> {
    let mut config = config::load(args)?;
    let findings = config::check(&config);
    if let Some(broken) = Broken::among(&findings) {
        return Err(broken.into());
    }
    let log = log::begin()?;
    for finding in findings.iter().filter(|f| f.verdict == Verdict::Warning) {
        tracing::warn!(route = finding.route, "{finding}");
    }
    file_limit::fit(&mut config.settings);
    let opened = open_store::open(&config.store, config.options, Schema::BroughtUpToDate).await?;
    let bound = bind(config, opened).await?;
    bound.shows_lines_dropped(log.dropped());
    let left = bound.serve(stopped()?).await;
    tell(&left);
    Ok(if left.pending.is_empty() {
        0
    } else {
        OUTCOMES_LEFT
    })
}

async fn bind(config: Config, opened: Opened) -> anyhow::Result<Server> {
    let routes = config.settings.routes.iter();
    let routes: Vec<_> = routes.map(|route| route.name.clone()).collect();
    let bound = Server::bind(config.settings, opened.store).await?;
    tracing::info!(
        listen = %bound.address()?,
        admin = %bound.admin_address()?,
        routes = routes.join(" "),
        store = opened.says,
        version = crate::VERSION,
        "ready"
    );
    Ok(bound)
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
