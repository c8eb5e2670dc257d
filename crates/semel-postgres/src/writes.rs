//! Writes under a lease: renew, complete and fail, grouped. A group never waits for a row.

use crate::connections::{Connections, Lent, Param};
use crate::patience::insist;
use crate::settings::PostgresSettings;
use crate::statement::{COMPLETE, COMPLETE_BATCH, FAIL_BATCH, RELEASE, RENEW_BATCH};
use crate::trouble::Trouble;
use crate::wire::{self, Id, Raw, Span};
use bytes::Bytes;
use futures_util::future::join_all;
use semel::Error;
use semel::batch::{Batcher, Limits, Pending};
use semel::clock::Time;
use semel::record::{self, Decision, Fail, FailKind, Held, Lease, Record, State};
use semel::store::RESULT_BYTES_MAX;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_postgres::Row;

/// How many bytes of results one statement carries at the most.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Writes of one kind, grouped.
#[derive(Debug)]
pub(crate) struct Writes<W: Write> {
    batcher: Batcher<Tried<W>, Option<State>>,
    connections: Connections,
}

/// A write, and whether it found its record held before.
#[derive(Clone, Debug)]
pub(crate) struct Tried<W> {
    write: W,
    before: bool,
}

/// A kind of write under a lease.
pub(crate) trait Write: Clone + fmt::Debug + Send + Sync + 'static {
    /// Under which lease.
    fn lease(&self) -> &Lease;
    /// How many bytes it carries.
    fn bytes(&self) -> usize;
    /// What the record says of it.
    fn decide(&self, record: Option<&Record>, now: Time) -> Decision<Held>;
    /// Sends a group that never waits for a row. The answer has a row, with state and key, for each
    /// that was written.
    fn send_all(group: &[&Self], lent: &Lent<'_>) -> impl Future<Output = Rows> + Send;
    /// Sends it alone, which may wait for its row for a moment.
    fn send(&self, lent: &Lent<'_>) -> impl Future<Output = Rows> + Send;
}

pub(crate) type Rows = Result<Vec<Row>, Trouble>;

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

type Waiting<W> = Pending<Tried<W>, Option<State>>;

// === impl Writes ===

impl<W: Write> Writes<W> {
    pub(crate) fn start(settings: &PostgresSettings, connections: &Connections) -> Self {
        let limits = Limits {
            lanes: settings.lanes,
            items_max: settings.group_items_max,
        };
        let (inner, pooler) = (connections.clone(), settings.pooler);
        let write = move |group| {
            let connections = inner.clone();
            async move { write_group(&connections, pooler, group).await }
        };
        let key = |tried: &Tried<W>| tried.write.lease().key;
        Self {
            batcher: Batcher::start(limits, key, write),
            connections: connections.clone(),
        }
    }

    /// Makes the write, or says why it is not to be made.
    pub(crate) async fn make(&self, write: W) -> Result<Held, Error> {
        let key = write.lease().key;
        let before = AtomicBool::new(false);
        let attempt = || async {
            let tried = Tried {
                write: write.clone(),
                before: before.swap(true, Ordering::Relaxed),
            };
            let written = self.batcher.submit_here(tried).await?;
            Ok(written.map(Held::Applied))
        };
        insist(&self.connections, &key, attempt, |record, now| {
            unless_due(write.decide(record, now))
        })
        .await
    }
}

/// The answer, unless the write should have been made.
pub(crate) fn unless_due<A>(decision: Decision<A>) -> Option<A> {
    match decision.write {
        Some(_) => None,
        None => Some(decision.answer),
    }
}

/// Gives the right to run back.
pub(crate) async fn release(connections: &Connections, lease: &Lease) -> Result<Held, Error> {
    let attempt = || async {
        let params: [Param<'_>; 3] = [
            &Raw(lease.key.as_bytes()),
            &wire::fence_out(lease.fence),
            &Id(lease.owner),
        ];
        let rows = connections.query(&RELEASE, &params).await?;
        let state = rows.first().map(|row| wire::state(row, 0)).transpose()?;
        Ok(state.map(Held::Applied))
    };
    insist(connections, &lease.key, attempt, |record, now| {
        unless_due(record::release(record, lease, now))
    })
    .await
}

/// Whether a result can be kept.
pub(crate) fn validate_result(what: &str, result: &Bytes) -> Result<(), Error> {
    if result.len() > RESULT_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "{what} has {} bytes, the limit is {RESULT_BYTES_MAX}; nothing was written, keep less \
             of it before you retry",
            result.len()
        )));
    }
    Ok(())
}

