//! Claims: one statement for a group, a second one only for keys whose record can be taken over.

use crate::connections::{Connections, Lent, Param};
use crate::patience::Patience;
use crate::settings::PostgresSettings;
use crate::statement::{ClaimStatements, Statement, TAKEOVER};
use crate::trouble::Trouble;
use crate::wire::{self, Id, Raw, Span};
use futures_util::future::join_all;
use semel::batch::{Batcher, Limits, Pending};
use semel::clock::Time;
use semel::record::{self, Claim, Claimed, Fence, InDoubt, Lease, Record, State};
use semel::{Error, Key};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

/// How long a claim tries to learn who came first before it says `busy`.
const RACE_WAIT_MAX: Duration = Duration::from_millis(50);

/// When to ask again about a key that another transaction holds.
const HELD_RETRY_AFTER: Duration = Duration::from_millis(50);

/// Claims, grouped.
#[derive(Debug)]
pub(crate) struct Claims {
    batcher: Batcher<Claim, Asked>,
}

/// The answer to asking once.
#[derive(Debug)]
enum Asked {
    Answered(Claimed),
    /// Somebody else changed the record at the same moment: ask again.
    Raced,
}

/// What a statement showed of a key.
#[derive(Debug)]
enum Shown {
    Granted(Lease),
    Record(Record, Time),
    /// Another transaction held on to it.
    Held,
    Nothing,
}

type Asker = Pending<Claim, Asked>;

#[derive(Debug)]
struct Writer {
    connections: Connections,
    durable: ClaimStatements,
    relaxed: Option<ClaimStatements>,
}

// === impl Claims ===

impl Claims {
    pub(crate) fn start(settings: &PostgresSettings, connections: &Connections) -> Self {
        let writer = Arc::new(Writer {
            connections: connections.clone(),
            durable: ClaimStatements::durable(settings),
            relaxed: settings
                .relaxed_claims
                .then(|| ClaimStatements::relaxed(settings)),
        });
        let limits = Limits {
            lanes: settings.lanes,
            items_max: settings.group_items_max,
        };
        let write = move |group| {
            let writer = Arc::clone(&writer);
            async move { writer.write(group).await }
        };
        Self {
            batcher: Batcher::start(limits, |claim: &Claim| claim.key, write),
        }
    }

    /// Asks to run, and again with the same owner after a lost race.
    pub(crate) async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        let mut patience: Option<Patience> = None;
        loop {
            match self.batcher.submit_here(claim.clone()).await? {
                Asked::Answered(answer) => return Ok(answer),
                Asked::Raced => {
                    let patience = patience.get_or_insert_with(|| Patience::of(RACE_WAIT_MAX));
                    if !patience.pause().await {
                        return Ok(busy());
                    }
                }
            }
        }
    }
}

/// Somebody holds the record in a transaction: as good as running it.
const fn busy() -> Claimed {
    Claimed::Busy {
        retry_after: HELD_RETRY_AFTER,
    }
}

// === impl Writer ===

impl Writer {
    /// Claims a group: what the first statement settles is answered before the second one.
    async fn write(&self, mut group: Vec<Asker>) {
        group.sort_unstable_by_key(|asker| asker.item.key);
        let shown = match self.ask(&group).await {
            Ok(shown) => shown,
            Err(error) => return answer_all(group, &error),
        };
        let mut due = Vec::new();
        for (asker, shown) in group.into_iter().zip(shown) {
            match shown.map(|shown| shown.decide(&asker.item)) {
                Ok(Some(answer)) => asker.answer(Ok(answer)),
                Ok(None) => due.push(asker),
                Err(error) => asker.answer(Err(error)),
            }
        }
        if !due.is_empty() {
            self.take_over(due).await;
        }
    }

