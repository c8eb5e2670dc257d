//! Two processes of the handler: one after the other, and both at once.

use super::session::Session;
use super::tally::Tally;
use super::trial::Trial;
use crate::error::Error;
use crate::scenario::SenderKind;

/// As many for each process at once.
const AT_ONCE: [usize; 2] = [1, 4];

pub(super) async fn run(session: &mut Session<'_>) -> Result<Tally, Error> {
    let deliver = &session.scenario.deliver;
    if deliver.sender == SenderKind::Command {
        return Ok(Tally::not_run(
            "a command delivers where it will: it cannot be told to deliver to a second process",
        ));
    }
    if deliver.target.is_some() {
        return Ok(Tally::not_run(
            "the handler runs elsewhere: a second process of it cannot be started",
        ));
    }
    let second = session.world.second().await?;
    let Some(other) = second.and_then(|at| session.world.address(at)) else {
        return Ok(Tally::not_run(
            "the receiver keeps things in a directory of its own, or has no port: two of it would be two handlers",
        ));
    };
    let mut tally = Tally::default();
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    trial.again(other).await?;
    if tally.add(trial.finish().await?, true) {
        return Ok(tally);
    }
    for number in AT_ONCE {
        let trial = Trial::begin(session).await?;
        trial.session.world.recorder.race(2 * number);
        let targets = [trial.target(), other].repeat(number);
        let results = trial.send_at_once(&targets).await;
        if trial.conclude(&results, true, &mut tally).await? {
            break;
        }
    }
    Ok(tally)
}
