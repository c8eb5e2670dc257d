//! Others' latency, and the gate's memory, while thousands of connections stay and say next to nothing.

use std::time::Duration;

use anyhow::ensure;
use semel_rig::{BOUND, Crowd};
use tokio::time::Instant;

use super::deliveries::{Sender, deliver};
use super::semel::{self, Binary, Log, Store};
use super::wrk::fresh_prefix;
use crate::report::{Group, Row, Target, Unit};
use crate::rounds::{Pace, Series, say_round};
use crate::upstream::Upstream;

const CONNECTIONS: usize = 5_000;
const MIB: f64 = 1024.0 * 1024.0;

/// What one gate was seen to do.
struct Seen {
    calm_ms: f64,
    crowded_ms: f64,
    resident_mib: f64,
}

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Upstream::start().await?;
    let mut seen = Vec::new();
    for round in 0..pace.rounds {
        say_round(round, pace);
        seen.push(look(binary, &handler, pace).await?);
    }
    let of = |number: fn(&Seen) -> f64| Series::from(seen.iter().map(number).collect::<Vec<_>>());
    Ok(Group {
        title: "5 000 slow or silent connections",
        conditions: vec![format!(
            "Embedded store, default log to /dev/null. {CONNECTIONS} connections: a third each send nothing, or a head or a body with one \
             byte a second; those that the gate cuts come again. Others: first runs of one client, on a connection \
             that is kept, to the same gate before and while the crowd is there. The crowd shares the cores."
        )],
        rows: vec![
            Row::new(
                "others' median latency",
                Unit::Millis,
                &of(|seen| seen.crowded_ms),
            )
            .beside("without the crowd", &of(|seen| seen.calm_ms))
            .judged(Target::RatioAtMost(1.5)),
            Row::new("resident at most", Unit::Mib, &of(|seen| seen.resident_mib))
                .judged(Target::AtMost(150.0)),
        ],
    })
}

async fn look(binary: &Binary, handler: &Upstream, pace: Pace) -> anyhow::Result<Seen> {
    let gate = semel::start(binary, &Store::Embedded, handler, Log::Default).await?;
    let sender = Sender::new();
    median_ms(&sender, gate.port, pace.warm_up).await?;
    let calm_ms = median_ms(&sender, gate.port, pace.window).await?;
    let mut crowd = Crowd::gather(gate.port, "/orders", CONNECTIONS);
    ensure!(crowd.complete(BOUND).await, "the crowd could not connect");
    median_ms(&sender, gate.port, pace.warm_up).await?;
    let crowded_ms = median_ms(&sender, gate.port, pace.window).await?;
    Ok(Seen {
        calm_ms,
        crowded_ms,
        resident_mib: gate.resident()?.most as f64 / MIB,
    })
}

/// The median latency of first runs, one after the other for this long.
async fn median_ms(sender: &Sender, port: u16, length: Duration) -> anyhow::Result<f64> {
    let (prefix, end) = (fresh_prefix(), Instant::now() + length);
    let mut taken = Vec::new();
    while Instant::now() < end {
        let name = format!("{prefix}-{}", taken.len());
        let began = Instant::now();
        deliver(sender, port, &name).await?;
        taken.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Series::from(taken).median())
}
