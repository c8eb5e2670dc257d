//! One connection: a first run may take as long as the handler, one sync of the disk, and half a millisecond.
//!
//! How long a sync takes changes from one second to the next when anybody else uses the disk, so nothing here is
//! measured for a while and then compared: one of each is measured, in an order that is drawn anew, again and again.

use std::time::Duration;

use rand::seq::SliceRandom as _;
use tokio::time::Instant;

use super::deliveries::{Sender, deliver};
use super::nginx;
use super::semel::{self, Binary, Log, Store};
use super::wrk::fresh_prefix;
use crate::plain_disk::{APPENDED_BYTES, AppendAndSync, append_and_sync};
use crate::report::{Group, Row, Target, Unit};
use crate::rounds::{Pace, Series, say_round};
use crate::upstream::Upstream;

/// Something that takes time.
enum Probe {
    /// A first delivery to this port, on a connection that is kept.
    Delivery { sender: Box<Sender>, port: u16 },
    /// A record appended to a file of its own, and synced.
    Sync(AppendAndSync),
}

/// What the gate may take for itself.
const ALLOWED_MS: f64 = 0.5;

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Upstream::start().await?;
    let start = async |log| semel::start(binary, &Store::Embedded, &handler, log).await;
    let (gate, quiet) = (start(Log::Default).await?, start(Log::Warnings).await?);
    let nginx = nginx::start(&handler).await?;
    let mut probes = [
        Probe::delivery(gate.port),
        Probe::delivery(handler.port()),
        Probe::Sync(AppendAndSync::new()?),
        Probe::delivery(quiet.port),
        Probe::delivery(nginx.port),
    ];
    let mut medians: [Vec<f64>; 5] = Default::default();
    for round in 0..pace.rounds {
        say_round(round, pace);
        in_turn(&mut probes, pace.warm_up).await?;
        let round = in_turn(&mut probes, pace.window).await?;
        for (medians, median) in medians.iter_mut().zip(round) {
            medians.push(median);
        }
    }
    Ok(Group {
        title: "Embedded store, 1 connection: median latency of a first run",
        conditions: vec![format!(
            "One of each, in a drawn order, again and again: a first run, the handler alone, {APPENDED_BYTES} B appended and fdatasync on the \
             same disk, a first run of a gate with SEMEL_LOG=warn, and nginx; one client, connections kept."
        )],
        rows: rows(&medians),
    })
}

/// The median of each, in milliseconds, measured in turn for this long.
async fn in_turn(probes: &mut [Probe; 5], length: Duration) -> anyhow::Result<[f64; 5]> {
    let end = Instant::now() + length;
    let mut taken: [Vec<f64>; 5] = Default::default();
    while Instant::now() < end {
        let mut turns: Vec<_> = probes.iter_mut().zip(&mut taken).collect();
        // Whoever always followed the sync would find a disk with less to do.
        turns.shuffle(&mut rand::rng());
        for (probe, taken) in turns {
            taken.push(probe.millis().await?);
        }
    }
    Ok(taken.map(|taken| Series::from(taken).median()))
}

fn rows([gate, handler, sync, quiet, nginx]: &[Vec<f64>; 5]) -> Vec<Row> {
    let row =
        |what: &str, millis: &[f64]| Row::new(what, Unit::Millis, &Series::from(millis.to_vec()));
    let allowed = allowed(handler, sync);
    let beside = |row: Row| row.beside("handler + fdatasync + 0.5 ms", &allowed);
    vec![
        beside(row("first run", gate)).judged(Target::RatioAtMost(1.0)),
        beside(row("first run, SEMEL_LOG=warn", quiet)),
        row("the handler alone", handler),
        row("fdatasync", sync),
        row("nginx", nginx),
    ]
}

/// Round by round, what a first run may take.
fn allowed(handler: &[f64], sync: &[f64]) -> Series {
    let sums = handler.iter().zip(sync);
    let allowed: Vec<f64> = sums.map(|(one, two)| one + two + ALLOWED_MS).collect();
    Series::from(allowed)
}

// === impl Probe ===

impl Probe {
    fn delivery(port: u16) -> Self {
        Self::Delivery {
            sender: Box::new(Sender::new()),
            port,
        }
    }

    async fn millis(&mut self) -> anyhow::Result<f64> {
        let took = match self {
            Self::Delivery { sender, port } => {
                let name = fresh_prefix();
                let began = Instant::now();
                deliver(sender, *port, &name).await?;
                began.elapsed()
            }
            // Nobody else needs this thread meanwhile.
            Self::Sync(disk) => {
                let began = Instant::now();
                append_and_sync(&mut disk.file)?;
                began.elapsed()
            }
        };
        Ok(took.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowance_is_summed_within_a_round() {
        let allowed = allowed(&[1.0, 2.0], &[2.0, 0.5]);
        assert_eq!(allowed, Series::from(vec![3.5, 3.0]));
    }
}
