//! Claims: one statement for a group; a second one for keys that turn out to have a record, a third
//! one for records that can be taken over.

mod single;
mod prediction;
mod sent;

use crate::connections::{Connections, Lent, Param};
use crate::errors::QueryError;
use crate::retry::Retries;
use crate::settings::PostgresSettings;
use crate::statement::{ClaimForms, ClaimStatements, Statement, TAKEOVER};
use crate::wire::{self, Raw};
use futures_util::future::join_all;
use prediction::FreshKeys;
use semel::Error;
use semel::clock::Time;
use semel::protocol::{Claim, Claimed, InDoubt, Lease, Operation, Record, decide};
use semel::store::batch::{Batcher, Limits, Pending};
use sent::{Columns, ask_one, find, fresh, shown, taken_over};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

/// How long a claim tries to learn who came first before it says `busy`.
const RACE_WAIT_MAX: Duration = Duration::from_millis(250);

/// When to ask again about a key that another transaction holds.
const HELD_RETRY_AFTER: Duration = Duration::from_millis(50);

/// Claims, grouped.
#[derive(Debug)]
pub(crate) struct Claims {
    batcher: Batcher<Claim, Asked>,
    writer: Arc<Writer>,
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

/// What the lanes share.
#[derive(Debug)]
struct Writer {
    connections: Connections,
    durable: ClaimStatements,
    relaxed: Option<ClaimStatements>,
    fresh_keys: FreshKeys,
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
            // Without a session of its own nothing bounds how long an insert waits.
            fresh_keys: FreshKeys::new(!settings.pooler),
        });
        let limits = Limits {
            lanes: settings.lanes,
            items_max: settings.group_items_max,
        };
        let lanes = Arc::clone(&writer);
        let write = move |group| {
            let writer = Arc::clone(&lanes);
            async move { writer.write(group).await }
        };
        Self {
            batcher: Batcher::start(limits, |claim: &Claim| claim.key, write).sparing(),
            writer,
        }
    }

    /// Asks to run, and again with the same owner after a lost race.
    pub(crate) async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        let mut retries: Option<Retries> = None;
        loop {
            match self.ask(claim).await? {
                Asked::Answered(answer) => return Ok(answer),
                Asked::Raced => {
                    let retries = retries.get_or_insert_with(|| Retries::within(RACE_WAIT_MAX));
                    if !retries.pause().await {
                        return Ok(busy());
                    }
                }
            }
        }
    }

    async fn ask(&self, claim: &Claim) -> Result<Asked, Error> {
        match self.batcher.alone().await {
            Some(_lane) => self.writer.write_one(claim).await,
            None => self.batcher.submit(claim.clone()).await,
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
    /// Claims a group. What a statement settles is answered before the next one.
    async fn write(&self, mut group: Vec<Asker>) {
        group.sort_unstable_by_key(|asker| asker.item.key);
        let known = if self.fresh_keys.are_expected() {
            self.grant_fresh(group).await
        } else {
            group
        };
        if !known.is_empty() {
            // Rarely reached by a first run, so it does not make every future larger.
            Box::pin(self.claim_known(known)).await;
        }
    }

    /// Grants the keys that are absent; whose key is not, is left.
    async fn grant_fresh(&self, group: Vec<Asker>) -> Vec<Asker> {
        let rows = match self.insert(&group).await {
            Ok(rows) => rows,
            // Somebody was changing one of the records: the careful way waits for nobody.
            Err(QueryError::Held | QueryError::Again | QueryError::Failed(_)) => Vec::new(),
            Err(QueryError::Broken(error)) => {
                answer_all(group, &error);
                return Vec::new();
            }
        };
        self.fresh_keys.note(rows.len(), group.len());
        answer_rows(group, &rows, |claim, row| {
            Ok(Claimed::Granted(fresh(claim, row)?))
        })
    }

    async fn insert(&self, group: &[Asker]) -> Result<Vec<Row>, QueryError> {
        let claims = claims(group);
        let columns = Columns::of(&claims);
        let statement = &self.statements(&claims).fresh_many;
        let params = columns.all();
        let params = statement.taken(&params);
        self.connections.query(statement, params).await
    }

    /// Claims keys that have a record, or may have one.
    async fn claim_known(&self, group: Vec<Asker>) {
        let all = group.len();
        let answers = match self.ask(&group).await {
            Ok(answers) => answers,
            Err(error) => return answer_all(group, &error),
        };
        let (mut due, mut granted) = (Vec::new(), 0);
        for (asker, answer) in group.into_iter().zip(answers) {
            granted += usize::from(matches!(answer, Ok(Shown::Granted(_))));
            match answer.map(|shown| shown.decide(&asker.item)) {
                Ok(Some(answer)) => asker.answer(Ok(answer)),
                Ok(None) => due.push(asker),
                Err(error) => asker.answer(Err(error)),
            }
        }
        self.fresh_keys.note(granted, all);
        if !due.is_empty() {
            self.take_over(due).await;
        }
    }

    /// Shows every key of the group, in its order; an absent one is granted.
    async fn ask(&self, group: &[Asker]) -> Result<Vec<Result<Shown, Error>>, Error> {
        let statements = self.statements(&claims(group));
        let mut lent = self.connections.lend().await?;
        let shown = match ask_many(&lent, &statements.many, group).await {
            Ok(shown) => shown,
            Err(QueryError::Broken(error)) => {
                lent.discard();
                return Err(error);
            }
            // One key can be to blame for all: a claim in flight that takes long, a deadlock.
            Err(QueryError::Held | QueryError::Again | QueryError::Failed(_)) => {
                let one_by_one = group
                    .iter()
                    .map(|asker| ask_one(&asker.item, &lent, &statements.one_brief));
                join_all(one_by_one).await
            }
        };
        if shown
            .iter()
            .any(|s| matches!(s, Err(QueryError::Broken(_))))
        {
            lent.discard();
        }
        Ok(shown.into_iter().map(Shown::or_error).collect())
    }

    /// Claims keys that have a record which may be taken over.
    async fn take_over(&self, group: Vec<Asker>) {
        let rows = match self.try_take_over(&claims(&group)).await {
            Ok(rows) => rows,
            Err(QueryError::Held | QueryError::Again) => Vec::new(),
            Err(QueryError::Failed(error) | QueryError::Broken(error)) => {
                return answer_all(group, &error);
            }
        };
        for asker in answer_rows(group, &rows, taken_over) {
            asker.answer(Ok(Asked::Raced));
        }
    }

    async fn try_take_over(&self, claims: &[&Claim]) -> Result<Vec<Row>, QueryError> {
        let columns = Columns::of(claims);
        let all = || claims.iter();
        let policies: Vec<_> = all().map(|c| wire::policy(c.in_doubt)).collect();
        let attempts: Vec<_> = all().map(|c| wire::limit_out(c.max_attempts)).collect();
        let (doubts, doubt_ages): (Vec<_>, Vec<_>) =
            all().map(|c| wire::doubt_limit_out(c.max_in_doubt)).unzip();
        let ages: Vec<_> = all().map(|c| wire::age_out(c.park_after)).collect();
        let by: Vec<_> = all().map(|c| Raw(&c.by)).collect();
        let limits: [Param<'_>; 6] = [&policies, &attempts, &doubts, &doubt_ages, &ages, &by];
        let params = [&columns.all()[..], &limits].concat();
        self.connections.query(&TAKEOVER, &params).await
    }

    fn statements(&self, claims: &[&Claim]) -> &ClaimForms {
        let statements = match &self.relaxed {
            Some(relaxed) if claims.iter().all(|c| c.in_doubt == InDoubt::Retry) => relaxed,
            Some(_) | None => &self.durable,
        };
        statements.of(claims)
    }
}

fn claims(group: &[Asker]) -> Vec<&Claim> {
    group.iter().map(|asker| &asker.item).collect()
}

async fn ask_many(
    lent: &Lent<'_>,
    statement: &Statement,
    group: &[Asker],
) -> Result<Vec<Result<Shown, QueryError>>, QueryError> {
    let claims = claims(group);
    let columns = Columns::of(&claims);
    let rows = lent
        .query(statement, statement.taken(&columns.all()))
        .await?;
    let mut all: Vec<_> = group.iter().map(|_| Ok(Shown::Nothing)).collect();
    for row in &rows {
        let at = find(group, row).map_err(QueryError::Failed)?;
        if let (Some(slot), Some(asker)) = (all.get_mut(at), group.get(at)) {
            *slot = shown(&asker.item, row).map_err(QueryError::Failed);
        }
    }
    Ok(all)
}

/// Answers everybody in the group, which is sorted, who has a row; the others are left, sorted.
fn answer_rows(
    group: Vec<Asker>,
    rows: &[Row],
    read: impl Fn(&Claim, &Row) -> Result<Claimed, Error>,
) -> Vec<Asker> {
    let answers: Result<Vec<_>, Error> = rows
        .iter()
        .map(|row| Ok((find(&group, row)?, row)))
        .collect();
    let mut answers = match answers {
        Ok(answers) => answers,
        Err(error) => {
            answer_all(group, &error);
            return Vec::new();
        }
    };
    answers.sort_unstable_by_key(|(at, _)| *at);
    let mut answers = answers.into_iter().peekable();
    let mut left = Vec::new();
    for (at, asker) in group.into_iter().enumerate() {
        match answers.next_if(|(next, _)| *next == at) {
            Some((_, row)) => {
                let answer = read(&asker.item, row).map(Asked::Answered);
                asker.answer(answer);
            }
            None => left.push(asker),
        }
    }
    left
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
                let claim = Operation::Claim(claim.clone());
                let answer = decide(Some(&record), None, &claim, now).unless_written()?;
                answer.claimed().ok().map(Asked::Answered)
            }
        }
    }

    fn or_error(shown: Result<Self, QueryError>) -> Result<Self, Error> {
        match shown {
            Ok(shown) => Ok(shown),
            Err(QueryError::Held) => Ok(Self::Held),
            Err(QueryError::Again) => Ok(Self::Nothing),
            Err(QueryError::Failed(error) | QueryError::Broken(error)) => Err(error),
        }
    }
}