async fn write_group<W: Write>(connections: &Connections, pooler: bool, group: Vec<Waiting<W>>) {
    for group in by_size(group) {
        let mut lent = match connections.lend().await {
            Ok(lent) => lent,
            Err(trouble) => {
                answer_all(group, &trouble.into());
                continue;
            }
        };
        let answer = match group.as_slice() {
            // A session bounds the wait for a row; behind a pooler, or after a first try, nobody waits.
            [only] if !pooler && !only.item.before => only.item.write.send(&lent).await,
            many => W::send_all(&writes(many), &lent).await,
        };
        match answer {
            Err(Trouble::Held | Trouble::Again | Trouble::Failed(_)) if group.len() > 1 => {
                write_one_by_one(&mut lent, group).await;
            }
            answer => settle(&mut lent, group, answer),
        }
    }
}

/// After a group failed: one item can be to blame, and the others are not to suffer.
async fn write_one_by_one<W: Write>(lent: &mut Lent<'_>, group: Vec<Waiting<W>>) {
    let all = writes(&group);
    let sent = all.chunks(1).map(|one| W::send_all(one, lent));
    let answers = join_all(sent).await;
    for (waiting, answer) in group.into_iter().zip(answers) {
        settle(lent, vec![waiting], answer);
    }
}

/// Answers a group: written, or not.
fn settle<W: Write>(lent: &mut Lent<'_>, mut group: Vec<Waiting<W>>, answer: Rows) {
    let rows = match answer {
        Ok(rows) => rows,
        Err(Trouble::Held | Trouble::Again) => Vec::new(),
        Err(Trouble::Failed(error)) => return answer_all(group, &error),
        Err(Trouble::Broken(error)) => {
            lent.discard();
            return answer_all(group, &error);
        }
    };
    let mut written = HashMap::with_capacity(rows.len());
    for row in &rows {
        match wire::key(row, 1).and_then(|key| Ok((key, wire::state(row, 0)?))) {
            Ok((key, state)) => written.insert(key, state),
            Err(error) => return answer_all(group, &error),
        };
    }
    for waiting in group.drain(..) {
        let state = written.get(&waiting.item.write.lease().key).copied();
        waiting.answer(Ok(state));
    }
}

/// The group in parts that one statement can carry.
fn by_size<W: Write>(group: Vec<Waiting<W>>) -> Vec<Vec<Waiting<W>>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = 0;
    for waiting in group {
        bytes += waiting.item.write.bytes();
        match parts.last_mut() {
            Some(part) if part.is_empty() || bytes <= GROUP_BYTES_MAX => part.push(waiting),
            Some(_) | None => {
                bytes = waiting.item.write.bytes();
                parts.push(vec![waiting]);
            }
        }
    }
    parts
}

fn writes<W>(group: &[Waiting<W>]) -> Vec<&W> {
    group.iter().map(|waiting| &waiting.item.write).collect()
}

fn answer_all<W>(group: Vec<Waiting<W>>, error: &Error) {
    for waiting in group {
        waiting.answer(Err(error.clone()));
    }
}

// === the kinds of write ===

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

    async fn send_all(group: &[&Self], lent: &Lent<'_>) -> Rows {
        let leases = Leases::of(group);
        let spans: Vec<_> = group.iter().map(|w| Span(w.lease_for)).collect();
        let retentions: Vec<_> = group.iter().map(|w| Span(w.retention)).collect();
        let (keys, fences, owners) = leases.params();
        let params = [keys, fences, owners, &spans, &retentions];
        lent.query(&RENEW_BATCH, &params).await
    }

    async fn send(&self, lent: &Lent<'_>) -> Rows {
        Self::send_all(&[self], lent).await
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

    async fn send_all(group: &[&Self], lent: &Lent<'_>) -> Rows {
        let leases = Leases::of(group);
        let results: Vec<_> = group.iter().map(|w| Raw(&w.result)).collect();
        let retentions: Vec<_> = group.iter().map(|w| Span(w.retention)).collect();
        let (keys, fences, owners) = leases.params();
        let params = [keys, fences, owners, &results, &retentions];
        lent.query(&COMPLETE_BATCH, &params).await
    }

    async fn send(&self, lent: &Lent<'_>) -> Rows {
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

    async fn send_all(group: &[&Self], lent: &Lent<'_>) -> Rows {
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

    async fn send(&self, lent: &Lent<'_>) -> Rows {
        Self::send_all(&[self], lent).await
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
