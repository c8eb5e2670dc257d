//! Letters over time: what closes one, what brings one back, and how many there may be.

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
use semel::clock::{Clock, ManualClock, SystemClock};
use semel::memory::MemoryStore;

const LEASE: Duration = Duration::from_secs(60);
const RETENTION: Duration = Duration::from_secs(600);

/// A record that was granted long enough ago is gone after that.
const GONE: Duration = Duration::from_secs(660);

/// A store whose time passes when a test says so.
struct Aging {
    clock: Arc<ManualClock>,
    store: Arc<Switch>,
}

impl Aging {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(SystemClock::new().wall()));
        let kept = MemoryStore::with_clock(Arc::<ManualClock>::clone(&clock));
        Self {
            clock,
            store: Arc::new(Switch::on(kept)),
        }
    }

    /// A gate on it that parks what is in doubt.
    async fn gate(&self, change: impl FnOnce(&mut Settings)) -> Bed {
        let store = Arc::<Switch>::clone(&self.store);
        Bed::on(store, Handler::start().await, |settings| {
            parking(&mut settings.routes[0]);
            change(settings);
        })
        .await
    }

    /// A gate with the letter of a task that was parked.
    async fn parked(&self) -> Bed {
        let bed = self.gate(|_| {}).await;
        bed.handler.says(500);
        bed.ask(task()).await.is(200);
        bed
    }

    /// A gate that reconciles letters all the time.
    async fn reconciling(&self) -> Bed {
        let often = Duration::from_millis(10);
        self.gate(|settings| settings.reconcile_every = often).await
    }

    fn pass(&self, by: Duration) {
        self.clock.advance(by + Duration::from_secs(1));
    }
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
async fn paused(aging: &Aging) -> (Bed, JoinHandle<Answer>, Bed) {
    let (one, other) = (aging.gate(|_| {}).await, aging.gate(|_| {}).await);
    let first = one.hold(task()).await;
    aging.pass(LEASE);
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
