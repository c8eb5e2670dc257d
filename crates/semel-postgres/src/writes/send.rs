//! What each kind of write sends: one statement for a group.

use super::{Care, Rows, WriteKind};
use crate::connections::{Lent, Param};
use crate::errors::QueryError;
use crate::statement::{COMPLETE, COMPLETE_BATCH, COMPLETE_CAREFUL, FAIL_BATCH, RENEW_BATCH};
use crate::wire::{self, Id, Raw, Span};
use bytes::Bytes;
use semel::Error;
use semel::protocol::{FailKind, Lease, Operation};
use std::time::Duration;

/// The parameters that every group of writes sends.
#[derive(Default)]
struct Leases<'a> {
    keys: Vec<Raw<'a>>,
    fences: Vec<i64>,
    owners: Vec<Id>,
}

// === impl WriteKind ===

impl WriteKind {
    /// Sends a group of this kind. The answer has a row, with state and key, for each that was written.
    pub(super) async fn send(self, group: &[&Operation], care: Care, lent: &Lent<'_>) -> Rows {
        match self {
            Self::Renew => renew(group, lent).await,
            Self::Complete => match (group, care) {
                ([only], Care::MayWait) => complete_alone(only, lent).await,
                (_, Care::MayWait) => complete(group, lent, &COMPLETE_BATCH).await,
                (_, Care::NeverWaits) => complete(group, lent, &COMPLETE_CAREFUL).await,
            },
            Self::Fail => fail(group, lent).await,
        }
    }
}

async fn renew(group: &[&Operation], lent: &Lent<'_>) -> Rows {
    let (mut leases, mut spans, mut retentions) = (Leases::default(), vec![], vec![]);
    for operation in group {
        let Operation::Renew {
            lease,
            lease_for,
            retention,
        } = operation
        else {
            return Err(mixed_up());
        };
        leases.push(lease);
        spans.push(Span(*lease_for));
        retentions.push(Span(*retention));
    }
    let [keys, fences, owners] = leases.params();
    let params = [keys, fences, owners, &spans, &retentions];
    lent.query(&RENEW_BATCH, &params).await
}

async fn complete(
    group: &[&Operation],
    lent: &Lent<'_>,
    statement: &crate::statement::Statement,
) -> Rows {
    let (mut leases, mut results, mut retentions) = (Leases::default(), vec![], vec![]);
    for operation in group {
        let (lease, result, retention) = completion(operation)?;
        leases.push(lease);
        results.push(Raw(result));
        retentions.push(Span(retention));
    }
    let [keys, fences, owners] = leases.params();
    let params = [keys, fences, owners, &results, &retentions];
    lent.query(statement, &params).await
}

/// The statement for one, which is what a lone caller is measured by.
async fn complete_alone(operation: &Operation, lent: &Lent<'_>) -> Rows {
    let (lease, result, retention) = completion(operation)?;
    let params: [Param<'_>; 5] = [
        &Raw(lease.key.as_bytes()),
        &wire::fence_out(lease.fence),
        &Id(lease.owner),
        &Raw(result),
        &Span(retention),
    ];
    lent.query(&COMPLETE, &params).await
}

fn completion(operation: &Operation) -> Result<(&Lease, &Bytes, Duration), QueryError> {
    let Operation::Complete {
        lease,
        result,
        retention,
    } = operation
    else {
        return Err(mixed_up());
    };
    Ok((lease, result, *retention))
}

async fn fail(group: &[&Operation], lent: &Lent<'_>) -> Rows {
    let mut leases = Leases::default();
    let (mut kinds, mut policies) = (vec![], vec![]);
    let (mut attempts, mut doubts, mut doubt_ages, mut ages) = (vec![], vec![], vec![], vec![]);
    let (mut delays, mut retentions, mut results) = (vec![], vec![], vec![]);
    for operation in group {
        let Operation::Fail { lease, how } = operation else {
            return Err(mixed_up());
        };
        let (kind, delay) = kind(how.kind);
        leases.push(lease);
        kinds.push(kind);
        policies.push(wire::policy(how.in_doubt));
        attempts.push(wire::limit_out(how.max_attempts));
        let (doubt, doubt_age) = wire::doubt_limit_out(how.max_in_doubt);
        doubts.push(doubt);
        doubt_ages.push(doubt_age);
        ages.push(wire::age_out(how.park_after));
        delays.push(delay);
        retentions.push(Span(how.retention));
        results.push(Raw(&how.result));
    }
    let [keys, fences, owners] = leases.params();
    let params: [Param<'_>; 12] = [
        keys,
        fences,
        owners,
        &kinds,
        &policies,
        &attempts,
        &doubts,
        &doubt_ages,
        &ages,
        &delays,
        &retentions,
        &results,
    ];
    lent.query(&FAIL_BATCH, &params).await
}

/// The kind of a failure as a number, and its delay.
const fn kind(kind: FailKind) -> (i32, Span) {
    match kind {
        FailKind::Final => (1, Span(Duration::ZERO)),
        FailKind::Retryable { delay } => (2, Span(delay)),
        FailKind::InDoubt { delay } => (3, Span(delay)),
        FailKind::StillInDoubt { delay } => (4, Span(delay)),
    }
}

fn mixed_up() -> QueryError {
    QueryError::Failed(Error::bug("a write came to a group of another kind"))
}

// === impl Leases ===

impl<'a> Leases<'a> {
    fn push(&mut self, lease: &'a Lease) {
        self.keys.push(Raw(lease.key.as_bytes()));
        self.fences.push(wire::fence_out(lease.fence));
        self.owners.push(Id(lease.owner));
    }

    fn params(&self) -> [Param<'_>; 3] {
        [&self.keys, &self.fences, &self.owners]
    }
}
