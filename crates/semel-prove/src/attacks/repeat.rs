//! The same delivery once more after it succeeded: the plainest duplicate.

use super::session::Session;
use super::tally::Tally;
use super::trial::Trial;
use crate::error::Error;

/// One repeat may be luck for a handler that remembers only the last delivery.
const REPEATS: usize = 2;

pub(super) async fn run(session: &mut Session<'_>) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    for repeats in 1..=REPEATS {
        let mut trial = Trial::begin(session).await?;
        trial.until_accepted().await?;
        for _ in 0..repeats {
            trial.again(trial.target()).await?;
        }
        if tally.add(trial.finish().await?, true) {
            break;
        }
    }
    Ok(tally)
}
