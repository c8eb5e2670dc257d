//! A run whose sender may give up, or stop waiting, before it ends.
//!
//! Where the sender may not deliver again, the delivery is a letter before its run is sent, and a store that keeps none stops
//! the run; otherwise it is one at half of the sender's deadline. From then on nothing is lost when the sender gives up, or
//! this gate dies. Just before the deadline the sender receives that the work is still running, and its redeliveries wait or
//! attach. The letter is closed when the work has succeeded.

use crate::disposition::Disposition;
use crate::effect::EffectReport;
use crate::flow::Flow;
use crate::letters::keep::{LetterPut, keep_before_run, keep_letter, put};
use crate::letters::unfinished::Moment;
use crate::waiting_sender::WaitingSender;
use semel::Error;
use semel::letter::Reason;
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep_until, timeout};

/// What must happen while a run goes on, and when.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// When the delivery is kept as a letter.
    letter_at: Option<Instant>,
    /// When the sender hears that it goes on.
    reply_at: Option<Instant>,
}

/// Time for the end of a run that is cut off just when its sender receives its last answer: half of the sender's margin.
const LAST_WORD: Duration = Duration::from_millis(500);

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
                    let timeout = self.route.settings.terms(self.source).timeout;
                    schedule.granted(Instant::now() + timeout);
                    if let Some(begin) = report.begin.take() {
                        schedule.letter_at = self.keep_first(begin).await;
                    }
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

    /// Keeps the delivery and lets its run begin; returns the time of the next try, if its quota is full. Where the store is to
    /// blame, the run does not begin.
    async fn keep_first(&mut self, begin: oneshot::Sender<()>) -> Option<Instant> {
        let fence = self.lease.as_ref()?.fence;
        let put = timeout(LETTER_WITHIN, keep_before_run(self, fence)).await;
        match answered(put) {
            Ok(put) => {
                // An effect that is gone needs no word.
                let _sent = begin.send(());
                again_unless_kept(put)
            }
            Err(why) => {
                let route = &self.route.settings.name;
                tracing::warn!(route, why, "run not sent: its letter was not kept");
                None
            }
        }
    }

    /// Keeps the delivery of a run that is still going; returns the time of the next try, if it was not kept.
    async fn keep_running(&mut self) -> Option<Instant> {
        let put = put(self, Reason::Unfinished, Moment::StillRunning.why().into());
        let put = timeout(LETTER_WITHIN, put).await;
        answered(put).map_or_else(
            |why| {
                let route = &self.route.settings.name;
                tracing::warn!(route, why, "letter of a run not kept; trying again");
                Some(Instant::now() + LETTER_AGAIN_AFTER)
            },
            again_unless_kept,
        )
    }
}

/// The answer of the store, or why there is none.
fn answered(put: Result<Result<LetterPut, Error>, Elapsed>) -> Result<LetterPut, String> {
    match put {
        Ok(Ok(put)) => Ok(put),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the store did not answer in time".into()),
    }
}

/// The time of the next try. A refusal has been logged.
fn again_unless_kept(put: LetterPut) -> Option<Instant> {
    match put {
        LetterPut::Kept | LetterPut::KeptUnsettled | LetterPut::Closed => None,
        LetterPut::NotKept(_) => Some(Instant::now() + LETTER_AGAIN_AFTER),
    }
}

// === impl Schedule ===

impl Schedule {
    fn of(flow: &Flow, since: Instant) -> Self {
        let terms = flow.route.settings.terms(flow.source);
        let half = terms.deadline.map(|deadline| since + deadline / 2);
        Self {
            letter_at: half.filter(|_| flow.needs_letter(Moment::StillRunning)),
            reply_at: terms.replies_within().map(|within| since + within),
        }
    }

    /// Lets a run end that is cut off at about the time of the reply: the sender receives that end.
    fn granted(&mut self, ends: Instant) {
        self.reply_at = self.reply_at.map(|at| {
            if ends <= at + LAST_WORD / 2 {
                at + LAST_WORD
            } else {
                at
            }
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_that_is_cut_off_is_never_said_to_continue() {
        let reply_at = Instant::now();
        let replies = |ends: Instant| {
            let mut schedule = Schedule {
                letter_at: None,
                reply_at: Some(reply_at),
            };
            schedule.granted(ends);
            schedule.reply_at
        };
        let second = Duration::from_secs(1);
        for ends in [reply_at - second, reply_at, reply_at + LAST_WORD / 2] {
            assert_eq!(replies(ends), Some(reply_at + LAST_WORD));
        }
        assert_eq!(replies(reply_at + second), Some(reply_at));
    }
}
