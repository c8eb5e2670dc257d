//! Another payload under a key that is known already.

use super::{Error, Session, Trial};
use crate::world::sender::Payload;

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let mut trial = Trial::begin(session).await?;
    trial.until_accepted().await?;
    trial.delivery.payload = Payload::Other;
    trial.insist().await?;
    trial.end(true).await.map(drop)
}
