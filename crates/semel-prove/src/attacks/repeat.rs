//! The same delivery once more after it succeeded: the plainest duplicate.

use super::{Error, Session, Trial};

/// One repeat may be luck for a handler that remembers only the last delivery.
const REPEATS: usize = 2;

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
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
