//! One trial: a new delivery into a world that runs, what is done to it, and a verdict once all is quiet again.

mod resend;
mod finish;

pub(crate) use finish::Finding;

use super::session::Session;
use crate::error::Error;
use crate::world::exchange::{Exchange, Hold};
use crate::world::recorder::Release;
use crate::world::sender::{AnswerFate, AttemptResult, Delivery};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Work after an answer begins within this time.
const AFTER: Duration = Duration::from_millis(40);
/// Fine enough to be there when an answer has just come.
const LOOK: Duration = Duration::from_micros(250);
/// As fine as timers are.
const TICK: Duration = Duration::from_millis(1);

/// A trial that has begun.
pub(crate) struct Trial<'s, 'a> {
    pub(crate) session: &'s mut Session<'a>,
    pub(crate) delivery: Delivery,
    /// The other deliveries of a trial of several.
    others: Vec<Delivery>,
}

/// A trial whose first attempt is under way.
pub(crate) struct StartedTrial<'s, 'a> {
    pub(crate) trial: Trial<'s, 'a>,
    pub(crate) first: JoinHandle<AttemptResult>,
    /// Where it is held now; nowhere when its work was over before.
    pub(crate) held: Option<Exchange>,
}

// === impl Trial ===

impl<'s, 'a> Trial<'s, 'a> {
    /// A new trial with one new delivery.
    pub(crate) async fn begin(session: &'s mut Session<'a>) -> Result<Self, Error> {
        session.world.recorder.idle();
        session.world.restart_ended().await?;
        let delivery = session.new_delivery(None).await?;
        Ok(Self::of(session, delivery))
    }

    /// A new trial with a delivery of an earlier one.
    pub(crate) async fn begin_again(
        session: &'s mut Session<'a>,
        delivery: Delivery,
    ) -> Result<Self, Error> {
        session.world.recorder.idle();
        session.world.restart_ended().await?;
        Ok(Self::of(session, delivery))
    }

    fn of(session: &'s mut Session<'a>, delivery: Delivery) -> Self {
        session.sender.take_answers();
        session.world.recorder.begin();
        session.world.recorder.owns(&delivery.id);
        Self {
            session,
            delivery,
            others: Vec::new(),
        }
    }

    /// A new trial whose delivery is held at a boundary of the baseline.
    pub(crate) async fn begin_held(
        session: &'s mut Session<'a>,
        at: &Exchange,
    ) -> Result<StartedTrial<'s, 'a>, Error> {
        let boundary = Hold::At(at.boundary.clone());
        let started = Self::begin(session).await?.hold(boundary).await?;
        if started.held.is_some() {
            return Ok(started);
        }
        let session = started.trial.session;
        session.quiet().await;
        let number = Hold::Number(at.number);
        Self::begin(session).await?.hold(number).await
    }

    async fn hold(self, hold: Hold) -> Result<StartedTrial<'s, 'a>, Error> {
        self.session.world.recorder.hold(hold);
        let mut result = AttemptResult::Unanswered;
        let deliver = &self.session.scenario.deliver;
        // As in the undisturbed run: a handler may refuse what it does later.
        while result != AttemptResult::Accepted && self.delivery.attempts() < deliver.attempts {
            let first = self.spawn(self.target());
            let held = tokio::select! {
                exchange = self.session.world.recorder.held() => Some(exchange),
                () = self.over(&first) => None,
            };
            if held.is_some() {
                return Ok(self.started(first, held));
            }
            result = first.await.unwrap_or(result);
            if result != AttemptResult::Accepted {
                tokio::time::sleep(deliver.pause()).await;
                self.session.world.restart_ended().await?;
            }
        }
        // Later attempts are not to be held: nobody would let them go.
        self.session.world.recorder.release(Release::Forward);
        Ok(self.started(tokio::spawn(std::future::ready(result)), None))
    }

    /// With this attempt as its first one.
    pub(crate) fn started(
        self,
        first: JoinHandle<AttemptResult>,
        held: Option<Exchange>,
    ) -> StartedTrial<'s, 'a> {
        StartedTrial {
            trial: self,
            first,
            held,
        }
    }

