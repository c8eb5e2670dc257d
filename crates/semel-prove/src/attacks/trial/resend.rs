//! How a sender goes on: it delivers again until it is told of a success, or loses patience.

use super::Trial;
use crate::error::Error;
use crate::scenario::SenderKind;
use crate::world::sender::{AnswerFate, AttemptResult};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::Instant;

/// Where waiting heals nothing, the sender wastes no time.
const PAUSE_SHORT: Duration = Duration::from_millis(10);
/// A lease that was not given back has lapsed by then, also on a busy machine.
const LEASES: f64 = 1.5;

// === impl Trial ===

impl Trial<'_, '_> {
    /// The sender goes on as a broker does, until it is told of a success or has lost its patience: its attempts are
    /// used up, and every lease has lapsed.
    pub(crate) async fn until_accepted(&mut self) -> Result<AttemptResult, Error> {
        self.persist(self.target()).await
    }

    /// The same without long pauses, where nothing heals with time.
    pub(crate) async fn insist(&mut self) -> Result<AttemptResult, Error> {
        self.send_until(self.target(), PAUSE_SHORT, Duration::ZERO)
            .await
    }

    /// A duplicate of what was accepted before. To a queue it is a delivery like any other: it comes until it is
    /// accepted. A client takes what it is told, and asks again only when it is told nothing.
    pub(crate) async fn again(&mut self, to: SocketAddr) -> Result<(), Error> {
        if self.is_client() {
            match self.send(to, AnswerFate::Received).await {
                AttemptResult::Accepted | AttemptResult::Refused => return Ok(()),
                AttemptResult::MissedSuccess | AttemptResult::Unanswered => {}
            }
        }
        self.persist(to).await.map(drop)
    }

    /// Goes on unless nobody has a reason to. A queue delivers each attempt again that was not accepted; a client is
    /// content with one success, and asks again only when it was told nothing.
    pub(crate) async fn until_settled(&mut self, results: &[AttemptResult]) -> Result<(), Error> {
        let settled = if self.is_client() {
            !results.contains(&AttemptResult::Unanswered)
        } else {
            results.iter().all(|it| *it == AttemptResult::Accepted)
        };
        if !settled || !results.contains(&AttemptResult::Accepted) {
            self.until_accepted().await?;
        }
        Ok(())
    }

    fn is_client(&self) -> bool {
        self.session.scenario.deliver.sender == SenderKind::Http
    }

    async fn persist(&mut self, to: SocketAddr) -> Result<AttemptResult, Error> {
        let deliver = &self.session.scenario.deliver;
        let leases = deliver.lease().mul_f64(LEASES);
        self.send_until(to, deliver.pause(), leases).await
    }

    /// With this pause between two attempts. Attempts alone do not end it before `at_least`.
    async fn send_until(
        &mut self,
        to: SocketAddr,
        pause: Duration,
        at_least: Duration,
    ) -> Result<AttemptResult, Error> {
        let began = Instant::now();
        let attempts = self.session.scenario.deliver.attempts;
        let mut left = attempts_left(attempts, self.delivery.attempts());
        loop {
            self.session.world.restart_ended().await?;
            let result = self.send(to, AnswerFate::Received).await;
            left = left.saturating_sub(1);
            let patient = left > 0 || began.elapsed() < at_least;
            if result == AttemptResult::Accepted || !patient {
                return Ok(result);
            }
            tokio::time::sleep(pause).await;
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
