//! A worker process: takes deliveries on stdin, runs each through `Semel::run`, answers on stdout.

use super::case::{Broken, Case, Mode};
use super::effect::Actor;
use super::ledger::{Ledger, Line};
use super::message::{Delivery, Heard, Order, Said};
use super::point::Point;
use super::trap::Traps;
use crate::bed::Tapped;
use anyhow::Context;
use semel::protocol::InDoubt;
use semel::store::Letters;
use semel::work::{Completes, Duplicates, Work};
use semel::{Semel, Settings, Store};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// How long outcomes are remembered: longer than any run of the harness.
const RETENTION: Duration = Duration::from_secs(3600);

/// How long a duplicate waits for the run it meets.
const PATIENCE: Duration = Duration::from_millis(60);

/// How often a worker looks whether its runs were kept from going on.
const WATCH: Duration = Duration::from_millis(10);

/// How long answers are kept in memory: short, so that most duplicates ask the store.
const CACHE: Duration = Duration::from_millis(200);

struct Worker {
    case: Case,
    semel: Semel,
    ledger: Ledger,
    traps: Traps,
    actor: Arc<Actor>,
}

/// Runs a worker until its stdin ends.
///
/// # Errors
/// When the order cannot be read or the store cannot be opened.
pub fn work(order: &str) -> anyhow::Result<()> {
    let order: Order = serde_json::from_str(order).context("this is no worker's order")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let worker = Arc::new(Worker::start(order).await?);
        say(&Said::Ready);
        let mut deliveries = deliveries();
        while let Some(delivery) = deliveries.recv().await {
            tokio::spawn(Arc::clone(&worker).deliver(delivery));
        }
        Ok(())
    })
}

/// Tells the driver something, in one write.
pub(super) fn say(said: &Said) {
    let mut line = serde_json::to_vec(said).expect("what is said is plain data");
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    let told = stdout.write_all(&line).and_then(|()| stdout.flush());
    // Nobody listens any more: the driver has ended, and stdin says so too.
    told.ok();
}

// === impl Worker ===

impl Worker {
    async fn start(order: Order) -> anyhow::Result<Self> {
        let case = order.case;
        let ledger = Ledger::open(&case.ledger(order.worker))?;
        let traps = Traps::new(ledger.clone(), case.lease);
        let store = tapped(&case, case.place.open().await?, &traps);
        let settings = Settings {
            shared_cache: CACHE,
            ..Settings::default()
        };
        tokio::spawn(watch(traps.clone()));
        Ok(Self {
            actor: Arc::new(Actor::new(case.clone(), ledger.clone(), traps.clone())),
            semel: Semel::with_settings(store, settings),
            case,
            ledger,
            traps,
        })
    }

    async fn deliver(self: Arc<Self>, delivery: Delivery) {
        let key = self.case.key(delivery.work).expect("a case has a name");
        self.ledger.write(&Line::Received {
            delivery: delivery.id,
            work: delivery.work,
        });
        self.traps.set(key, &delivery);
        if self.case.broken == Some(Broken::EffectBeforeClaim) {
            self.actor.act_unclaimed(&delivery);
        }
        let actor = Arc::clone(&self.actor);
        let ended = self
            .semel
            .run(self.terms(&delivery), move |run| async move {
                actor.act(&run, &delivery).await
            })
            .await;
        self.traps.pass(&key, Point::BeforeAnswer);
        self.traps.clear(&key);
        self.ledger.write(&Line::Answered {
            delivery: delivery.id,
        });
        say(&Said::Answered {
            delivery: delivery.id,
            heard: Heard::of(&ended),
        });
    }

    fn terms(&self, delivery: &Delivery) -> Work {
        let work = delivery.work;
        let key = self.case.key(work).expect("a case has a name");
        let duplicates = if delivery.id.is_multiple_of(2) {
            Duplicates::Wait(PATIENCE)
        } else {
            Duplicates::Reject
        };
        let terms = Work::new(key, self.case.fingerprint(work))
            .lease(self.case.lease)
            .retention(RETENTION)
            .duplicates(duplicates);
        match self.case.mode {
            Mode::Transaction => terms.completes(Completes::Handler),
            Mode::Park => terms.in_doubt(InDoubt::Park),
            Mode::Downstream | Mode::Retry => terms,
        }
    }
}

fn tapped(case: &Case, store: Arc<dyn Letters>, traps: &Traps) -> Arc<dyn Store> {
    let store = match case.broken {
        Some(Broken::Store(tap)) => Arc::new(Tapped { store, tap }),
        Some(Broken::EffectBeforeClaim | Broken::CompletesApart) | None => store,
    };
    Arc::new(Tapped {
        store,
        tap: traps.clone(),
    })
}

/// Reads deliveries on a thread of its own, so that reading never holds up a run.
fn deliveries() -> mpsc::UnboundedReceiver<Delivery> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let delivery = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let Some(delivery) = delivery else { return };
            if sender.send(delivery).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Writes down when runs were kept from going on: a loaded machine pauses a process as SIGSTOP does.
async fn watch(traps: Traps) {
    loop {
        let before = Instant::now();
        sleep(WATCH).await;
        traps.note_stall(before.elapsed());
    }
}
