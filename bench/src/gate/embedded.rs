//! First runs and duplicates on the embedded store against nginx before the same handler.

use std::sync::Arc;

use super::deliveries::{CONNECTIONS, Rate, Reach, settle};
use super::semel::{self, Binary, Log, Store};
use super::{nginx, wrk::Names};
use crate::report::{Group, Row, Target};
use crate::rounds::{Pace, Series, rounds};
use crate::running::Running;
use crate::upstream::Upstream;

const SETTLED_NAMES: u64 = 1_000;
const FIRST_RUNS_TARGET: Target = Target::RatioAtLeast(0.4);
const DUPLICATES_TARGET: Target = Target::RatioAtLeast(1.0);

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let nginx = nginx::start(&handler).await?;
    let start = async |log| semel::start(binary, &Store::Embedded, &handler, log).await;
    let (running, replaying) = (start(Log::Default).await?, start(Log::Default).await?);
    let (quiet, quiet_replaying) = (start(Log::Warnings).await?, start(Log::Warnings).await?);
    let fresh = |port| Rate::boxed(port, Names::Fresh, Reach::Handler(Arc::clone(&handler)));
    let duplicates = async |gate: &Running| {
        let names = settle(gate.port, SETTLED_NAMES).await?;
        let nobody = Reach::Nobody(Arc::clone(&handler));
        anyhow::Ok(Rate::boxed(gate.port, names, nobody))
    };
    let [nginx, bare, runs, replays, quiet_runs, quiet_replays] = rounds(
        [
            ("nginx", fresh(nginx.port)),
            ("the handler", fresh(handler.port())),
            ("first runs", fresh(running.port)),
            ("duplicates", duplicates(&replaying).await?),
            ("first runs, quiet", fresh(quiet.port)),
            ("duplicates, quiet", duplicates(&quiet_replaying).await?),
        ],
        pace,
    )
    .await?;
    let row = |what: &str, rates: &Series| Row::rate(what, rates).beside("nginx", &nginx);
    Ok(Group {
        title: "Embedded store, 64 connections",
        conditions: conditions(),
        rows: vec![
            row("first runs", &runs).judged(FIRST_RUNS_TARGET),
            row("first runs, SEMEL_LOG=warn", &quiet_runs),
            row("duplicates", &replays).judged(DUPLICATES_TARGET),
            row("duplicates, SEMEL_LOG=warn", &quiet_replays),
            row("the handler alone", &bare),
        ],
    })
}

fn conditions() -> Vec<String> {
    vec![
        format!(
            "POST of 1 KiB JSON as Cloud Tasks sends it, keep-alive, wrk with {CONNECTIONS} connections; wrk, gate or \
             nginx, and the handler share all cores."
        ),
        "Gate: embedded store on the disk of the project, completions synced before they are answered; a JSON line \
         for each delivery, to /dev/null, unless SEMEL_LOG=warn is named."
            .into(),
        "nginx: plain reverse proxy to the same handler, connections kept on both sides, a worker for each core, no \
         access log."
            .into(),
        format!("Duplicates: {SETTLED_NAMES} settled keys in turn; the handler saw none of them."),
    ]
}
