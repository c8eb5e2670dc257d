//! One connection: a first run may take as long as the handler, one sync of the disk, and half a millisecond.
//!
//! How long a sync takes changes from one second to the next when anybody else uses the disk, so nothing here is
//! measured for a while and then compared: one of each is measured, in an order that is drawn anew, again and again.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use anyhow::Context;
use rand::seq::SliceRandom as _;
use tempfile::TempDir;
use tokio::time::Instant;

use super::deliveries::{Sender, deliver};
use super::nginx::Nginx;
use super::report::{Group, Row, Target, Unit};
use super::semel::{Binary, Gate, Log, Store};
use super::upstream::Upstream;
use super::wrk::fresh_prefix;
use crate::disk;
use crate::rounds::{Pace, Series};

/// Something that takes time.
enum Probe {
    /// A first delivery to this port, on a connection that is kept.
    Delivery { sender: Box<Sender>, port: u16 },
    /// A record appended to a file of its own, and synced.
    Sync { file: File, _dir: TempDir },
}

/// Everything that is measured.
struct Probes {
    gate: Probe,
    handler: Probe,
    sync: Probe,
    quiet: Probe,
    nginx: Probe,
}

/// Medians in milliseconds, one for each round.
#[derive(Default)]
struct Medians {
    gate: Vec<f64>,
    handler: Vec<f64>,
    sync: Vec<f64>,
    quiet: Vec<f64>,
    nginx: Vec<f64>,
}

/// About what a completed record takes.
const APPENDED_BYTES: usize = 300;

/// What the gate may take for itself.
const ALLOWED_MS: f64 = 0.5;

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Upstream::start().await?;
    let gate = Gate::start(binary, &Store::Embedded, &handler, Log::Usual).await?;
    let quiet = Gate::start(binary, &Store::Embedded, &handler, Log::Warnings).await?;
    let nginx = Nginx::start(&handler).await?;
    let mut probes = Probes {
        gate: Probe::delivery(gate.port()),
        handler: Probe::delivery(handler.port()),
        sync: Probe::sync()?,
        quiet: Probe::delivery(quiet.port()),
        nginx: Probe::delivery(nginx.port()),
    };
    let mut medians = Medians::default();
    for round in 0..pace.rounds {
        eprintln!("  round {} of {}", round + 1, pace.rounds);
        probes.all(pace.warm_up).await?;
        medians.note(probes.all(pace.window).await?);
    }
    Ok(Group {
        title: "Embedded store, 1 connection: median latency of a first run",
        conditions: vec![format!(
            "One of each, in a drawn order, again and again: a first run, the handler alone, {APPENDED_BYTES} B appended and fdatasync on the \
             same disk, a first run of a gate with SEMEL_LOG=warn, and nginx; one client, connections kept."
        )],
        rows: medians.rows(),
    })
}

// === impl Probes ===

impl Probes {
    /// The medians of all, measured in turn for this long.
    async fn all(&mut self, length: Duration) -> anyhow::Result<[f64; 5]> {
        let end = Instant::now() + length;
        let mut taken: [Vec<f64>; 5] = Default::default();
        while Instant::now() < end {
            let mut turns: Vec<_> = self.each().into_iter().zip(&mut taken).collect();
            // Whoever always followed the sync would find a disk with less to do.
            turns.shuffle(&mut rand::rng());
            for (probe, taken) in turns {
                taken.push(probe.millis().await?);
            }
        }
        Ok(taken.map(|taken| Series::from(taken).median()))
    }

    /// In the order of [`Medians::note`].
    fn each(&mut self) -> [&mut Probe; 5] {
        [
            &mut self.gate,
            &mut self.handler,
            &mut self.sync,
            &mut self.quiet,
            &mut self.nginx,
        ]
    }
}

// === impl Probe ===

impl Probe {
    fn delivery(port: u16) -> Self {
        Self::Delivery {
            sender: Box::new(Sender::new()),
            port,
        }
    }

    fn sync() -> anyhow::Result<Self> {
        let dir = disk::directory()?;
        let file = File::create(dir.path().join("log")).context("cannot create a file")?;
        Ok(Self::Sync { file, _dir: dir })
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
            Self::Sync { file, .. } => {
                let began = Instant::now();
                file.write_all(&[7; APPENDED_BYTES])?;
                file.sync_data()?;
                began.elapsed()
            }
        };
        Ok(took.as_secs_f64() * 1e3)
    }
}

// === impl Medians ===

impl Medians {
    fn note(&mut self, [gate, handler, sync, quiet, nginx]: [f64; 5]) {
        self.gate.push(gate);
        self.handler.push(handler);
        self.sync.push(sync);
        self.quiet.push(quiet);
        self.nginx.push(nginx);
    }

    /// Round by round, what a first run may take.
    fn allowed(&self) -> Series {
        let sums = self.handler.iter().zip(&self.sync);
        let allowed: Vec<f64> = sums
            .map(|(handler, sync)| handler + sync + ALLOWED_MS)
            .collect();
        Series::from(allowed)
    }

    fn rows(&self) -> Vec<Row> {
        let row = |what: &str, millis: &Vec<f64>| {
            Row::new(what, Unit::Millis, &Series::from(millis.clone()))
        };
        let allowed = self.allowed();
        let beside = |row: Row| row.beside("handler + fdatasync + 0.5 ms", &allowed);
        vec![
            beside(row("first run", &self.gate)).judged(Target::RatioAtMost(1.0)),
            beside(row("first run, SEMEL_LOG=warn", &self.quiet)),
            row("the handler alone", &self.handler),
            row("fdatasync", &self.sync),
            row("nginx", &self.nginx),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowance_is_summed_within_a_round() {
        let mut medians = Medians::default();
        medians.note([9.0, 1.0, 2.0, 9.0, 9.0]);
        medians.note([9.0, 2.0, 0.5, 9.0, 9.0]);
        assert_eq!(medians.allowed(), Series::from(vec![3.5, 3.0]));
    }
}
