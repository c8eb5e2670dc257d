//! Work that nobody delivers any more is parked, with an alarm.

use super::{Aging, LEASE, task};
use crate::support::prelude::*;
use semel_gate::settings::Terms;

/// For how long its sender may deliver again.
const HORIZON: Duration = Duration::from_secs(300);

fn outlasts(terms: &mut Terms) {
    terms.horizon = Some(HORIZON);
    terms.deadline = Some(Duration::from_millis(2100));
}

#[tokio::test]
async fn a_run_that_lapsed_is_parked_after_the_horizon_and_not_before() {
    let one = Aging::new().await;
    let often = |settings: &mut Settings| {
        terms_of(&mut settings.routes[0], outlasts);
        settings.reconcile_every = Duration::from_millis(10);
    };
    let gate = one.another(often).await;
    let first = gate.begin_with(Act::Hang, task()).await;
    first.await.unwrap().is_pause(409, "busy");
    assert_eq!(gate.reasons().await, [Reason::Running]);
    one.pass(LEASE);
    one.store.reconciled().await;
    assert_eq!(gate.record().await.state, State::Running);
    one.pass(HORIZON);
    gate.until_counted("semel_abandoned_total{route=\"work\"} 1\n")
        .await;
    let record = gate.record().await;
    assert_eq!(record.state, State::Parked);
    assert_eq!(gate.listed().await[0]["record"], "parked");
}
