//! A delivery that comes three times runs once; the other two are answered with what the first recorded.

use semel::memory::MemoryStore;
use semel::{Ended, Fingerprint, Key, Outcome, Semel, Work};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let semel = Semel::new(MemoryStore::new());
    let charges = Arc::new(AtomicU32::new(0));
    let work = || {
        Work::new(
            Key::from_bytes([7; 32]),
            Fingerprint::of(b"order 7: 900 cents"),
        )
    };
    let charge = || {
        let charges = Arc::clone(&charges);
        move |_run| async move {
            let number = charges.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(Outcome::ok(format!("receipt {number}")))
        }
    };

    // Two at once: the second waits for the first, and hears the same.
    let (one, other) = tokio::join!(semel.run(work(), charge()), semel.run(work(), charge()));
    let answers = [one?, other?].map(|ended| {
        let (Ended::Ran(recorded) | Ended::Replayed(recorded)) = ended else {
            panic!("{ended:?}");
        };
        recorded.outcome.clone()
    });
    assert_eq!(
        answers,
        [Outcome::ok("receipt 1"), Outcome::ok("receipt 1")]
    );

    // One later: answered from the record.
    let later = semel.run(work(), charge()).await?;
    assert!(matches!(later, Ended::Replayed(_)));
    assert_eq!(charges.load(Ordering::SeqCst), 1);

    // The same key with other work behind it is neither run nor answered with the first's receipt.
    let other = Work::new(
        Key::from_bytes([7; 32]),
        Fingerprint::of(b"order 7: 100 cents"),
    );
    assert_eq!(semel.run(other, charge()).await?, Ended::Mismatched);
    Ok(())
}
