//! Writes under a lease: renew, complete and fail, grouped. A group never waits for a row.

mod kinds;

pub(crate) use kinds::{Completion, Failure, Renewal};

use crate::connections::{Connections, Lent, Param};
use crate::patience::insist;
use crate::settings::PostgresSettings;
use crate::statement::RELEASE;
use crate::trouble::Trouble;
use crate::wire::{self, Id, Raw};
use bytes::Bytes;
use futures_util::future::join_all;
use semel::Error;
use semel::batch::{Batcher, Limits, Pending};
use semel::clock::Time;
use semel::record::{self, Decision, Held, Lease, Record, State};
use semel::store::RESULT_BYTES_MAX;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::Row;

/// How many bytes of results one statement carries at the most.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Writes of one kind, grouped.
#[derive(Debug)]
pub(crate) struct Writes<W: Write> {
    batcher: Batcher<Tried<W>, Option<State>>,
    connections: Connections,
    pooler: bool,
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
    /// Sends a group. The answer has a row, with state and key, for each that was written.
    fn send(group: &[&Self], care: Care, lent: &Lent<'_>) -> impl Future<Output = Rows> + Send;
}

/// How a group treats rows that other transactions hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// It may wait for one as long as the session says, and then fails as a whole.
    MayWait,
    /// It passes them over.
    NeverWaits,
}

pub(crate) type Rows = Result<Vec<Row>, Trouble>;

type Waiting<W> = Pending<Tried<W>, Option<State>>;

// === impl Writes ===

impl<W: Write> Writes<W> {
    pub(crate) fn start(settings: &PostgresSettings, connections: &Connections) -> Self {
        let limits = Limits {
            lanes: settings.lanes,
            items_max: settings.group_items_max,
        };
        let (lanes, pooler) = (connections.clone(), settings.pooler);
        let write = move |group| {
            let connections = lanes.clone();
            async move { write_group(&connections, pooler, group).await }
        };
        let key = |tried: &Tried<W>| tried.write.lease().key;
        Self {
            batcher: Batcher::start(limits, key, write).sparing(),
            connections: connections.clone(),
            pooler,
        }
    }

    /// Makes the write, or says why it is not to be made.
    pub(crate) async fn make(&self, write: W) -> Result<Held, Error> {
        let key = write.lease().key;
        let before = AtomicBool::new(false);
        let attempt = || async {
            let written = self.attempt(&write, before.swap(true, Ordering::Relaxed));
            Ok(written.await?.map(Held::Applied))
        };
        insist(&self.connections, &key, attempt, |record, now| {
            unless_due(write.decide(record, now))
        })
        .await
    }

    /// Makes the write, if its record is there and not held; the state it then has.
    async fn attempt(&self, write: &W, before: bool) -> Result<Option<State>, Error> {
        match self.batcher.alone().await {
            Some(_lane) => self.write_one(write, before).await,
            None => {
                let write = write.clone();
                self.batcher.submit(Tried { write, before }).await
            }
        }
    }

    async fn write_one(&self, write: &W, before: bool) -> Result<Option<State>, Error> {
        let mut lent = self.connections.lend().await?;
        let mut answer = W::send(&[write], Care::of(self.pooler || before), &lent).await;
        if let Err(Trouble::Held | Trouble::Again | Trouble::Failed(_)) = answer {
            answer = W::send(&[write], Care::NeverWaits, &lent).await;
        }
        match answer {
            Ok(rows) => rows.first().map(|row| wire::state(row, 0)).transpose(),
            Err(Trouble::Held | Trouble::Again) => Ok(None),
            Err(Trouble::Failed(error)) => Err(error),
            Err(Trouble::Broken(error)) => {
                lent.discard();
                Err(error)
            }
        }
    }
}

// === impl Care ===

impl Care {
    const fn of(careful: bool) -> Self {
        if careful {
            Self::NeverWaits
        } else {
            Self::MayWait
        }
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

async fn write_group<W: Write>(
    connections: &Connections,
    pooler: bool,
    mut group: Vec<Waiting<W>>,
) {
    group.sort_unstable_by_key(|waiting| waiting.item.write.lease().key);
    for group in by_size(group) {
        let mut lent = match connections.lend().await {
            Ok(lent) => lent,
            Err(trouble) => {
                answer_all(group, &trouble.into());
                continue;
            }
        };
        let tried_before = group.iter().any(|waiting| waiting.item.before);
        let care = Care::of(pooler || tried_before);
        let answer = W::send(&writes(&group), care, &lent).await;
        match answer {
            Err(Trouble::Held | Trouble::Again | Trouble::Failed(_)) => {
                Box::pin(write_carefully(&mut lent, group)).await;
            }
            answer => settle(&mut lent, group, answer),
        }
    }
}

/// After a group failed as a whole: one item can be to blame, and the others are not to suffer.
async fn write_carefully<W: Write>(lent: &mut Lent<'_>, group: Vec<Waiting<W>>) {
    let all = writes(&group);
    let answer = W::send(&all, Care::NeverWaits, lent).await;
    if !matches!(answer, Err(Trouble::Failed(_) | Trouble::Again)) || group.len() == 1 {
        return settle(lent, group, answer);
    }
    let one_by_one = all
        .chunks(1)
        .map(|one| W::send(one, Care::NeverWaits, lent));
    let answers = join_all(one_by_one).await;
    for (waiting, answer) in group.into_iter().zip(answers) {
        settle(lent, vec![waiting], answer);
    }
}

/// Answers a group: written, or not.
fn settle<W: Write>(lent: &mut Lent<'_>, group: Vec<Waiting<W>>, answer: Rows) {
    let rows = match answer {
        Ok(rows) => rows,
        Err(Trouble::Held | Trouble::Again) => Vec::new(),
        Err(Trouble::Failed(error)) => return answer_all(group, &error),
        Err(Trouble::Broken(error)) => {
            lent.discard();
            return answer_all(group, &error);
        }
    };
    match states(&group, &rows) {
        Ok(states) => group
            .into_iter()
            .zip(states)
            .for_each(|(waiting, state)| waiting.answer(Ok(state))),
        Err(error) => answer_all(group, &error),
    }
}

/// The state of each record of the group, which is sorted, after it was written; `None` if it was not.
fn states<W: Write>(group: &[Waiting<W>], rows: &[Row]) -> Result<Vec<Option<State>>, Error> {
    let mut states = vec![None; group.len()];
    for row in rows {
        let (key, state) = (wire::key(row, 1)?, wire::state(row, 0)?);
        let at = group.binary_search_by_key(&key, |waiting| waiting.item.write.lease().key);
        match at.ok().and_then(|at| states.get_mut(at)) {
            Some(slot) => *slot = Some(state),
            None => return Err(Error::Bug("PostgreSQL wrote what was not asked for".into())),
        }
    }
    Ok(states)
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