    /// Shows every key of the group, in its order; an absent one is granted.
    async fn ask(&self, group: &[Asker]) -> Result<Vec<Result<Shown, Error>>, Error> {
        let statements = self.statements(group);
        let mut lent = self.connections.lend().await?;
        let answer = match group {
            [only] => Ok(vec![only.item.ask(&lent, &statements.one).await]),
            many => ask_many(&lent, &statements.many, many).await,
        };
        let shown = match answer {
            Ok(shown) => shown,
            Err(Trouble::Broken(error)) => {
                lent.discard();
                return Err(error);
            }
            // One key can be to blame for all: a claim in flight that takes long, a deadlock.
            Err(Trouble::Held | Trouble::Again | Trouble::Failed(_)) => {
                let one_by_one = group
                    .iter()
                    .map(|asker| asker.item.ask(&lent, &statements.one_brief));
                join_all(one_by_one).await
            }
        };
        if shown.iter().any(|s| matches!(s, Err(Trouble::Broken(_)))) {
            lent.discard();
        }
        Ok(shown.into_iter().map(Shown::or_trouble).collect())
    }

    /// Claims keys that have a record which may be taken over.
    async fn take_over(&self, mut group: Vec<Asker>) {
        let rows = match self.try_take_over(&group).await {
            Ok(rows) => rows,
            Err(Trouble::Held | Trouble::Again) => Vec::new(),
            Err(Trouble::Failed(error) | Trouble::Broken(error)) => {
                return answer_all(group, &error);
            }
        };
        for row in &rows {
            match find(&group, row, 4) {
                Ok(at) => {
                    let asker = group.remove(at);
                    let answer = asker.item.taken_over(row).map(Asked::Answered);
                    asker.answer(answer);
                }
                Err(error) => return answer_all(group, &error),
            }
        }
        for asker in group {
            asker.answer(Ok(Asked::Raced));
        }
    }

    async fn try_take_over(&self, group: &[Asker]) -> Result<Vec<Row>, Trouble> {
        let columns = Columns::of(group);
        let park: Vec<_> = group.iter().map(|a| wire::parks(a.item.in_doubt)).collect();
        let max: Vec<_> = group
            .iter()
            .map(|a| wire::max_attempts_out(a.item.max_attempts))
            .collect();
        let [keys, fingerprints, owners, leases, retentions] = columns.params();
        let params = [keys, fingerprints, owners, leases, retentions, &park, &max];
        self.connections.query(&TAKEOVER, &params).await
    }

    fn statements(&self, group: &[Asker]) -> &ClaimStatements {
        match &self.relaxed {
            Some(relaxed) if group.iter().all(|a| a.item.in_doubt == InDoubt::Retry) => relaxed,
            Some(_) | None => &self.durable,
        }
    }
}

async fn ask_many(
    lent: &Lent<'_>,
    statement: &Statement,
    group: &[Asker],
) -> Result<Vec<Result<Shown, Trouble>>, Trouble> {
    let columns = Columns::of(group);
    let rows = lent.query(statement, &columns.params()).await?;
    let mut shown: Vec<_> = group.iter().map(|_| Ok(Shown::Nothing)).collect();
    for row in &rows {
        let at = find(group, row, 11).map_err(Trouble::Failed)?;
        if let (Some(slot), Some(asker)) = (shown.get_mut(at), group.get(at)) {
            *slot = asker.item.shown(row).map_err(Trouble::Failed);
        }
    }
    Ok(shown)
}

/// Where the key in a column of the row is in the group, which is sorted.
fn find(group: &[Asker], row: &Row, column: usize) -> Result<usize, Error> {
    let key: Key = wire::key(row, column)?;
    group
        .binary_search_by_key(&key, |asker| asker.item.key)
        .map_err(|_| Error::Bug("PostgreSQL answered for a key that was not asked for".into()))
}

fn answer_all(group: Vec<Asker>, error: &Error) {
    for asker in group {
        asker.answer(Err(error.clone()));
    }
}

// === impl Shown ===

