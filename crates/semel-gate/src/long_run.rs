//! A run that goes on when its sender no longer waits.
//!
//! At half of its sender's deadline the delivery is kept as a letter: from then on nothing is lost when the sender gives up
//! for good, or this gate dies. Just before the deadline the sender hears that the work is running, and its redeliveries
//! wait or attach. The letter is closed when the work has succeeded.

use crate::disposition::Disposition;
use crate::effect::EffectReport;
use crate::flow::Flow;
use crate::letters::keep::{LetterPut, keep_letter, put};
use crate::settings::OnExhausted;
use crate::waiting_sender::WaitingSender;
use semel::letter::Reason;
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// What must happen while a run goes on, and when.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// When the delivery is kept as a letter.
    letter_at: Option<Instant>,
    /// When the sender hears that it goes on.
    reply_at: Option<Instant>,
}

/// When a sender may ask again: it waits for the outcome then.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long a store may take to keep the letter before it is tried again, and the pause in between.
const LETTER_WITHIN: Duration = Duration::from_secs(2);
const LETTER_AGAIN_AFTER: Duration = Duration::from_secs(2);

// === impl Flow ===

impl Flow {
    /// Waits for the end of the delivery's run, with or without its sender.
    pub(crate) async fn outlast<T>(
        &mut self,
        run: impl Future<Output = T>,
        report: &mut EffectReport,
        sender: &mut WaitingSender,
    ) -> T {
        let schedule = Schedule::of(self, sender.since);
        tokio::select! {
            biased;
            ended = run => ended,
            never = self.meanwhile(schedule, report, sender) => match never {},
        }
    }

    async fn meanwhile(
        &mut self,
        mut schedule: Schedule,
        report: &mut EffectReport,
        sender: &mut WaitingSender,
    ) -> Infallible {
        let mut may_run = true;
        loop {
            tokio::select! {
                biased;
                () = due(schedule.reply_at) => {
                    schedule.reply_at = None;
                    let goes_on = keep_letter(self, self.goes_on()).await;
                    sender.hears(self.reply(&goes_on));
                }
                lease = &mut report.lease, if may_run => {
                    may_run = false;
                    self.lease = lease.ok();
                }
                () = due(schedule.letter_at), if self.lease.is_some() => {
                    schedule.letter_at = self.keep_running().await;
                }
            }
        }
    }

    /// What the sender hears at its deadline.
    fn goes_on(&self) -> Disposition {
        let retry_after = ASK_AGAIN_AFTER;
        match self.lease {
            Some(_) => Disposition::Running { retry_after },
            None => Disposition::Busy { retry_after },
        }
    }

    /// Keeps the delivery of a run that goes on; when to try again if that did not work.
    async fn keep_running(&mut self) -> Option<Instant> {
        let why = "its run was still going when half of what its sender waits was over";
        let put = timeout(LETTER_WITHIN, put(self, Reason::Running, why.into()));
        let why = match put.await {
            Ok(Ok(LetterPut::Kept | LetterPut::Closed)) => return None,
            // Whoever refused it has said so.
            Ok(Ok(LetterPut::NotKept(_))) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the store did not answer in time".into()),
        };
        if let Some(why) = why {
            let route = &self.route.settings.name;
            tracing::warn!(
                route,
                why,
                "the letter of a run that goes on was not kept; trying again"
            );
        }
        Some(Instant::now() + LETTER_AGAIN_AFTER)
    }

    /// Whether its sender does not deliver it again, and relies on letters then.
    pub(crate) fn is_last_attempt(&self) -> bool {
        let route = &self.route.settings;
        let most = route.terms(self.source).sender_attempts.most;
        let last = most.zip(self.transport.attempt());
        self.source.is_broker()
            && route.on_exhausted == OnExhausted::Letter
            && last.is_some_and(|(most, attempt)| attempt >= u64::from(most))
    }
}

// === impl Schedule ===

impl Schedule {
    fn of(flow: &Flow, since: Instant) -> Self {
        let terms = flow.route.settings.terms(flow.source);
        let half = terms.deadline.map(|deadline| since + deadline / 2);
        let letter_at = if flow.is_last_attempt() {
            Some(since)
        } else {
            half.filter(|_| flow.source.is_broker() && terms.outlasts_sender())
        };
        Self {
            letter_at,
            reply_at: terms.replies_within().map(|within| since + within),
        }
    }
}

/// Waits until then; for ever where nothing is due.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) if at <= Instant::now() => {}
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
