//! Two deliveries of one entity arrive in the wrong order, and then both again.

use super::{Error, Session, Trial};

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let mut trial = Trial::begin(session).await?;
    trial.add_related().await?;
    trial.until_accepted().await?;
    trial.switch();
    trial.until_accepted().await?;
    for _ in 0..2 {
        trial.switch();
        trial.again(trial.target()).await?;
    }
    trial.end(true).await.map(drop)
}