impl Shown {
    /// The answer to the claim; `None` when the record may be taken over.
    fn decide(self, claim: &Claim) -> Option<Asked> {
        match self {
            Self::Granted(lease) => Some(Asked::Answered(Claimed::Granted(lease))),
            Self::Held => Some(Asked::Answered(busy())),
            Self::Nothing => Some(Asked::Raced),
            Self::Record(record, now) => {
                let decision = record::claim(Some(&record), claim, now);
                match decision.write {
                    Some(_) => None,
                    None => Some(Asked::Answered(decision.answer)),
                }
            }
        }
    }

    fn or_trouble(shown: Result<Self, Trouble>) -> Result<Self, Error> {
        match shown {
            Ok(shown) => Ok(shown),
            Err(Trouble::Held) => Ok(Self::Held),
            Err(Trouble::Again) => Ok(Self::Nothing),
            Err(Trouble::Failed(error) | Trouble::Broken(error)) => Err(error),
        }
    }
}

// === what a claim sends and reads ===

/// Asking on its own, and reading what was answered.
trait Ask {
    async fn ask(&self, lent: &Lent<'_>, statement: &Statement) -> Result<Shown, Trouble>;
    fn shown(&self, row: &Row) -> Result<Shown, Error>;
    fn taken_over(&self, row: &Row) -> Result<Claimed, Error>;
    fn granted(&self, fence: Fence, born: Fence, attempt: u32) -> Lease;
}

impl Ask for Claim {
    async fn ask(&self, lent: &Lent<'_>, statement: &Statement) -> Result<Shown, Trouble> {
        let params: [Param<'_>; 5] = [
            &Raw(self.key.as_bytes()),
            &Raw(self.fingerprint.as_bytes()),
            &Id(self.owner),
            &Span(self.lease),
            &Span(self.retention),
        ];
        let rows = lent.query(statement, &params).await?;
        rows.first().map_or(Ok(Shown::Nothing), |row| {
            self.shown(row).map_err(Trouble::Failed)
        })
    }

    fn shown(&self, row: &Row) -> Result<Shown, Error> {
        if wire::get(row, 0)? {
            let (fence, born) = (wire::fence(row, 1)?, wire::fence(row, 2)?);
            let attempt = wire::attempts(row, 3)?;
            return Ok(Shown::Granted(self.granted(fence, born, attempt)));
        }
        let (record, now) = wire::record(row, 1)?;
        Ok(Shown::Record(record, now))
    }

    fn taken_over(&self, row: &Row) -> Result<Claimed, Error> {
        match wire::state(row, 0)? {
            State::Running => Ok(Claimed::Granted(self.granted(
                wire::fence(row, 1)?,
                wire::fence(row, 2)?,
                wire::attempts(row, 3)?,
            ))),
            State::Parked => Ok(Claimed::Parked),
            State::Succeeded | State::Failed | State::Waiting => {
                Err(Error::Bug("a claim settled a record".into()))
            }
        }
    }

    fn granted(&self, fence: Fence, born: Fence, attempt: u32) -> Lease {
        Lease {
            key: self.key,
            owner: self.owner,
            fence,
            born,
            attempt,
        }
    }
}

/// The parameters that every group of claims sends.
struct Columns<'a> {
    keys: Vec<Raw<'a>>,
    fingerprints: Vec<Raw<'a>>,
    owners: Vec<Id>,
    leases: Vec<Span>,
    retentions: Vec<Span>,
}

impl<'a> Columns<'a> {
    fn of(group: &'a [Asker]) -> Self {
        let claims = || group.iter().map(|asker| &asker.item);
        Self {
            keys: claims().map(|c| Raw(c.key.as_bytes())).collect(),
            fingerprints: claims().map(|c| Raw(c.fingerprint.as_bytes())).collect(),
            owners: claims().map(|c| Id(c.owner)).collect(),
            leases: claims().map(|c| Span(c.lease)).collect(),
            retentions: claims().map(|c| Span(c.retention)).collect(),
        }
    }

    fn params(&self) -> [Param<'_>; 5] {
        [
            &self.keys,
            &self.fingerprints,
            &self.owners,
            &self.leases,
            &self.retentions,
        ]
    }
}
