//! The points of a run that lie around its worker's calls to the store.

use super::point::Point;
use crate::harness::{FaultPoints, Interceptor};
use async_trait::async_trait;
use semel::protocol::{Answer, Claimed, Operation};
use semel::{Error, Store};

/// Comes by the points around the operations of a store.
#[derive(Debug)]
pub(super) struct StorePoints(pub(super) FaultPoints);

#[async_trait]
impl Interceptor for StorePoints {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
        let call = store.apply(operation);
        let key = operation.key();
        let pass = |point: Point| self.0.pass(key, &point.name());
        let (within, done) = match operation {
            Operation::Claim(_) => (Point::ClaimSent, Some(Point::ClaimAnswered)),
            Operation::Renew { .. } => (Point::RenewSent, None),
            Operation::Complete { .. } => (Point::CompleteSent, Some(Point::CompleteAnswered)),
            Operation::Fail { .. }
            | Operation::Release { .. }
            | Operation::Look(_)
            | Operation::StepBegin { .. }
            | Operation::StepRestart { .. }
            | Operation::StepComplete { .. }
            | Operation::Resolve { .. }
            | Operation::Redrive { .. }
            | Operation::Retain { .. }
            | Operation::ReleaseByOperator { .. }
            | Operation::Forget(_)
            | Operation::Steps(_)
            | Operation::Index { .. }
            | Operation::Find(_)
            | Operation::Ready => return call.await,
        };
        if within == Point::ClaimSent {
            pass(Point::BeforeClaim);
        }
        let answer = self.0.pass_within(key, &within.name(), call).await;
        let granted = matches!(answer, Ok(Answer::Claimed(Claimed::Granted(_))));
        if let Some(point) = done.filter(|point| granted || *point != Point::ClaimAnswered) {
            pass(point);
        }
        answer
    }
}
