//! Limits: how many runs at once, how many may wait, and what is kept in memory.

use semel::memory::MemoryStore;
use semel::slots::Slots;
use semel::{Ended, Fingerprint, Key, Outcome, Semel, Settings, Work};
use std::error::Error;
use std::sync::Arc;
use tokio::sync::Notify;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings {
        answer_bytes_max: 16,
        ..Settings::default()
    };
    let semel = Semel::with_settings(Arc::new(MemoryStore::new()), settings);

    // One run at once, and nobody in the queue: the second order is turned away before it is claimed.
    let slots = Slots::new(1, 0);
    let order = |number: u8| {
        Work::new(Key::from_bytes([number; 32]), Fingerprint::of(&[number])).slots(&slots)
    };
    let (begun, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = tokio::spawn({
        let (semel, work) = (semel.clone(), order(1));
        let (begun, finish) = (Arc::clone(&begun), Arc::clone(&finish));
        async move {
            let effect = move |_run| async move {
                begun.notify_one();
                finish.notified().await;
                Ok(Outcome::ok("charged"))
            };
            semel.run(work, effect).await
        }
    });
    begun.notified().await;
    let turned_away = semel.run(order(2), |_run| async { Ok(Outcome::ok("charged")) });
    assert!(matches!(turned_away.await?, Ended::Full { .. }));
    finish.notify_one();
    assert!(matches!(slow.await??, Ended::Ran(_)));

    // A body that is too large to keep reaches its caller; a duplicate hears that it was not kept.
    let long = |_run| async { Ok(Outcome::ok("a receipt of more than 16 bytes")) };
    assert!(matches!(semel.run(order(2), long).await?, Ended::Ran(_)));
    let Ended::Replayed(recorded) = semel.run(order(2), long).await? else {
        panic!("a duplicate is answered from the record");
    };
    assert_eq!(recorded.outcome.status, 200);
    assert!(recorded.outcome.body_bytes().is_empty());
    Ok(())
}
