//! Landing as part of the effect: a run has succeeded when its row is durable, and not before.

use super::{HandlerCall, StreamedAnswer};
use crate::forwarded_request::RunContext;
use crate::reply::meaning::failed;
use crate::reply::problem::{NOT_LANDED, answer_too_large};
use crate::settings::{LandRule, Lands};
use bytes::Bytes;
use http::StatusCode;
use semel::Outcome;
use semel::outcome::Body;
use semel::work::{Failure, FailureKind};
use semel_landing::Answer;
use std::time::Duration;
use tokio::time::Instant;

// === impl HandlerCall ===

impl HandlerCall {
    /// Does what the route is for, within so long: calls its handler, lets the delivery land, or both.
    pub(crate) async fn perform(
        &self,
        run: RunContext<'_>,
        limit: Duration,
    ) -> (Result<Outcome, Failure>, StreamedAnswer) {
        let begun = Instant::now();
        let Some(rule) = &self.route.settings.land else {
            return self.answer(run, limit).await;
        };
        match rule.lands {
            Lands::Delivery => {
                let landed = self.land(rule, run, None, limit).await;
                let done = Outcome::new(StatusCode::NO_CONTENT.as_u16(), Bytes::new());
                let said = landed.map(|()| done);
                let said = said.map_err(|outcome| failed(FailureKind::NotStarted, outcome));
                (said, StreamedAnswer::default())
            }
            Lands::Answer => {
                let (said, answer) = self.answer(run, limit).await;
                let outcome = match said {
                    Ok(outcome) if (200..300).contains(&outcome.status) => outcome,
                    said @ (Ok(_) | Err(_)) => return (said, answer),
                };
                let left = limit.saturating_sub(begun.elapsed());
                match self.land_answer(rule, run, &outcome, left).await {
                    Ok(()) => (Ok(outcome), answer),
                    // What the handler said is not told: its sender must deliver again.
                    Err(told) => {
                        let failure = failed(FailureKind::Retryable, told);
                        (Err(failure), StreamedAnswer::default())
                    }
                }
            }
        }
    }

    async fn land_answer(
        &self,
        rule: &LandRule,
        run: RunContext<'_>,
        outcome: &Outcome,
        limit: Duration,
    ) -> Result<(), Outcome> {
        let max = self.route.settings.answer_bytes_max;
        match &outcome.body {
            Body::NotKept => Err(answer_too_large(max).outcome()),
            Body::Kept(body) => {
                let (status, body) = (outcome.status, body.clone());
                let answer = Some(Answer { status, body });
                self.land(rule, run, answer, limit).await
            }
        }
    }

    /// Waits until the row is durable, or says what the sender hears.
    async fn land(
        &self,
        rule: &LandRule,
        run: RunContext<'_>,
        answer: Option<Answer>,
        limit: Duration,
    ) -> Result<(), Outcome> {
        let Some(mut row) = self.row.clone() else {
            return Err(NOT_LANDED.outcome());
        };
        row.event_id = Some(run.key().to_string());
        row.answer = answer;
        let left = rule.within.saturating_sub(self.arrival.since.elapsed());
        let landed = self
            .route
            .land(&self.gate, &self.trace, row, left.min(limit));
        landed.await.map_err(|_| NOT_LANDED.outcome())
    }
}