    /// Makes another delivery, about this entity or about one of its own. It is the next to be sent.
    pub(crate) async fn add(&mut self, entity: Option<String>) -> Result<(), Error> {
        let later = self.session.new_delivery(entity.as_deref()).await?;
        self.add_delivery(later);
        Ok(())
    }

    /// This one is the next to be sent.
    pub(crate) fn add_delivery(&mut self, later: Delivery) {
        self.others
            .push(std::mem::replace(&mut self.delivery, later));
    }

    /// The delivery that has waited longest is the next to be sent.
    pub(crate) fn next_delivery(&mut self) {
        if !self.others.is_empty() {
            let next = self.others.remove(0);
            self.add_delivery(next);
        }
    }

    /// How many deliveries it has.
    pub(crate) fn deliveries(&self) -> usize {
        self.others.len() + 1
    }

    fn into_parts(self) -> (&'s mut Session<'a>, Vec<Delivery>) {
        let deliveries = self.others.into_iter().chain([self.delivery]);
        (self.session, deliveries.collect())
    }

    pub(crate) fn target(&self) -> SocketAddr {
        self.session.sender.target()
    }

    /// One attempt in the background.
    pub(crate) fn spawn(&self, to: SocketAddr) -> JoinHandle<AttemptResult> {
        self.session.sender.spawn(&self.delivery, to)
    }

    /// One attempt.
    pub(crate) async fn send(&self, to: SocketAddr, fate: AnswerFate) -> AttemptResult {
        self.session.sender.send(&self.delivery, to, fate).await
    }

    /// One attempt to each of these, at once.
    pub(crate) async fn send_at_once(&self, to: &[SocketAddr]) -> Vec<AttemptResult> {
        let sent: Vec<_> = to.iter().map(|to| self.spawn(*to)).collect();
        let mut results = Vec::new();
        for one in sent {
            results.extend(one.await);
        }
        results
    }

    /// One attempt of each delivery, all at once; whichever is not accepted then comes again.
    pub(crate) async fn send_all_at_once(&mut self) -> Result<(), Error> {
        let mut sent = Vec::new();
        for _ in 0..self.deliveries() {
            self.next_delivery();
            sent.push(self.spawn(self.target()));
        }
        for attempt in sent {
            self.next_delivery();
            let results: Vec<_> = attempt.await.into_iter().collect();
            self.until_settled(&results).await?;
        }
        Ok(())
    }

    /// A second attempt beside the first. The first is let go when the second has ended or had this head start.
    pub(crate) async fn send_beside(
        &mut self,
        first: JoinHandle<AttemptResult>,
        to: SocketAddr,
        head_start: Duration,
        let_go: impl FnOnce(&mut Session<'a>),
    ) -> Vec<AttemptResult> {
        let mut second = self.spawn(to);
        let ended = timeout(head_start, &mut second).await;
        let_go(self.session);
        let second = match ended {
            Ok(ended) => ended,
            Err(_) => second.await,
        };
        second.into_iter().chain(first.await).collect()
    }

    /// Returns when an attempt has ended, and what it may have left to be done after its answer.
    async fn over(&self, attempt: &JoinHandle<AttemptResult>) {
        ended(attempt).await;
        let baseline = &self.session.baseline;
        let after = baseline.ended.saturating_sub(baseline.answered);
        tokio::time::sleep(after * 2 + AFTER).await;
    }
}

/// Handlers may be done within a few milliseconds, which is as long as a timer's tick.
pub(crate) async fn exactly(moment: Duration) {
    let began = Instant::now();
    let coarse = moment.saturating_sub(TICK * 2);
    // Even a sleep of nothing may last a tick.
    if !coarse.is_zero() {
        tokio::time::sleep(coarse).await;
    }
    while began.elapsed() < moment {
        tokio::task::yield_now().await;
    }
}

/// Returns when an attempt has ended, without taking what it ended with.
pub(crate) async fn ended<T>(attempt: &JoinHandle<T>) {
    while !attempt.is_finished() {
        tokio::time::sleep(LOOK).await;
    }
}
