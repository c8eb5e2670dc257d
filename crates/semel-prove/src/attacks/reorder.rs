//! Two deliveries of one entity arrive in the wrong order, and then both again.

use super::{Definition, Error, Fault, Need, Session, Trial};

pub(super) const REORDER: Definition = Definition {
    name: "reorder",
    does: "two deliveries in the wrong order",
    fault: Fault::Duplicate,
    needs: &[Need::Entity],
    run: |session| Box::pin(run(session)),
};

async fn run(session: &mut Session<'_>) -> Result<(), Error> {
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
