//! How a sender goes on: it delivers again until it is told of a success, or loses patience.

use super::Session;
use crate::error::Error;
use crate::scenario::SenderKind;
use crate::world::sender::{AnswerFate, AttemptResult, Delivery};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::Instant;

/// Where waiting heals nothing, the sender wastes no time.
const PAUSE_SHORT: Duration = Duration::from_millis(10);
/// A lease that was not given back has lapsed by then, also on a busy machine.
const LEASES: f64 = 1.5;

/// How a sender waits.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Between two attempts.
    pause: Duration,
    /// Attempts alone do not end it before this.
    at_least: Duration,
}

impl Session<'_> {
    /// The sender goes on as a broker does, until it is told of a success or has lost its patience: its attempts are
    /// used up, and every lease has lapsed.
    pub(crate) async fn until_accepted(
        &mut self,
        delivery: &Delivery,
    ) -> Result<AttemptResult, Error> {
        self.persist(delivery, self.target(), self.patience()).await
    }

    /// The same without long pauses, where nothing heals with time.
    pub(crate) async fn insist(&mut self, delivery: &Delivery) -> Result<AttemptResult, Error> {
        let patience = Patience {
            pause: PAUSE_SHORT,
            at_least: Duration::ZERO,
        };
        self.persist(delivery, self.target(), patience).await
    }

    /// A duplicate of what was accepted before. To a queue it is a delivery like any other: it comes until it is
    /// accepted. A client takes what it is told, and asks again only when it is told nothing.
    pub(crate) async fn again(&mut self, delivery: &Delivery, to: SocketAddr) -> Result<(), Error> {
        match self.scenario.deliver.sender {
            SenderKind::CloudTasks
            | SenderKind::Pubsub
            | SenderKind::Cloudevents
            | SenderKind::Command => {
                self.persist(delivery, to, self.patience()).await?;
            }
            SenderKind::Http => match self.sender.send(delivery, to, AnswerFate::Received).await {
                AttemptResult::Accepted | AttemptResult::Refused => {}
                AttemptResult::MissedSuccess | AttemptResult::Unanswered => {
                    self.persist(delivery, to, self.patience()).await?;
                }
            },
        }
        Ok(())
    }

    /// Goes on unless nobody has a reason to. A queue delivers each attempt again that was not accepted; a client is
    /// content with one success, and asks again only when it was told nothing.
    pub(crate) async fn until_settled(
        &mut self,
        delivery: &Delivery,
        known: &[AttemptResult],
    ) -> Result<(), Error> {
        let settled = match self.scenario.deliver.sender {
            SenderKind::CloudTasks
            | SenderKind::Pubsub
            | SenderKind::Cloudevents
            | SenderKind::Command => known.iter().all(|known| *known == AttemptResult::Accepted),
            SenderKind::Http => !known.contains(&AttemptResult::Unanswered),
        };
        if !settled || !known.contains(&AttemptResult::Accepted) {
            self.until_accepted(delivery).await?;
        }
        Ok(())
    }

    fn patience(&self) -> Patience {
        let deliver = &self.scenario.deliver;
        Patience {
            pause: Duration::from_millis(deliver.pause_ms),
            at_least: Duration::from_millis(deliver.lease_ms).mul_f64(LEASES),
        }
    }

    async fn persist(
        &mut self,
        delivery: &Delivery,
        to: SocketAddr,
        patience: Patience,
    ) -> Result<AttemptResult, Error> {
        let began = Instant::now();
        let mut left = attempts_left(self.scenario.deliver.attempts, delivery.attempts());
        loop {
            self.world.restart_ended().await?;
            let known = self.sender.send(delivery, to, AnswerFate::Received).await;
            left = left.saturating_sub(1);
            let patient = left > 0 || began.elapsed() < patience.at_least;
            if known == AttemptResult::Accepted || !patient {
                return Ok(known);
            }
            tokio::time::sleep(patience.pause).await;
        }
    }
}

/// The first attempt was one of them.
fn attempts_left(attempts: u32, sent: u32) -> u32 {
    attempts.saturating_sub(sent.min(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_attempt_is_one_of_them() {
        assert_eq!(attempts_left(20, 0), 20);
        assert_eq!(attempts_left(20, 1), 19);
        assert_eq!(attempts_left(20, 64), 19);
        assert_eq!(attempts_left(1, 1), 1);
    }
}
