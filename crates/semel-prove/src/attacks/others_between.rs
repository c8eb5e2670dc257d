//! Other deliveries come between a delivery and its repeat, or beside it: each is owed its own effect.

use super::{Error, Session, Trial};
use crate::scenario::SenderKind;
use crate::world::sender::OTHER_TENANT;

/// How many come between.
const CROWD_QUICK: usize = 12;
const CROWD_FULL: usize = 64;

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    if alternating(session).await? || beside(session).await? || tenants(session).await? {
        return Ok(());
    }
    crowd(session).await
}

/// One, another, the first, the other.
async fn alternating(session: &mut Session<'_>) -> Result<bool, Error> {
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    let entity = shared_entity(&trial);
    trial.add(entity).await?;
    trial.until_accepted().await?;
    for _ in 0..2 {
        trial.next_delivery();
        trial.again(trial.target()).await?;
    }
    trial.end(true).await
}

/// Two at once.
async fn beside(session: &mut Session<'_>) -> Result<bool, Error> {
    let mut trial = Trial::begin(session).await?;
    trial.add(None).await?;
    trial.session.world.recorder.race(trial.deliveries());
    trial.send_all_at_once().await?;
    trial.end(true).await
}

/// The same id of two tenants.
async fn tenants(session: &mut Session<'_>) -> Result<bool, Error> {
    if !session.scenario.deliver.names("{tenant}") {
        return Ok(false);
    }
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    let mut other = trial.delivery.of_tenant(OTHER_TENANT);
    if trial.session.scenario.deliver.sender == SenderKind::Http {
        // Two callers who do not know each other may choose the same key.
        other.message.clone_from(&other.id);
    }
    trial.add_delivery(other);
    trial.until_accepted().await?;
    for _ in 0..2 {
        trial.next_delivery();
        trial.again(trial.target()).await?;
    }
    trial.end(true).await
}

/// One, many others at once, and the first again.
async fn crowd(session: &mut Session<'_>) -> Result<(), Error> {
    let size = session.options.profile.pick(CROWD_QUICK, CROWD_FULL);
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    for _ in 0..size {
        trial.add(None).await?;
    }
    trial.send_all_at_once().await?;
    trial.next_delivery();
    trial.again(trial.target()).await?;
    trial.end(true).await.map(drop)
}

/// Where versions supersede each other, one entity is owed the newest only.
fn shared_entity(trial: &Trial<'_, '_>) -> Option<String> {
    let versioned = trial.session.scenario.deliver.names("{version}");
    (!versioned).then(|| trial.delivery.entity.clone())
}
