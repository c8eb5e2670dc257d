//! `semel dev`: one piece of work, delivered five times at once, takes effect once.

use anyhow::{Context, ensure};
use semel::key::{Delivered, KeyRule, Scope};
use semel::work::Work;
use semel::{Ended, Fingerprint, Key, Outcome, Semel};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const PAYLOAD: &str = r#"{"order_id": 7, "cents": 900}"#;
const DELIVERIES: usize = 5;

/// How long the effect takes: long enough that all five deliveries overlap.
const EFFECT_TAKES: Duration = Duration::from_millis(100);

pub(crate) async fn run() -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("a temporary directory for the demonstration")?;
    let store = EmbeddedStore::open(directory.path(), EmbeddedSettings::default())?;
    let semel = Semel::new(store);
    let rule: KeyRule = "/order_id".parse()?;
    let key = rule.key(
        &Scope::new("dev", "charge"),
        &Delivered::payload(PAYLOAD.as_bytes()),
    )?;

    println!("One order, delivered {DELIVERIES} times at once:");
    println!();
    println!("  payload  {PAYLOAD}");
    println!("  rule     /order_id");
    println!("  key      {key}");
    println!("  store    embedded, in a temporary directory");
    println!();

    let effects = Arc::new(AtomicU32::new(0));
    let deliveries: Vec<_> = (0..DELIVERIES)
        .map(|_| tokio::spawn(deliver(semel.clone(), key, Arc::clone(&effects))))
        .collect();
    let mut replays = 0;
    for (number, delivery) in (1..).zip(deliveries) {
        let ended = delivery.await??;
        replays += u32::from(matches!(ended, Ended::Replayed(_)));
        println!("  delivery {number}  {}", line(&ended));
    }
    let effects = effects.load(Ordering::SeqCst);
    println!();
    println!("{effects} effect, {replays} replays of its answer.");
    ensure!(
        effects == 1 && replays == 4,
        "expected 1 effect and 4 replays: please report this"
    );
    Ok(())
}

/// One delivery: charge the card, unless this order was charged.
async fn deliver(semel: Semel, key: Key, effects: Arc<AtomicU32>) -> Result<Ended, semel::Error> {
    let work = Work::new(key, Fingerprint::of(PAYLOAD.as_bytes()));
    semel
        .run(work, move |_| async move {
            let number = effects.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::time::sleep(EFFECT_TAKES).await;
            Ok(Outcome::new(201, format!("charged, receipt {number}")))
        })
        .await
}

fn line(ended: &Ended) -> String {
    let answer = |outcome: &Outcome| {
        format!(
            "{} {}",
            outcome.status,
            String::from_utf8_lossy(&outcome.body_bytes())
        )
    };
    match ended {
        Ended::Ran(recorded) => format!("ran       {}", answer(&recorded.outcome)),
        Ended::Replayed(recorded) => format!("replayed  {}", answer(&recorded.outcome)),
        Ended::Failed(_)
        | Ended::Unrecorded(_)
        | Ended::Busy { .. }
        | Ended::NotYet { .. }
        | Ended::Full { .. }
        | Ended::Parked
        | Ended::Mismatched
        | Ended::Stale => format!("{ended:?}"),
    }
}
