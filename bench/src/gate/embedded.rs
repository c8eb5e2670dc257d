//! First runs and duplicates on the embedded store against nginx before the same handler.

use std::sync::Arc;

use super::deliveries::{Rate, Reach, settle};
use super::nginx::Nginx;
use super::report::{Group, Row, Target, Unit};
use super::semel::{Binary, Gate, Log, Store};
use super::upstream::Upstream;
use super::wrk::{Load, Names};
use crate::rounds::{Contenders, Pace, Rates, rounds};

const CONNECTIONS: usize = 64;
const SETTLED_NAMES: u64 = 1_000;
const FIRST_RUNS_TARGET: Target = Target::RatioAtLeast(0.4);
const DUPLICATES_TARGET: Target = Target::RatioAtLeast(1.0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    FirstRuns(Log),
    Duplicates(Log),
    Nginx,
    Bare,
}

/// Everything that runs while this is measured.
struct Stage {
    handler: Arc<Upstream>,
    nginx: Nginx,
    /// A gate for first runs and one for duplicates, for each way to log.
    gates: Vec<(Log, Gate, Gate)>,
}

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let stage = Stage::set(binary).await?;
    let rates = rounds(stage.contenders().await?, pace).await?;
    Ok(Group {
        title: "Embedded store, 64 connections",
        conditions: vec![
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
        ],
        rows: rows(&rates),
    })
}

fn rows(rates: &Rates<Id>) -> Vec<Row> {
    let row = |what: &str, id: Id| Row::new(what, Unit::PerSecond, rates.of(id));
    let beside_nginx = |what: &str, id: Id| row(what, id).beside("nginx", rates.of(Id::Nginx));
    let mut rows = Vec::new();
    for (what, id, target) in [
        (
            "first runs",
            Id::FirstRuns as fn(Log) -> Id,
            FIRST_RUNS_TARGET,
        ),
        ("duplicates", Id::Duplicates, DUPLICATES_TARGET),
    ] {
        rows.push(beside_nginx(what, id(Log::Usual)).judged(target));
        let quiet = format!("{what}{}", Log::Warnings.word());
        rows.push(beside_nginx(&quiet, id(Log::Warnings)));
    }
    rows.push(beside_nginx("the handler alone", Id::Bare));
    rows
}

// === impl Stage ===

impl Stage {
    async fn set(binary: &Binary) -> anyhow::Result<Self> {
        let handler = Arc::new(Upstream::start().await?);
        let mut gates = Vec::new();
        for log in [Log::Usual, Log::Warnings] {
            let gate = || Gate::start(binary, &Store::Embedded, &handler, log);
            gates.push((log, gate().await?, gate().await?));
        }
        Ok(Self {
            nginx: Nginx::start(&handler).await?,
            handler,
            gates,
        })
    }

    async fn contenders(&self) -> anyhow::Result<Contenders<Id>> {
        let fresh = |port| Rate {
            load: Load {
                port,
                connections: CONNECTIONS,
                names: Names::Fresh,
            },
            reach: Reach::Handler(Arc::clone(&self.handler)),
        };
        let mut contenders: Contenders<Id> = vec![
            (Id::Nginx, Box::new(fresh(self.nginx.port()))),
            (Id::Bare, Box::new(fresh(self.handler.port()))),
        ];
        for (log, running, replaying) in &self.gates {
            contenders.push((Id::FirstRuns(*log), Box::new(fresh(running.port()))));
            let duplicates = Rate {
                load: Load {
                    port: replaying.port(),
                    connections: CONNECTIONS,
                    names: settle(replaying.port(), SETTLED_NAMES).await?,
                },
                reach: Reach::Nobody(Arc::clone(&self.handler)),
            };
            contenders.push((Id::Duplicates(*log), Box::new(duplicates)));
        }
        Ok(contenders)
    }
}
