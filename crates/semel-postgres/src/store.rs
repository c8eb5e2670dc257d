//! `PostgresStore`: each method is its statement.

use crate::claims::Claims;
use crate::connections::Connections;
use crate::patience;
use crate::server::Session;
use crate::settings::PostgresSettings;
use crate::writes::{self, Completion, Failure, Renewal, Writes, validate_result};
use crate::{letters, migrate, operator, pages, ready, steps};
use async_trait::async_trait;
use bytes::Bytes;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::record::{
    Acted, Claim, Claimed, Fail, Held, Lease, Record, Resolution, State, StepBegun,
};
use semel::store::{Cursor, Page, Sharing, Swept, validate_lease, validate_step_name};
use semel::{Error, Key, Store};
use std::time::Duration;

/// A store in a PostgreSQL database. See the [crate] for what it needs.
#[derive(Debug)]
pub struct PostgresStore {
    connections: Connections,
    claims: Claims,
    renewals: Writes<Renewal>,
    completions: Writes<Completion>,
    failures: Writes<Failure>,
    grace: Duration,
    durability: String,
}

// === impl PostgresStore ===

impl PostgresStore {
    /// Connects, after bringing the schema up to date if the settings say so.
    ///
    /// ```
    /// use semel::{Key, Store};
    /// use semel_postgres::{PostgresSettings, PostgresStore};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let url = testbed::fresh_database("connect").unwrap();
    /// let store = PostgresStore::connect(PostgresSettings::new(url)).await.unwrap();
    /// assert_eq!(store.look(&Key::from_bytes([1; 32])).await.unwrap(), None);
    /// # });
    /// ```
    ///
    /// # Errors
    /// `Invalid` when a setting is wrong, here or on the server, or the schema is not the one this
    /// build was made for; `Unavailable` when the server cannot be asked.
    pub async fn connect(settings: PostgresSettings) -> Result<Self, Error> {
        let target = settings.target()?;
        let mut session = Session::open(&target, settings.connect_timeout).await?;
        let durability = session.check().await?;
        let ready = if settings.migrate {
            migrate::bring_up_to_date(&mut session).await.map(|_| ())
        } else {
            migrate::check(&session).await
        };
        session.close().await;
        ready?;
        let connections = Connections::new(&settings, &target)?;
        Ok(Self {
            claims: Claims::start(&settings, &connections),
            renewals: Writes::start(&settings, &connections),
            completions: Writes::start(&settings, &connections),
            failures: Writes::start(&settings, &connections),
            connections,
            grace: settings.grace,
            durability,
        })
    }

    /// How much a crash of the server can lose, in one sentence.
    #[must_use]
    pub fn durability(&self) -> &str {
        &self.durability
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn sharing(&self) -> Sharing {
        Sharing::Shared
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        claim.validate()?;
        self.claims.claim(claim).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        validate_lease(lease_for, retention)?;
        let renewal = Renewal {
            lease: lease.clone(),
            lease_for,
            retention,
        };
        self.renewals.make(renewal).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        validate_result("the outcome", result)?;
        let completion = Completion {
            lease: lease.clone(),
            result: result.clone(),
            retention,
        };
        self.completions.make(completion).await
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        validate_result("the outcome", &how.result)?;
        let failure = Failure {
            lease: lease.clone(),
            how: how.clone(),
        };
        self.failures.make(failure).await
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        writes::release(&self.connections, lease).await
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        let found = patience::look(&self.connections, key).await?;
        Ok(found.and_then(|(record, now)| (!record.expired(now)).then_some(record)))
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        validate_step_name(name)?;
        steps::begin(&self.connections, lease, name).await
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        validate_step_name(name)?;
        steps::restart(&self.connections, lease, name).await
    }

    async fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> Result<Held, Error> {
        validate_step_name(name)?;
        validate_result("the step's result", result)?;
        steps::complete(&self.connections, lease, name, result).await
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        operator::resolve(&self.connections, key, how).await
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        operator::redrive(&self.connections, key).await
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        operator::release(&self.connections, key).await
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        operator::forget(&self.connections, key).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        pages::list(&self.connections, state, after, limit).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        if after.is_none() {
            letters::sweep(&self.connections).await?;
        }
        pages::sweep(&self.connections, self.grace, after).await
    }

    async fn ready(&self) -> Result<(), Error> {
        ready::check(&self.connections).await
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        letters::put(&self.connections, letter).await
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
        letters::list(&self.connections, after, limit).await
    }

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        letters::get(&self.connections, id).await
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        letters::mark(&self.connections, id, mark).await
    }
}
