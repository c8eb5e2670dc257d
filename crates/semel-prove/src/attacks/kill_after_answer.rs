//! A process dies when it has answered, and the delivery comes once more: what it remembered must outlive it.

use super::{Error, Session, Trial};
use crate::world::sender::{AnswerFate, AttemptResult};

/// When it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// With the answer.
    AtOnce,
    /// When all is quiet.
    Later,
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    for victim in session.world.attackable() {
        for moment in [Moment::AtOnce, Moment::Later] {
            if one(session, victim, moment).await? {
                return Ok(());
            }
        }
    }
    session.unless_hit("no answer was a success");
    Ok(())
}

async fn one(session: &mut Session<'_>, victim: usize, moment: Moment) -> Result<bool, Error> {
    let mut trial = Trial::begin(session).await?;
    let hit = accepted(&mut trial).await?;
    if hit {
        if moment == Moment::Later {
            trial.session.quiet().await;
        }
        trial.session.world.kill(victim);
        trial.session.world.restart_ended().await?;
        trial.again(trial.target()).await?;
    }
    trial.end(hit).await
}

/// Delivers until an answer is a success, and returns with it.
async fn accepted(trial: &mut Trial<'_, '_>) -> Result<bool, Error> {
    let deliver = &trial.session.scenario.deliver;
    for _ in 0..deliver.attempts {
        trial.session.world.restart_ended().await?;
        if trial.send(trial.target(), AnswerFate::Received).await == AttemptResult::Accepted {
            return Ok(true);
        }
        tokio::time::sleep(deliver.pause()).await;
    }
    Ok(false)
}
