//! Writes under a lease: renew, complete and fail, grouped. A group never waits for a row.

mod send;

use crate::connections::{Connections, Lent, Param};
use crate::errors::QueryError;
use crate::retry::insist;
use crate::settings::PostgresSettings;
use crate::statement::RELEASE;
use crate::wire::{self, Id, Raw};
use futures_util::future::join_all;
use semel::protocol::{Answer, Held, Lease, Operation, State};
use semel::store::batch::{Batcher, Limits, Pending};
use semel::{Error, Key};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_postgres::Row;

/// How many bytes of results one statement carries at the most.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Writes of one kind, grouped.
#[derive(Debug)]
pub(crate) struct Writes {
    kind: WriteKind,
    batcher: Batcher<Tried, Option<State>>,
    connections: Connections,
    pooler: bool,
}

/// The operations that are grouped, each kind with its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Renew,
    Complete,
    Fail,
}

/// A write, and whether it found its record held before.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    write: Operation,
    before: bool,
}

/// How a group treats rows that other transactions hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    /// It may wait for one as long as the session says, and then fails as a whole.
    MayWait,
    /// It passes them over.
    NeverWaits,
}

type Rows = Result<Vec<Row>, QueryError>;

type Waiting = Pending<Tried, Option<State>>;

// === impl Writes ===

impl Writes {
    pub(crate) fn start(
        kind: WriteKind,
        settings: &PostgresSettings,
        connections: &Connections,
    ) -> Self {
        let limits = Limits {
            lanes: settings.lanes,
            items_max: settings.group_items_max,
        };
        let (lanes, pooler) = (connections.clone(), settings.pooler);
        let write = move |group| {
            let connections = lanes.clone();
            async move { write_group(kind, &connections, pooler, group).await }
        };
        Self {
            kind,
            batcher: Batcher::start(limits, Tried::key, write).sparing(),
            connections: connections.clone(),
            pooler,
        }
    }

    /// Makes the write, or says why it is not to be made.
    pub(crate) async fn make(&self, write: &Operation) -> Result<Answer, Error> {
        let before = AtomicBool::new(false);
        let attempt = || async {
            let written = self.attempt(write, before.swap(true, Ordering::Relaxed));
            Ok(written.await?.map(applied))
        };
        insist(&self.connections, write, attempt).await
    }

    /// Makes the write, if its record is there and not held; the state it then has.
    async fn attempt(&self, write: &Operation, before: bool) -> Result<Option<State>, Error> {
        match self.batcher.alone().await {
            Some(_lane) => self.write_one(write, before).await,
            None => {
                let write = write.clone();
                self.batcher.submit(Tried { write, before }).await
            }
        }
    }

    async fn write_one(&self, write: &Operation, before: bool) -> Result<Option<State>, Error> {
        let mut lent = self.connections.lend().await?;
        let care = Care::of(self.pooler || before);
        let mut answer = self.kind.send(&[write], care, &lent).await;
        if let Err(QueryError::Held | QueryError::Again | QueryError::Failed(_)) = answer {
            answer = self.kind.send(&[write], Care::NeverWaits, &lent).await;
        }
        match answer {
            Ok(rows) => rows.first().map(|row| wire::state(row, 0)).transpose(),
            Err(QueryError::Held | QueryError::Again) => Ok(None),
            Err(QueryError::Failed(error)) => Err(error),
            Err(QueryError::Broken(error)) => {
                lent.discard();
                Err(error)
            }
        }
    }
}

/// The answer to a write that was made.
const fn applied(state: State) -> Answer {
    Answer::Held(Held::Applied(state))
}

