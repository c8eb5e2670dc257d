//! The same delivery once more after it succeeded: the plainest duplicate.

use super::Tally;
use crate::attacks::session::Session;
use crate::error::Error;

/// One repeat may be luck for a handler that remembers only the last delivery.
const REPEATS: usize = 2;

pub(super) async fn make(session: &mut Session<'_>) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    for repeats in 1..=REPEATS {
        let delivery = session.begin().await?;
        session.until_accepted(&delivery).await?;
        for _ in 0..repeats {
            session.again(&delivery, session.target()).await?;
        }
        let finding = session.finish(&[&delivery]).await?;
        if tally.add(finding, true) {
            break;
        }
    }
    Ok(tally)
}
