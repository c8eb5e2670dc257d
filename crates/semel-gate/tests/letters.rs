//! Letters over time: what closes one, what brings one back, and how many there may be.

mod overdue;
mod retained;
mod closed;
mod credentials;
mod damaged;
mod discarded;
mod unknown;
mod quota;
mod nameless;
mod senders;
mod taken;

use crate::support::prelude::*;
use semel::clock::{Clock, ManualClock, SystemClock, Time};
use semel::memory::MemoryStore;
use std::ops::Deref;

pub(crate) const LEASE: Duration = Duration::from_secs(60);
const RETENTION: Duration = Duration::from_secs(600);

/// A record that was granted long enough ago is gone after that.
const GONE: Duration = Duration::from_secs(660);

/// A gate that parks what is in doubt, on a store whose time passes when a test says so.
pub(crate) struct Aging {
    clock: Arc<ManualClock>,
    bed: Bed,
}

impl Aging {
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::at(SystemClock::new().wall(), change).await
    }

    /// The same on a store whose clock begins at this time.
    pub(crate) async fn at(begin: Time, change: impl FnOnce(&mut Settings)) -> Self {
        let clock = Arc::new(ManualClock::at(begin));
        let kept = MemoryStore::with_clock(Arc::<ManualClock>::clone(&clock));
        let bed = gate_on(Arc::new(Switch::on(kept)), change).await;
        Self { clock, bed }
    }

    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn route(change: impl FnOnce(&mut Route)) -> Self {
        Self::with(|settings| change(&mut settings.routes[0])).await
    }

    /// With the letter of a task that was parked.
    async fn parked() -> Self {
        let bed = Self::new().await;
        bed.handler.says(500);
        bed.ask(task()).await.is(200);
        bed
    }

    /// Another gate on the same store.
    pub(crate) async fn another(&self, change: impl FnOnce(&mut Settings)) -> Bed {
        gate_on(Arc::<Switch>::clone(&self.store), change).await
    }

    /// Another one, that reconciles letters all the time.
    async fn reconciling(&self) -> Bed {
        let often = Duration::from_millis(10);
        self.another(|settings| settings.reconcile_every = often)
            .await
    }

    pub(crate) fn pass(&self, by: Duration) {
        self.clock.advance(by + Duration::from_secs(1));
    }
}

impl Deref for Aging {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

async fn gate_on(store: Arc<Switch>, change: impl FnOnce(&mut Settings)) -> Bed {
    Bed::on(store, Handler::start().await, |settings| {
        parking(&mut settings.routes[0]);
        change(settings);
    })
    .await
}

fn parking(route: &mut Route) {
    route.in_doubt = InDoubt::Park;
    terms_of(route, |terms| {
        // Longer than any test takes, so that no renewal comes between.
        terms.lease = LEASE;
        terms.retention = RETENTION;
    });
}

fn task() -> Ask {
    Sender::Task.sends("t1", "payload")
}

/// A gate that is paused in the middle of a run, which another gate parks: its letter is kept.
async fn paused() -> (Aging, JoinHandle<Answer>, Bed) {
    let one = Aging::new().await;
    let other = one.another(|_| {}).await;
    let first = one.hold(task()).await;
    one.pass(LEASE);
    other.ask(task()).await.is(200);
    assert_eq!(other.letters().await.len(), 1);
    assert_eq!(other.record().await.state, State::Parked);
    (one, first, other)
}

/// The paused gate goes on, and its late word counts.
async fn resumes(one: &Bed, first: JoinHandle<Answer>) {
    one.go(first).await.is(200);
    assert_eq!(one.record().await.state, State::Succeeded);
}
