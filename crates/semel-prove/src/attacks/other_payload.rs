//! Another payload under a key that is known already.

use super::{Definition, Error, Fault, Need, Session, Trial};
use crate::world::sender::Payload;

pub(super) const OTHER_PAYLOAD: Definition = Definition {
    name: "other-payload",
    does: "the same key with another payload",
    fault: Fault::Duplicate,
    needs: &[Need::OtherBody],
    run: |session| Box::pin(run(session)),
};

async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    trial.delivery.payload = Payload::Other;
    trial.insist().await?;
    trial.end(true).await.map(drop)
}
