//! What the gate takes: memory, time to start, and room on the disk.

use std::time::Duration;

use tokio::time::sleep;

use super::deliveries::settle;
use super::semel::{self, Binary, Log, Store};
use crate::disk;
use crate::report::{Group, Row, Target, Unit};
use crate::rounds::{Pace, Series, say_round};
use crate::running::{Resident, Running};
use crate::upstream::Upstream;

/// What one gate, from its start to its end, was seen to take.
struct Seen {
    start_ms: f64,
    at_rest: Resident,
    settled: Resident,
    start_again_ms: f64,
}

const KEYS: u64 = 100_000;
const MIB: f64 = 1024.0 * 1024.0;

/// After this a gate that nobody asks has done what it does by itself.
const REST: Duration = Duration::from_secs(1);

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Upstream::start().await?;
    let mut seen = Vec::new();
    for round in 0..pace.rounds {
        say_round(round, pace);
        seen.push(look(binary, &handler).await?);
    }
    let of = |number: fn(&Seen) -> f64| Series::from(seen.iter().map(number).collect::<Vec<_>>());
    let mib = |what: &str, number| Row::new(what, Unit::Mib, &of(number));
    let start = |what: &str, number| Row::new(what, Unit::Millis, &of(number));
    let size = binary.stripped_bytes()? as f64 / MIB;
    Ok(Group {
        title: "Memory, start and size",
        conditions: vec![
            format!(
                "Embedded store, default log to /dev/null. At rest: {REST:?} after the start, nothing delivered. The keys are \
                 first runs of 64 connections."
            ),
            "Start: from the start of the process to the first 200 of /readyz, asked every millisecond.".into(),
        ],
        rows: vec![
            mib("resident at rest", |seen| seen.at_rest.now as f64 / MIB).judged(Target::AtMost(25.0)),
            mib("resident after 100 000 keys", |seen| seen.settled.now as f64 / MIB)
                .judged(Target::AtMost(60.0)),
            mib("resident at most until then", |seen| seen.settled.most as f64 / MIB),
            start("start to ready", |seen| seen.start_ms).judged(Target::AtMost(100.0)),
            start("start to ready with 100 000 keys", |seen| seen.start_again_ms),
            Row::once("program, stripped", Unit::Mib, size).judged(Target::AtMost(30.0)),
        ],
    })
}

async fn look(binary: &Binary, handler: &Upstream) -> anyhow::Result<Seen> {
    let dir = disk::directory()?;
    let store = Store::Directory(dir.path().join("store"));
    let gate = semel::start(binary, &store, handler, Log::Default).await?;
    sleep(REST).await;
    let at_rest = gate.resident()?;
    settle(gate.port, KEYS).await?;
    let settled = gate.resident()?;
    let start_ms = millis(&gate);
    drop(gate);
    let again = semel::start(binary, &store, handler, Log::Default).await?;
    Ok(Seen {
        start_ms,
        at_rest,
        settled,
        start_again_ms: millis(&again),
    })
}

fn millis(gate: &Running) -> f64 {
    gate.ready_after.as_secs_f64() * 1e3
}
