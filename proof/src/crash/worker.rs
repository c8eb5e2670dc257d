//! A worker process: takes deliveries on stdin, runs each through `Semel::run`, answers on stdout.

use super::case::{Case, Mode};
use super::effect::Actor;
use super::message::{Delivery, SenderAnswer, WorkerMessage};
use super::point::Point;
use super::store_points::StorePoints;
use crate::faults::{Defect, plant};
use crate::harness::{Event, FaultPoints, Intercepted, Ledger, ProcessConfig, run_process};
use semel::protocol::InDoubt;
use semel::work::{Completes, Duplicates, Work};
use semel::{Key, Semel, Settings};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// How long outcomes are remembered: longer than any run of the harness.
const RETENTION: Duration = Duration::from_secs(3600);

/// How long a duplicate waits for the run it meets.
const PATIENCE: Duration = Duration::from_millis(60);

/// How long answers are kept in memory: short, so that most duplicates ask the store.
const CACHE: Duration = Duration::from_millis(200);

struct WorkerService {
    semel: Semel,
    actor: Arc<Actor>,
}

/// Runs a worker until its stdin ends.
///
/// # Errors
/// When what it is started with cannot be read, or the store cannot be opened.
pub fn work(config: &str) -> anyhow::Result<()> {
    run_process(config, Builder::new_current_thread(), async |config| {
        let worker = Arc::new(WorkerService::start(config).await?);
        tell_driver(&WorkerMessage::Ready);
        let mut deliveries = deliveries();
        while let Some(delivery) = deliveries.recv().await {
            tokio::spawn(Arc::clone(&worker).deliver(delivery));
        }
        Ok(())
    })
}

/// Tells the driver something, in one write.
fn tell_driver(message: &WorkerMessage) {
    let mut line = serde_json::to_vec(message).expect("a message is plain data");
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    let told = stdout.write_all(&line).and_then(|()| stdout.flush());
    // Nobody listens any more: the driver has ended, and stdin says so too.
    told.ok();
}

// === impl WorkerService ===

impl WorkerService {
    async fn start(config: ProcessConfig<Case>) -> anyhow::Result<Self> {
        let case = config.settings;
        let ledger = Ledger::open(&case.dir, config.number)?;
        let fault_points = FaultPoints::new(ledger.clone(), case.lease);
        let store = Intercepted {
            store: plant(case.defect, case.location.open().await?),
            interceptor: StorePoints(fault_points.clone()),
        };
        let settings = Settings {
            shared_cache: CACHE,
            ..Settings::default()
        };
        tokio::spawn(fault_points.clone().watch());
        Ok(Self {
            semel: Semel::with_settings(Arc::new(store), settings),
            actor: Arc::new(Actor {
                case,
                ledger,
                fault_points,
            }),
        })
    }

    async fn deliver(self: Arc<Self>, delivery: Delivery) {
        let Actor {
            case,
            ledger,
            fault_points,
        } = &*self.actor;
        let (id, work) = (delivery.id, delivery.work);
        let key = case.key(work).expect("a case has a name");
        ledger.write(&Event::Received { delivery: id, work });
        if let Some(armed) = delivery.armed {
            fault_points.arm(Some(key), armed.armed());
        }
        if case.defect == Some(Defect::EffectBeforeClaim) {
            self.actor.act_unclaimed(&delivery);
        }
        let actor = Arc::clone(&self.actor);
        let ended = self
            .semel
            .run(terms(case, key, &delivery), move |run| async move {
                actor.act(&run, &delivery).await
            })
            .await;
        self.actor.pass(&key, Point::BeforeAnswer);
        fault_points.disarm(&key);
        ledger.write(&Event::Answered { delivery: id });
        tell_driver(&WorkerMessage::Answered {
            delivery: id,
            answer: SenderAnswer::of(&ended),
        });
    }
}

fn terms(case: &Case, key: Key, delivery: &Delivery) -> Work {
    let duplicates = if delivery.id.is_multiple_of(2) {
        Duplicates::Wait(PATIENCE)
    } else {
        Duplicates::Reject
    };
    let terms = Work::new(key, case.fingerprint(delivery.work))
        .lease(case.lease)
        .retention(RETENTION)
        .duplicates(duplicates);
    match case.mode {
        Mode::Transaction => terms.completes(Completes::Handler),
        Mode::Park => terms.in_doubt(InDoubt::Park),
        Mode::Probe => terms.in_doubt(InDoubt::Probe),
        Mode::Downstream | Mode::Retry => terms,
    }
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
