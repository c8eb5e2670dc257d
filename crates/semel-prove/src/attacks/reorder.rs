//! Two deliveries of one entity, and the newer one comes first: an older state must not take its place.

use super::{Error, Session, Trial};

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    if !newer_first(session).await? {
        at_once(session).await?;
    }
    if !session.scenario.effects.iter().any(|effect| effect.newest) {
        let remark =
            "which version stands was not looked at: an [[effect]] with newest = true shows it";
        session.remark(remark.to_owned());
    }
    Ok(())
}

/// The newer one, the older one, and then both again.
async fn newer_first(session: &mut Session<'_>) -> Result<bool, Error> {
    let mut trial = both(session).await?;
    trial.until_accepted().await?;
    trial.next_delivery();
    trial.until_accepted().await?;
    for _ in 0..2 {
        trial.next_delivery();
        trial.again(trial.target()).await?;
    }
    trial.end(true).await
}

/// Both have looked which one stands before either has written.
async fn at_once(session: &mut Session<'_>) -> Result<bool, Error> {
    let mut trial = both(session).await?;
    trial.session.world.recorder.race(trial.deliveries());
    trial.send_all_at_once().await?;
    trial.end(true).await
}

/// A trial of an older and a newer one, which is the next to be sent.
async fn both<'s, 'a>(session: &'s mut Session<'a>) -> Result<Trial<'s, 'a>, Error> {
    let mut trial = Trial::begin(session).await?;
    let entity = trial.delivery.entity.clone();
    trial.add(Some(entity)).await?;
    trial.delivery.version += 1;
    Ok(trial)
}
