//! What an operator does to a record. Nothing here waits for a row: a held one is tried again.

use crate::connections::{Connections, Param};
use crate::patience::insist;
use crate::statement::{FORGET, REDRIVE, RELEASE_BY_OPERATOR, RESOLVE, Statement};
use crate::wire::{self, Raw};
use crate::writes::unless_due;
use semel::clock::Time;
use semel::record::{self, Acted, Decision, Finding, Record, Resolution, State};
use semel::{Error, Key};

pub(crate) async fn resolve(
    connections: &Connections,
    key: &Key,
    how: &Resolution,
) -> Result<Acted, Error> {
    let (decision, result) = match &how.finding {
        Finding::Succeeded(result) => (State::Succeeded, Some(Raw(result))),
        Finding::Failed(result) => (State::Failed, Some(Raw(result))),
        Finding::Retry => (State::Waiting, None),
    };
    let fence = how.fence.map(wire::fence_out);
    let decision = i16::from(decision.number());
    act(
        connections,
        key,
        &RESOLVE,
        &[&decision, &result, &fence],
        |record, now| record::resolve(record, how, now),
    )
    .await
}

pub(crate) async fn redrive(connections: &Connections, key: &Key) -> Result<Acted, Error> {
    act(connections, key, &REDRIVE, &[], record::redrive).await
}

pub(crate) async fn release(connections: &Connections, key: &Key) -> Result<Acted, Error> {
    let decide = record::release_by_operator;
    act(connections, key, &RELEASE_BY_OPERATOR, &[], decide).await
}

pub(crate) async fn forget(connections: &Connections, key: &Key) -> Result<Acted, Error> {
    act(connections, key, &FORGET, &[], record::forget).await
}

async fn act(
    connections: &Connections,
    key: &Key,
    statement: &Statement,
    more: &[Param<'_>],
    decide: impl Fn(Option<&Record>, Time) -> Decision<Acted>,
) -> Result<Acted, Error> {
    let about = Raw(key.as_bytes());
    let mut params: Vec<Param<'_>> = vec![&about];
    params.extend_from_slice(more);
    let params = params.as_slice();
    let attempt = || async {
        let rows = connections.query(statement, params).await?;
        Ok(rows.first().map(|_| Acted::Applied))
    };
    insist(connections, key, attempt, |record, now| {
        unless_due(decide(record, now))
    })
    .await
}
