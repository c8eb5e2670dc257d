//! A run of several steps. A step that was done is not done again when the run is repeated.

use semel::memory::MemoryStore;
use semel::{Ended, Failure, Fingerprint, Key, Outcome, Run, Semel, Work};
use std::error::Error;
use std::sync::{Arc, Mutex};

type Log = Arc<Mutex<Vec<String>>>;

/// Charges, then ships. The parcel service is down at the first attempt.
async fn fulfil(run: Run, log: Log) -> Result<Outcome, Failure> {
    let note = |what: String| log.lock().expect("nobody panics here").push(what);
    let receipt = run.step("charge", |step| async move {
        // The step's key is the same in every run: a payment service can refuse to charge it twice.
        note(format!("charge with key {}", step.key));
        Ok("receipt 1".into())
    });
    let receipt = receipt.await?;
    let attempt = run.lease().attempt;
    let shipped = run.step("ship", |_| async move {
        note(format!("ship, attempt {attempt}"));
        match attempt {
            1 => Err(Failure::retryable("the parcel service is down")),
            _ => Ok("parcel 9".into()),
        }
    });
    shipped.await?;
    Ok(Outcome::ok(receipt))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let semel = Semel::new(MemoryStore::new());
    let key = Key::from_bytes([7; 32]);
    let log = Log::default();
    let deliver = || {
        let log = Arc::clone(&log);
        let work = Work::new(key, Fingerprint::of(b"order 7"));
        semel.run(work, move |run| fulfil(run, log))
    };

    assert!(matches!(deliver().await?, Ended::Failed(_)));
    let Ended::Ran(recorded) = deliver().await? else {
        panic!("the second attempt succeeds");
    };
    assert_eq!(recorded.outcome, Outcome::ok("receipt 1"));

    let log = log.lock().expect("nobody panics here");
    let [charge, first, second] = log.as_slice() else {
        panic!("one charge and two attempts to ship, not {log:?}");
    };
    assert!(charge.starts_with("charge with key v1_"));
    assert_eq!([first, second], ["ship, attempt 1", "ship, attempt 2"]);
    Ok(())
}
