//! Acts of an operator or a keeper on a record. Nothing here waits for a row: a held one is tried again.

use crate::connections::{Connections, Param};
use crate::retry::insist;
use crate::statement::{RESOLVE, RETAIN, Statement};
use crate::wire::{self, Raw, Span};
use bytes::Bytes;
use semel::protocol::{Acted, Answer, Finding, Operation, Resolution, State};
use semel::{Error, Key};
use std::time::Duration;

pub(crate) async fn resolve(
    connections: &Connections,
    operation: &Operation,
    key: &Key,
    (how, by): (&Resolution, &Bytes),
) -> Result<Answer, Error> {
    let (state, result) = match &how.finding {
        Finding::Succeeded(result) => (State::Succeeded, Some(Raw(result))),
        Finding::Failed(result) => (State::Failed, Some(Raw(result))),
        Finding::Retry => (State::Waiting, None),
    };
    let (state, fence) = (i16::from(state.number()), how.fence.map(wire::fence_out));
    let params: [Param<'_>; 5] = [&Raw(key.as_bytes()), &state, &result, &fence, &Raw(by)];
    write(connections, operation, &RESOLVE, &params).await
}

pub(crate) async fn retain(
    connections: &Connections,
    operation: &Operation,
    key: &Key,
    retention: Duration,
) -> Result<Answer, Error> {
    let params: [Param<'_>; 2] = [&Raw(key.as_bytes()), &Span(retention)];
    write(connections, operation, &RETAIN, &params).await
}

/// An act that needs nothing but its key, and who does it where that is kept.
pub(crate) async fn act(
    connections: &Connections,
    operation: &Operation,
    key: &Key,
    statement: &Statement,
) -> Result<Answer, Error> {
    let by = operation.by().map_or(&[][..], |by| by);
    let params: [Param<'_>; 2] = [&Raw(key.as_bytes()), &Raw(by)];
    write(connections, operation, statement, statement.taken(&params)).await
}

async fn write(
    connections: &Connections,
    operation: &Operation,
    statement: &Statement,
    params: &[Param<'_>],
) -> Result<Answer, Error> {
    let attempt = || async {
        let rows = connections.query(statement, params).await?;
        Ok(rows.first().map(|_| Answer::Acted(Acted::Applied)))
    };
    insist(connections, operation, attempt).await
}
