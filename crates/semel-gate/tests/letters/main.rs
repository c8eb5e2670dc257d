//! Letters over time: what closes one, what brings one back, and how many there may be.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../admin/log.rs"]
mod log;

mod closed;
mod credentials;
mod damaged;
mod discarded;
mod unknown;
mod quota;
mod nameless;
mod senders;
mod taken;

use semel::clock::{Clock, ManualClock, SystemClock};
use semel::memory::MemoryStore;
use semel::protocol::{InDoubt, State};
use semel_gate::settings::{Route, Settings};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use support::handler::Say;
use support::{Act, Answer, Ask, Bed, Handler, Sender, Switch, terms_of};
use tokio::task::JoinHandle;

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
    one.handler.will(Act::Hold(Say::new(200, "charged")));
    let first = one.begin(task());
    one.handler.arrived().await;
    aging.pass(LEASE);
    other.ask(task()).await.is(200);
    assert_eq!(other.letters().await.len(), 1);
    assert_eq!(other.record().await.state, State::Parked);
    (one, first, other)
}

/// The paused gate goes on, and its late word counts.
async fn resumes(one: &Bed, first: JoinHandle<Answer>) {
    one.handler.go();
    first.await.unwrap().is(200);
    assert_eq!(one.record().await.state, State::Succeeded);
}

/// What an operator is told at this path.
async fn operator(bed: &Bed, ask: Ask) -> (u16, Value) {
    let answer = ask.send(bed.admin).await;
    let json = serde_json::from_slice(&answer.body);
    (answer.status, json.unwrap_or_else(|_| panic!("{answer:?}")))
}

async fn redrive(bed: &Bed, id: &str, query: &str) -> (u16, Value) {
    operator(bed, Ask::post(&format!("/letters/{id}/redrive{query}"))).await
}

async fn listed(bed: &Bed) -> Vec<Value> {
    let (status, said) = operator(bed, Ask::get("/letters")).await;
    assert_eq!(status, 200, "{said}");
    said["letters"].as_array().unwrap().clone()
}

/// The one letter in the store.
async fn the_letter(bed: &Bed) -> String {
    let letters = bed.letters().await;
    assert_eq!(letters.len(), 1, "{letters:?}");
    letters[0].id.to_string()
}
