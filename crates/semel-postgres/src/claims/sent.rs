//! What a claim sends and reads.

use super::{Asker, Shown};
use crate::connections::{Lent, Param};
use crate::errors::QueryError;
use crate::statement::Statement;
use crate::wire::{self, Id, Raw, Span};
use semel::protocol::{Claim, Claimed, Lease, State};
use semel::{Error, Key};
use tokio_postgres::Row;

/// What a claim by itself sends.
pub(super) struct Params<'a>(Raw<'a>, Raw<'a>, Id, Span, Span, Option<Span>, Raw<'a>);

/// The same of a group.
pub(super) struct Columns<'a> {
    keys: Vec<Raw<'a>>,
    fingerprints: Vec<Raw<'a>>,
    owners: Vec<Id>,
    leases: Vec<Span>,
    retentions: Vec<Span>,
    acts_for: Vec<Option<Span>>,
    labels: Vec<Raw<'a>>,
}

/// Asks for one key.
pub(super) async fn ask_one(
    claim: &Claim,
    lent: &Lent<'_>,
    statement: &Statement,
) -> Result<Shown, QueryError> {
    let params = Params::of(claim);
    let rows = lent
        .query(statement, statement.taken(&params.all()))
        .await?;
    rows.first().map_or(Ok(Shown::Nothing), |row| {
        shown(claim, row).map_err(QueryError::Failed)
    })
}

/// Reads a row of `claim.sql`: key, then the record; a grant has no owner there but the claim's.
pub(super) fn shown(claim: &Claim, row: &Row) -> Result<Shown, Error> {
    if wire::get::<Option<Id>>(row, 5)?.is_none() {
        return fresh(claim, row).map(Shown::Granted);
    }
    let (record, now) = wire::record(row, 1)?;
    Ok(Shown::Record(record, now))
}

/// Reads a row of `claim_fresh.sql`: key and fence.
pub(super) fn fresh(claim: &Claim, row: &Row) -> Result<Lease, Error> {
    let fence = wire::fence(row, 1)?;
    Ok(Lease {
        key: claim.key,
        owner: claim.owner,
        fence,
        born: fence,
        attempt: 1,
        in_doubt: false,
    })
}

/// Reads a row of `takeover.sql`: key, fence, born, attempts, state, in_doubt.
pub(super) fn taken_over(claim: &Claim, row: &Row) -> Result<Claimed, Error> {
    match wire::state(row, 4)? {
        State::Running => Ok(Claimed::Granted(Lease {
            key: claim.key,
            owner: claim.owner,
            fence: wire::fence(row, 1)?,
            born: wire::fence(row, 2)?,
            attempt: wire::count(row, 3)?,
            in_doubt: wire::get(row, 5)?,
        })),
        State::Parked => Ok(Claimed::Parked),
        State::Succeeded | State::Failed | State::Waiting => {
            Err(Error::bug("a claim settled a record"))
        }
    }
}

/// Where the key of a row is in the group, which is sorted.
pub(super) fn find(group: &[Asker], row: &Row) -> Result<usize, Error> {
    let key: Key = wire::key(row, 0)?;
    group
        .binary_search_by_key(&key, |asker| asker.item.key)
        .map_err(|_| Error::bug("PostgreSQL answered for a key that was not asked for"))
}

// === impl Params ===

impl<'a> Params<'a> {
    pub(super) fn of(claim: &'a Claim) -> Self {
        Self(
            Raw(claim.key.as_bytes()),
            Raw(claim.fingerprint.as_bytes()),
            Id(claim.owner),
            Span(claim.lease),
            Span(claim.retention),
            claim.acts_for.map(Span),
            Raw(&claim.label),
        )
    }

    pub(super) fn all(&self) -> [Param<'_>; 7] {
        [
            &self.0, &self.1, &self.2, &self.3, &self.4, &self.5, &self.6,
        ]
    }
}

// === impl Columns ===

impl<'a> Columns<'a> {
    pub(super) fn of(claims: &[&'a Claim]) -> Self {
        let all = || claims.iter();
        Self {
            keys: all().map(|c| Raw(c.key.as_bytes())).collect(),
            fingerprints: all().map(|c| Raw(c.fingerprint.as_bytes())).collect(),
            owners: all().map(|c| Id(c.owner)).collect(),
            leases: all().map(|c| Span(c.lease)).collect(),
            retentions: all().map(|c| Span(c.retention)).collect(),
            acts_for: all().map(|c| c.acts_for.map(Span)).collect(),
            labels: all().map(|c| Raw(&c.label)).collect(),
        }
    }

    pub(super) fn all(&self) -> [Param<'_>; 7] {
        [
            &self.keys,
            &self.fingerprints,
            &self.owners,
            &self.leases,
            &self.retentions,
            &self.acts_for,
            &self.labels,
        ]
    }
}
