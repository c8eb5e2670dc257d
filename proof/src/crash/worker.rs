//! A worker process: takes deliveries on stdin, runs each through `Semel::run`, answers on stdout.

use super::armed::ArmedPoints;
use super::case::{Broken, Case, Mode};
use super::effect::Actor;
use super::ledger::{Ledger, Line};
use super::message::{Delivery, SenderAnswer, WorkerConfig, WorkerMessage};
use super::point::Point;
use crate::harness::Intercepted;
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

struct WorkerService {
    case: Case,
    semel: Semel,
    ledger: Ledger,
    armed_points: ArmedPoints,
    actor: Arc<Actor>,
}

/// Runs a worker until its stdin ends.
///
/// # Errors
/// When the order cannot be read or the store cannot be opened.
pub fn work(config: &str) -> anyhow::Result<()> {
    let config: WorkerConfig =
        serde_json::from_str(config).context("this is no worker's config")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
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
pub(super) fn tell_driver(said: &WorkerMessage) {
    let mut line = serde_json::to_vec(said).expect("what is said is plain data");
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    let told = stdout.write_all(&line).and_then(|()| stdout.flush());
    // Nobody listens any more: the driver has ended, and stdin says so too.
    told.ok();
}

// === impl WorkerService ===

impl WorkerService {
    async fn start(config: WorkerConfig) -> anyhow::Result<Self> {
        let case = config.case;
        let ledger = Ledger::open(&case.ledger(config.worker))?;
        let armed_points = ArmedPoints::new(ledger.clone(), case.lease);
        let store = intercepted(&case, case.location.open().await?, &armed_points);
        let settings = Settings {
            shared_cache: CACHE,
            ..Settings::default()
        };
        tokio::spawn(watch(armed_points.clone()));
        Ok(Self {
            actor: Arc::new(Actor::new(
                case.clone(),
                ledger.clone(),
                armed_points.clone(),
            )),
            semel: Semel::with_settings(store, settings),
            case,
            ledger,
            armed_points,
        })
    }

    async fn deliver(self: Arc<Self>, delivery: Delivery) {
        let key = self.case.key(delivery.work).expect("a case has a name");
        self.ledger.write(&Line::Received {
            delivery: delivery.id,
            work: delivery.work,
        });
        self.armed_points.set(key, &delivery);
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
        self.armed_points.pass(&key, Point::BeforeAnswer);
        self.armed_points.clear(&key);
        self.ledger.write(&Line::Answered {
            delivery: delivery.id,
        });
        tell_driver(&WorkerMessage::Answered {
            delivery: delivery.id,
            heard: SenderAnswer::of(&ended),
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

fn intercepted(case: &Case, store: Arc<dyn Letters>, armed_points: &ArmedPoints) -> Arc<dyn Store> {
    let store = match case.broken {
        Some(Broken::Store(interceptor)) => Arc::new(Intercepted { store, interceptor }),
        Some(Broken::EffectBeforeClaim | Broken::CompletesApart) | None => store,
    };
    Arc::new(Intercepted {
        store,
        interceptor: armed_points.clone(),
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
async fn watch(armed_points: ArmedPoints) {
    loop {
        let before = Instant::now();
        sleep(WATCH).await;
        armed_points.note_stall(before.elapsed());
    }
}
