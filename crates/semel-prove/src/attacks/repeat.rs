//! The same delivery once more after it succeeded: the plainest duplicate.

use super::{Definition, Error, Fault, Session, Trial};

pub(super) const REPEAT: Definition = Definition {
    name: "repeat",
    does: "delivered once more after it succeeded",
    fault: Fault::Duplicate,
    needs: &[],
    run: |session| Box::pin(run(session)),
};

/// One repeat may be luck for a handler that remembers only the last delivery.
const REPEATS: usize = 2;

async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    for repeats in 1..=REPEATS {
        let mut trial = Trial::begin(session).await?;
        trial.until_accepted().await?;
        for _ in 0..repeats {
            trial.again(trial.target()).await?;
        }
        if trial.end(true).await? {
            break;
        }
    }
    Ok(())
}
