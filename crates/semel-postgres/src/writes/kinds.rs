//! The kinds of write under a lease: what each sends, and what a record says of it.

use super::{Care, Rows, Write};
use crate::connections::{Lent, Param};
use crate::statement::{COMPLETE, COMPLETE_BATCH, COMPLETE_CAREFUL, FAIL_BATCH, RENEW_BATCH};
use crate::wire::{self, Id, Raw, Span};
use bytes::Bytes;
use semel::clock::Time;
use semel::record::{self, Decision, Fail, FailKind, Held, Lease, Record};
use std::time::Duration;

/// A lease to prolong.
#[derive(Clone, Debug)]
pub(crate) struct Renewal {
    pub(crate) lease: Lease,
    pub(crate) lease_for: Duration,
    pub(crate) retention: Duration,
}

/// A success to record.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) lease: Lease,
    pub(crate) result: Bytes,
    pub(crate) retention: Duration,
}

/// A failure to record.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) lease: Lease,
    pub(crate) how: Fail,
}

/// The parameters that every group of writes sends.
struct Leases<'a> {
    keys: Vec<Raw<'a>>,
    fences: Vec<i64>,
    owners: Vec<Id>,
}

impl<'a> Leases<'a> {
    fn of<W: Write>(group: &[&'a W]) -> Self {
        let leases = || group.iter().map(|write| write.lease());
        Self {
            keys: leases().map(|lease| Raw(lease.key.as_bytes())).collect(),
            fences: leases().map(|l| wire::fence_out(l.fence)).collect(),
            owners: leases().map(|lease| Id(lease.owner)).collect(),
        }
    }

    fn params(&self) -> Columns<'_> {
        (&self.keys, &self.fences, &self.owners)
    }
}

type Columns<'a> = (Param<'a>, Param<'a>, Param<'a>);

impl Write for Renewal {
    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn bytes(&self) -> usize {
        0
    }

    fn decide(&self, record: Option<&Record>, now: Time) -> Decision<Held> {
        record::renew(record, &self.lease, self.lease_for, self.retention, now)
    }

    async fn send(group: &[&Self], _care: Care, lent: &Lent<'_>) -> Rows {
        let leases = Leases::of(group);
        let spans: Vec<_> = group.iter().map(|w| Span(w.lease_for)).collect();
        let retentions: Vec<_> = group.iter().map(|w| Span(w.retention)).collect();
        let (keys, fences, owners) = leases.params();
        let params = [keys, fences, owners, &spans, &retentions];
        lent.query(&RENEW_BATCH, &params).await
    }
}

impl Write for Completion {
    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn bytes(&self) -> usize {
        self.result.len()
    }

    fn decide(&self, record: Option<&Record>, now: Time) -> Decision<Held> {
        record::complete(record, &self.lease, &self.result, self.retention, now)
    }

    async fn send(group: &[&Self], care: Care, lent: &Lent<'_>) -> Rows {
        if let ([only], Care::MayWait) = (group, care) {
            return only.send_alone(lent).await;
        }
        let leases = Leases::of(group);
        let results: Vec<_> = group.iter().map(|w| Raw(&w.result)).collect();
        let retentions: Vec<_> = group.iter().map(|w| Span(w.retention)).collect();
        let (keys, fences, owners) = leases.params();
        let params = [keys, fences, owners, &results, &retentions];
        let statement = match care {
            Care::MayWait => &COMPLETE_BATCH,
            Care::NeverWaits => &COMPLETE_CAREFUL,
        };
        lent.query(statement, &params).await
    }
}

impl Completion {
    /// The statement for one, which is what a lone caller is measured by.
    async fn send_alone(&self, lent: &Lent<'_>) -> Rows {
        let params: [Param<'_>; 5] = [
            &Raw(self.lease.key.as_bytes()),
            &wire::fence_out(self.lease.fence),
            &Id(self.lease.owner),
            &Raw(&self.result),
            &Span(self.retention),
        ];
        lent.query(&COMPLETE, &params).await
    }
}

impl Write for Failure {
    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn bytes(&self) -> usize {
        self.how.result.len()
    }

    fn decide(&self, record: Option<&Record>, now: Time) -> Decision<Held> {
        record::fail(record, &self.lease, &self.how, now)
    }

    async fn send(group: &[&Self], _care: Care, lent: &Lent<'_>) -> Rows {
        let leases = Leases::of(group);
        let hows = || group.iter().map(|write| &write.how);
        let (kinds, delays): (Vec<i32>, Vec<Span>) = hows().map(|how| kind(how.kind)).unzip();
        let park: Vec<_> = hows().map(|how| wire::parks(how.in_doubt)).collect();
        let max: Vec<_> = hows()
            .map(|how| wire::max_attempts_out(how.max_attempts))
            .collect();
        let retentions: Vec<_> = hows().map(|how| Span(how.retention)).collect();
        let results: Vec<_> = hows().map(|how| Raw(&how.result)).collect();
        let (keys, fences, owners) = leases.params();
        let params: [Param<'_>; 9] = [
            keys,
            fences,
            owners,
            &kinds,
            &park,
            &max,
            &delays,
            &retentions,
            &results,
        ];
        lent.query(&FAIL_BATCH, &params).await
    }
}

/// The kind of a failure as a number, and its delay.
const fn kind(kind: FailKind) -> (i32, Span) {
    match kind {
        FailKind::Final => (1, Span(Duration::ZERO)),
        FailKind::Retryable { delay } => (2, Span(delay)),
        FailKind::InDoubt { delay } => (3, Span(delay)),
    }
}
