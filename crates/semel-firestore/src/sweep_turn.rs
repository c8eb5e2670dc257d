//! Whose turn it is to sweep: each sweep reads every document, and reads are billed, so one is enough for all who share the
//! collections. One document says so. While a sweep is under way it is a lease, renewed with every window, which says how
//! far the sweep has come: whoever dies leaves the rest to the next. Once all is swept, it says when the next is due.

use crate::client::{Client, Failure};
use crate::index::until_fields;
use crate::names::{Collection, SWEEP};
use crate::proto::Document;
use crate::sweep::place;
use crate::turn::Turns;
use crate::value::{Reader, bytes, string};
use crate::writes::{Version, replace};
use semel::Error;
use semel::clock::Time;
use semel::protocol::Owner;
use semel::store::Cursor;
use std::sync::Mutex;
use std::time::Duration;

/// How long a sweep that is under way stays ours without a word.
const LEASE: Duration = Duration::from_secs(10 * 60);

/// How long what was read is believed: somebody may remove the document to have a sweep at once.
const BELIEVED: Duration = Duration::from_secs(60 * 60);

/// Whose turn it is to sweep.
#[derive(Debug)]
pub(crate) struct SweepTurn {
    every: Duration,
    /// Who we are to the others.
    owner: String,
    /// Until when nobody need look.
    rests_until: Mutex<Option<Time>>,
}

/// What somebody who would begin a sweep hears.
#[derive(Debug)]
pub(crate) enum Begin {
    /// It is not our turn.
    NotYet,
    /// It is, from here on.
    From(Option<Cursor>),
}

/// What the document says.
#[derive(Debug)]
struct Said {
    until: Time,
    owner: Option<String>,
    /// How far a sweep has come that is under way; empty is nowhere, and none says that it is done.
    reached: Option<Cursor>,
}

// === impl SweepTurn ===

impl SweepTurn {
    pub(crate) fn new(every: Duration) -> Self {
        Self {
            every,
            owner: Owner::random().to_string(),
            rests_until: Mutex::new(None),
        }
    }

    /// Whether sweeps are made by turns at all.
    pub(crate) const fn is_shared(&self) -> bool {
        !self.every.is_zero()
    }

    /// Begins a sweep, or goes on with one that was left, if that is ours to do now.
    pub(crate) async fn begin(&self, client: &Client, timeout: Duration) -> Result<Begin, Error> {
        if let (Some(until), Some(now)) = (self.rests_until(), client.clock.now())
            && now < until
        {
            return Ok(Begin::NotYet);
        }
        let mut turns = Turns::new(client, timeout);
        loop {
            match self.try_begin(client, &mut turns).await {
                Ok(begin) => return Ok(begin),
                Err(failure) => turns.after(failure).await?,
            }
        }
    }

    async fn try_begin(&self, client: &Client, turns: &mut Turns<'_>) -> Result<Begin, Failure> {
        let (said, version, now) = self.read(client, turns).await?;
        let waits = |said: &&Said| now < said.until && !self.is_under_way_here(said);
        if let Some(said) = said.as_ref().filter(waits) {
            self.rest(said.until.min(now.plus(BELIEVED)));
            return Ok(Begin::NotYet);
        }
        let reached = said.and_then(|it| it.reached);
        // A place that makes no sense is none.
        let reached = reached.filter(|it| place(client, Some(it)).is_ok());
        self.write(client, reached.as_ref(), version, now, turns)
            .await?;
        Ok(Begin::From(reached))
    }

    /// Keeps the sweep ours, and says how far it has come. False if somebody else has taken it meanwhile.
    pub(crate) async fn reach(
        &self,
        client: &Client,
        reached: &Cursor,
        timeout: Duration,
    ) -> Result<bool, Error> {
        self.note(client, Some(reached), timeout).await
    }

