//! `in_doubt = "probe"`: before a run in doubt is repeated, the handler says what became of it.

use crate::support::prelude::*;
use semel::clock::{Clock, ManualClock, SystemClock};
use semel::memory::MemoryStore;
use semel_gate::settings::{PROBE_AFTER, Probe};
use std::ops::Deref;

const LEASE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_millis(200);

/// After that a run acts no more, by the store's clock: its lease, its timeout, and the margins of the gate and the library.
const ACTS: Duration = Duration::from_secs(30 + 1 + 2 + 10);

/// A gate that probes, on a store whose clock the test moves.
pub(crate) struct Probing {
    pub(crate) bed: Bed,
    clock: Arc<ManualClock>,
}

impl Deref for Probing {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

fn probes(route: &mut Route) {
    route.in_doubt = InDoubt::Probe;
    route.probe = Some(Probe {
        method: Method::GET,
        path: "/effects/{key}".into(),
        fences: true,
        after: PROBE_AFTER,
    });
    terms_of(route, |terms| {
        (terms.lease, terms.timeout) = (LEASE, TIMEOUT);
        terms.wait = Duration::ZERO;
    });
}

impl Probing {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(SystemClock::new().wall()));
        let store = Arc::new(Switch::on(MemoryStore::with_clock(
            Arc::<ManualClock>::clone(&clock),
        )));
        let bed = Bed::on(store, Handler::start().await, |settings| {
            probes(&mut settings.routes[0]);
        })
        .await;
        Self { bed, clock }
    }

    /// A gate whose first run ended in doubt, and can act no more.
    pub(crate) async fn in_doubt() -> Self {
        let bed = Self::new().await;
        bed.handler.will(Act::Close);
        bed.task("n").await.is(502);
        bed.handler.arrived().await;
        bed.clock.advance(ACTS);
        bed
    }
}

#[tokio::test]
async fn nobody_asks_before_the_run_can_no_longer_act() {
    let bed = Probing::new().await;
    bed.handler.will(Act::Close);
    bed.task("n").await.is(502);
    bed.clock.advance(ACTS - Duration::from_secs(3));
    bed.task("n").await.is_pause(409, "not-yet");
    assert_eq!(bed.runs(), 1);
    bed.clock.advance(Duration::from_secs(3));
    bed.handler.says(404);
    bed.task("n").await.is(200);
    assert_eq!(bed.runs(), 3);
}

#[tokio::test]
async fn what_happened_is_recorded_and_not_run() {
    let bed = Probing::in_doubt().await;
    bed.handler.answers(Say::new(200, "receipt 1"));
    bed.task("n").await.is(200).says("receipt 1");
    let asked = bed.handler.arrived().await;
    let key = bed.key().await;
    assert_eq!(
        (asked.method.as_str(), asked.path),
        ("GET", format!("/effects/{key}"))
    );
    assert_eq!(bed.record().await.state, State::Succeeded);
    bed.task("n").await.is_replay(200);
    assert_eq!(bed.runs(), 2, "one run and one question");
}

#[tokio::test]
async fn what_did_not_happen_runs_under_the_fence_that_was_asked_with() {
    let bed = Probing::in_doubt().await;
    bed.handler.says(404);
    bed.task("n").await.is(200);
    let (asked, ran) = (bed.handler.arrived().await, bed.handler.arrived().await);
    let fence = |seen: &Seen| {
        let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("semel-fence");
        seen.headers.iter().find(named).unwrap().1.clone()
    };
    assert_eq!(
        (asked.method.as_str(), ran.method.as_str()),
        ("GET", "POST")
    );
    assert_eq!(fence(&asked), fence(&ran));
    assert_eq!(fence(&ran), bed.record().await.fence.to_string());
    assert_eq!(bed.record().await.state, State::Succeeded);
}

#[tokio::test]
async fn as_long_as_nobody_can_say_nothing_is_run() {
    let cannot_say = [429, 502, 503, 504].map(|status| Act::Say(Say::new(status, "later")));
    for act in cannot_say.into_iter().chain([Act::Close, Act::Hang]) {
        let bed = Probing::in_doubt().await;
        bed.handler.will(act);
        bed.task("n").await.is(502);
        let record = bed.record().await;
        assert_eq!(
            (record.state, record.in_doubt, record.doubts),
            (State::Waiting, true, 1)
        );
        bed.task("n").await.is_pause(409, "not-yet");
        assert_eq!(bed.runs(), 2, "one run and one question");
        // The prober asked nothing more: the next one need not wait until it can no longer act.
        bed.clock.advance(Duration::from_secs(6));
        bed.handler.says(404);
        bed.task("n").await.is(200);
        assert_eq!(bed.runs(), 4);
    }
}

#[tokio::test]
async fn an_answer_without_a_meaning_parks_it() {
    for status in [204, 302, 400, 401, 410, 500] {
        let bed = Probing::in_doubt().await;
        bed.handler.says(status);
        bed.task("n").await.is(200);
        assert_eq!(bed.record().await.state, State::Parked);
        assert_eq!(bed.reasons().await, [Reason::Parked]);
        assert_eq!(bed.runs(), 2, "one run and one question");
    }
}

#[tokio::test]
async fn a_redrive_asks_too() {
    let bed = Probing::in_doubt().await;
    bed.handler.says(500);
    bed.task("n").await.is(200);
    let id = bed.letter().await;
    bed.clock.advance(ACTS);
    bed.handler.answers(Say::new(200, "receipt 1"));
    bed.redrive(&id).await.is(200, &json!({"closed": true}));
    assert_eq!(bed.runs(), 3, "one run and two questions");
}

#[tokio::test]
async fn a_prober_that_dies_is_followed_by_the_next() {
    let bed = Probing::in_doubt().await;
    let reply = bed
        .begin_with(Act::Hold(Say::new(404, "")), Sender::Task.sends("n", "{}"))
        .await;
    let handler = Handler::start().await;
    let next = Bed::on(Arc::clone(&bed.store), handler, |settings| {
        probes(&mut settings.routes[0]);
    })
    .await;
    next.task("n").await.is_pause(409, "busy");
    bed.clock.advance(ACTS);
    next.handler.answers(Say::new(200, "receipt 1"));
    next.task("n").await.is(200).says("receipt 1");
    assert_eq!(next.handler.arrived().await.method, "GET");
    assert_eq!(next.runs(), 1);
    reply.abort();
}

#[tokio::test]
async fn an_answer_that_is_not_a_success_is_in_doubt() {
    let bed = Probing::new().await;
    bed.handler.says(500);
    bed.task("n").await.is(500);
    assert!(bed.record().await.in_doubt);
    bed.clock.advance(ACTS);
    bed.handler
        .answers(Say::new(200, "it was charged all the same"));
    bed.task("n").await.is(200);
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn what_is_undone_is_run_again_unasked() {
    let bed = Probing::new().await;
    let bed = {
        let store = Arc::clone(&bed.store);
        Bed::on(store, Handler::start().await, |settings| {
            probes(&mut settings.routes[0]);
            settings.routes[0].undone_statuses = vec![503..=503];
        })
        .await
    };
    bed.handler.says(503);
    bed.task("n").await.is(503);
    bed.handler.arrived().await;
    bed.task("n").await.is(200);
    assert_eq!(bed.handler.arrived().await.method, "POST");
    assert_eq!(bed.runs(), 2);
}
