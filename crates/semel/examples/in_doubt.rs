//! Work that must not happen twice: when nobody knows whether it happened, it is parked until a person says.

use semel::memory::MemoryStore;
use semel::protocol::{Acted, Finding, Resolution};
use semel::{Ended, Failure, Fingerprint, InDoubt, Key, Outcome, Semel, Work};
use std::error::Error;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let semel = Semel::new(MemoryStore::new());
    let key = Key::from_bytes([7; 32]);
    let transfer = || Work::new(key, Fingerprint::of(b"transfer 7")).in_doubt(InDoubt::Park);

    // The bank took the request, and the connection broke before its answer.
    let broken = |_run| async { Err(Failure::in_doubt("the connection broke after the request")) };
    let failed = semel.run(transfer(), broken).await?;
    assert!(matches!(failed, Ended::Failed(_)));

    // A duplicate does not send the money again.
    let again = |_run| async { panic!("parked work does not run") };
    assert_eq!(semel.run(transfer(), again).await?, Ended::Parked);

    // Somebody looks at the account: it happened. From now on duplicates hear that.
    let happened = Finding::Succeeded(Outcome::ok("transferred").encode());
    let happened = Resolution::new(happened);
    assert!(matches!(
        semel
            .resolve(&key, &happened, "resolve by ann: the receipt is there")
            .await?,
        Acted::Applied
    ));
    let told = semel.run(transfer(), again).await?;
    assert!(matches!(told, Ended::Replayed(r) if r.outcome == Outcome::ok("transferred")));
    Ok(())
}
