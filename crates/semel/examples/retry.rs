//! An effect that fails says what that means: try again later, never again, or nobody knows.

use semel::memory::MemoryStore;
use semel::work::Backoff;
use semel::{Ended, Failure, Fingerprint, Key, Outcome, Semel, Work};
use std::error::Error;
use std::time::Duration;

fn order(number: u8) -> Work {
    Work::new(Key::from_bytes([number; 32]), Fingerprint::of(&[number]))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let semel = Semel::new(MemoryStore::new());

    // Retryable: the next delivery runs it again, but not before the pause is over.
    let minute = Duration::from_secs(60);
    let patient = order(1).backoff(Backoff {
        first: minute,
        max: minute * 60,
    });
    let down = |_run| async { Err(Failure::retryable("the mail server is down")) };
    let failed = semel.run(patient.clone(), down).await?;
    assert!(matches!(failed, Ended::Failed(_)));
    let soon = semel.run(patient, down).await?;
    assert!(matches!(soon, Ended::NotYet { retry_after } if retry_after <= minute));

    // Final: recorded like a success, and told to every duplicate.
    let refused = |_run| async { Err(Failure::final_failure("the card has expired")) };
    let ran = semel.run(order(2), refused).await?;
    assert!(matches!(ran, Ended::Ran(_)));
    let again = semel.run(order(2), |_run| async { Ok(Outcome::ok("charged")) });
    assert!(matches!(again.await?, Ended::Replayed(recorded) if recorded.outcome.status == 500));

    // A limit on attempts: then a person must look.
    let flaky = || order(3).max_attempts(2);
    for _ in 0..2 {
        let failed = semel.run(flaky(), down).await?;
        assert!(matches!(failed, Ended::Failed(_)));
    }
    assert_eq!(semel.run(flaky(), down).await?, Ended::Parked);
    Ok(())
}