/// Gives up a lease under which nothing was begun.
pub(crate) async fn release(
    connections: &Connections,
    operation: &Operation,
    lease: &Lease,
    park_after: Option<Duration>,
) -> Result<Answer, Error> {
    let attempt = || async {
        let params: [Param<'_>; 4] = [
            &Raw(lease.key.as_bytes()),
            &wire::fence_out(lease.fence),
            &Id(lease.owner),
            &wire::age_out(park_after),
        ];
        let rows = connections.query(&RELEASE, &params).await?;
        let state = rows.first().map(|row| wire::state(row, 0)).transpose()?;
        Ok(state.map(applied))
    };
    insist(connections, operation, attempt).await
}

// === impl Tried ===

impl Tried {
    fn key(&self) -> Option<Key> {
        self.write.key().copied()
    }

    /// How many bytes it carries.
    fn bytes(&self) -> usize {
        self.write.result().map_or(0, |result| result.len())
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

async fn write_group(
    kind: WriteKind,
    connections: &Connections,
    pooler: bool,
    mut group: Vec<Waiting>,
) {
    group.sort_unstable_by_key(|waiting| waiting.item.key());
    for group in by_size(group) {
        let mut lent = match connections.lend().await {
            Ok(lent) => lent,
            Err(error) => {
                answer_all(group, &error.into());
                continue;
            }
        };
        let tried_before = group.iter().any(|waiting| waiting.item.before);
        let care = Care::of(pooler || tried_before);
        let answer = kind.send(&writes(&group), care, &lent).await;
        match answer {
            Err(QueryError::Held | QueryError::Again | QueryError::Failed(_)) => {
                Box::pin(write_carefully(kind, &mut lent, group)).await;
            }
            answer => settle(&mut lent, group, answer),
        }
    }
}

/// After a group failed as a whole: one item can be to blame, and the others are not to suffer.
async fn write_carefully(kind: WriteKind, lent: &mut Lent<'_>, group: Vec<Waiting>) {
    let all = writes(&group);
    let answer = kind.send(&all, Care::NeverWaits, lent).await;
    if !matches!(answer, Err(QueryError::Failed(_) | QueryError::Again)) || group.len() == 1 {
        return settle(lent, group, answer);
    }
    let one_by_one = all
        .chunks(1)
        .map(|one| kind.send(one, Care::NeverWaits, lent));
    let answers = join_all(one_by_one).await;
    for (waiting, answer) in group.into_iter().zip(answers) {
        settle(lent, vec![waiting], answer);
    }
}

/// Answers a group: written, or not.
fn settle(lent: &mut Lent<'_>, group: Vec<Waiting>, answer: Rows) {
    let rows = match answer {
        Ok(rows) => rows,
        Err(QueryError::Held | QueryError::Again) => Vec::new(),
        Err(QueryError::Failed(error)) => return answer_all(group, &error),
        Err(QueryError::Broken(error)) => {
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
fn states(group: &[Waiting], rows: &[Row]) -> Result<Vec<Option<State>>, Error> {
    let mut states = vec![None; group.len()];
    for row in rows {
        let (key, state) = (wire::key(row, 1)?, wire::state(row, 0)?);
        let at = group.binary_search_by_key(&Some(key), |waiting| waiting.item.key());
        match at.ok().and_then(|at| states.get_mut(at)) {
            Some(slot) => *slot = Some(state),
            None => return Err(Error::bug("PostgreSQL wrote what was not asked for")),
        }
    }
    Ok(states)
}

/// The group in parts that one statement can carry.
fn by_size(group: Vec<Waiting>) -> Vec<Vec<Waiting>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = 0;
    for waiting in group {
        bytes += waiting.item.bytes();
        match parts.last_mut() {
            Some(part) if part.is_empty() || bytes <= GROUP_BYTES_MAX => part.push(waiting),
            Some(_) | None => {
                bytes = waiting.item.bytes();
                parts.push(vec![waiting]);
            }
        }
    }
    parts
}

fn writes(group: &[Waiting]) -> Vec<&Operation> {
    group.iter().map(|waiting| &waiting.item.write).collect()
}

fn answer_all(group: Vec<Waiting>, error: &Error) {
    for waiting in group {
        waiting.answer(Err(error.clone()));
    }
}