    /// Everything is swept.
    pub(crate) async fn finish(&self, client: &Client, timeout: Duration) -> Result<(), Error> {
        self.note(client, None, timeout).await.map(drop)
    }

    async fn note(
        &self,
        client: &Client,
        reached: Option<&Cursor>,
        timeout: Duration,
    ) -> Result<bool, Error> {
        let mut turns = Turns::new(client, timeout);
        loop {
            match self.try_note(client, reached, &mut turns).await {
                Ok(ours) => return Ok(ours),
                Err(failure) => turns.after(failure).await?,
            }
        }
    }

    async fn try_note(
        &self,
        client: &Client,
        reached: Option<&Cursor>,
        turns: &mut Turns<'_>,
    ) -> Result<bool, Failure> {
        let (said, version, now) = self.read(client, turns).await?;
        let is_anothers = |said: Said| said.owner.as_ref() != Some(&self.owner);
        if said.is_some_and(is_anothers) {
            return Ok(false);
        }
        match reached {
            Some(_) => self.write(client, reached, version, now, turns).await?,
            None => self.write_done(client, version, now, turns).await?,
        }
        Ok(true)
    }

    /// What the document says, as far as it can be: somebody else may have written it.
    async fn read(
        &self,
        client: &Client,
        turns: &mut Turns<'_>,
    ) -> Result<(Option<Said>, Option<Version>, Time), Failure> {
        let seen = client.read(vec![name(client)], turns.within()).await?;
        let found = seen.documents.into_iter().next().flatten();
        let said = found.as_ref();
        let said = said.and_then(|it| client.foreign.pass_over(&it.name, Said::read(it)));
        // Nobody writes a later one.
        let latest = seen.now.plus(self.every.max(LEASE));
        let said = said.filter(|it| it.until <= latest);
        Ok((said, found.and_then(|it| it.update_time), seen.now))
    }

    /// Our sweep has come so far.
    async fn write(
        &self,
        client: &Client,
        reached: Option<&Cursor>,
        version: Option<Version>,
        now: Time,
        turns: &mut Turns<'_>,
    ) -> Result<(), Failure> {
        let mut fields = until_fields(now.plus(LEASE));
        fields.insert("owner".into(), string(&self.owner));
        let reached = reached.map(|it| it.0.clone()).unwrap_or_default();
        fields.insert("reached".into(), bytes(reached));
        let writes = vec![replace(name(client), fields, version)];
        client.commit(writes, turns.within()).await?;
        Ok(())
    }

    /// The next one is due a while from now.
    async fn write_done(
        &self,
        client: &Client,
        version: Option<Version>,
        now: Time,
        turns: &mut Turns<'_>,
    ) -> Result<(), Failure> {
        let due = now.plus(self.every);
        let mut fields = until_fields(due);
        fields.insert("owner".into(), string(&self.owner));
        let writes = vec![replace(name(client), fields, version)];
        client.commit(writes, turns.within()).await?;
        self.rest(due.min(now.plus(BELIEVED)));
        Ok(())
    }

    /// One that we began ourselves, whether or not we heard so.
    fn is_under_way_here(&self, said: &Said) -> bool {
        said.reached.is_some() && said.owner.as_ref() == Some(&self.owner)
    }

    fn rests_until(&self) -> Option<Time> {
        *self
            .rests_until
            .lock()
            .expect("no holder of this lock panics")
    }

    fn rest(&self, until: Time) {
        *self
            .rests_until
            .lock()
            .expect("no holder of this lock panics") = Some(until);
    }
}

fn name(client: &Client) -> String {
    client.names.document(Collection::Index, SWEEP)
}

// === impl Said ===

impl Said {
    fn read(document: &Document) -> Result<Self, Error> {
        let reader = Reader { document };
        Ok(Self {
            until: reader.time("expires_at")?,
            owner: reader.string_or_none("owner")?.map(str::to_owned),
            reached: reader.bytes_or_none("reached")?.map(Cursor),
        })
    }
}
