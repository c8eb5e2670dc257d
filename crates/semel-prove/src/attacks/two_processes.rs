//! Two processes of the handler: one after the other, and both at once.

use super::{Error, Session, Trial};

/// As many for each process at once.
const NUMBERS: [usize; 2] = [1, 4];

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let Some(other) = session.world.second().await? else {
        session.explain(
            "the receiver keeps things in a directory of its own, or has no port: two of it would be two handlers",
        );
        return Ok(());
    };
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    trial.again(other).await?;
    if trial.end(true).await? {
        return Ok(());
    }
    for number in NUMBERS {
        let trial = Trial::begin(session).await?;
        trial.session.world.recorder.race(2 * number);
        let targets = [trial.target(), other].repeat(number);
        let results = trial.send_at_once(&targets).await;
        if trial.conclude(&results, true).await? {
            break;
        }
    }
    Ok(())
}
