//! A run that nothing is remembered of: delivery → key → run → reply. There is no claim, lease, replay or letter; the
//! handler is told which work it is and which delivery, and whoever is behind it drops repeats.

use crate::disposition::Disposition;
use crate::effect::HandlerCall;
use crate::flow::Flow;
use crate::forwarded_request::RunContext;
use crate::naming::Identity;
use crate::waiting_sender::WaitingSender;
use semel::protocol::{Ending, State};
use semel::run::Failed;
use semel::slots::{Slot, SlotWait};
use semel::work::{Failure, FailureKind};
use semel::{Ended, Outcome, Recorded};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// When a sender may ask again that found no slot.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

// === impl Flow ===

impl Flow {
    /// Runs the handler, whatever ran before.
    pub(crate) async fn run_stateless(
        &mut self,
        identity: Identity,
        sender: Option<&mut WaitingSender>,
    ) -> Disposition {
        let terms = self.route.settings.terms(self.source);
        let limit = terms.timeout;
        // Nobody hears of a run that takes longer than its sender waits, a wait for its slot included.
        let reply_at = sender.and_then(|sender| Some(sender.since + terms.replies_within()?));
        let until = reply_at.unwrap_or_else(|| Instant::now() + limit);
        let Some(_slot) = self.slot(until).await else {
            let retry_after = ASK_AGAIN_AFTER;
            return Disposition::Full { retry_after };
        };
        let sent = Instant::now();
        let left = reply_at.map_or(limit, |at| limit.min(at.saturating_duration_since(sent)));
        let run = RunContext::Stateless(&identity, &self.arrival);
        let (said, answer) = HandlerCall::of(self).perform(run, left).await;
        self.handler_took = Some(sent.elapsed());
        self.answer = answer;
        Disposition::of_run(self.source, Ok(ended(said)))
    }

    /// A slot to run in, if there is one before its sender must hear something.
    async fn slot(&mut self, until: Instant) -> Option<Slot> {
        let wait = SlotWait::default();
        let slot = timeout_at(until, self.route.slots.take(&wait)).await;
        self.slot_waited = wait.waited();
        slot.ok().flatten()
    }
}

/// What a run came to, in the words of one that is recorded.
fn ended(said: Result<Outcome, Failure>) -> Ended {
    let recorded = |ending, outcome| Ended::Ran(Arc::new(Recorded { ending, outcome }));
    match said {
        Ok(outcome) => recorded(Ending::Succeeded, outcome),
        Err(failure) => match failure.kind {
            FailureKind::Final => recorded(Ending::Failed, failure.outcome),
            FailureKind::NotStarted
            | FailureKind::Withdrawn
            | FailureKind::Retryable
            | FailureKind::InDoubt
            | FailureKind::StillInDoubt
            | FailureKind::Park => Ended::Failed(Arc::new(Failed {
                failure,
                state: State::Waiting,
            })),
        },
    }
}
