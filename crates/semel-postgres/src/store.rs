//! `PostgresStore`: each operation is its statement.

use crate::claims::Claims;
use crate::connections::Connections;
use crate::retry;
use crate::server::{DurabilitySettings, Session};
use crate::settings::PostgresSettings;
use crate::statement::{FORGET, REDRIVE, RELEASE_BY_OPERATOR, STEP_COMPLETE, STEP_RESTART};
use crate::writes::{self, WriteKind, Writes};
use crate::{index, letters, migrate, operator, pages, ready, steps};
use async_trait::async_trait;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::time::Duration;

/// A store in a PostgreSQL database. See the [crate] for what it needs.
#[derive(Debug)]
pub struct PostgresStore {
    connections: Connections,
    claims: Claims,
    renewals: Writes,
    completions: Writes,
    failures: Writes,
    grace: Duration,
    durability: String,
    durability_settings: DurabilitySettings,
    encryption: &'static str,
}

// === impl PostgresStore ===

impl PostgresStore {
    /// Connects, after bringing the schema up to date if the settings say so.
    ///
    /// ```
    /// use semel::Key;
    /// use semel::store::StoreExt;
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
        let encryption = session.encryption();
        let ready = if settings.migrate {
            migrate::bring_up_to_date(&mut session).await.map(|_| ())
        } else {
            migrate::check(&session).await
        };
        let durability_settings = match ready {
            Ok(()) => DurabilitySettings::read(&session).await,
            Err(error) => Err(error),
        };
        session.close().await;
        let durability_settings = durability_settings?;
        let connections = Connections::new(&settings, &target)?;
        let writes = |kind| Writes::start(kind, &settings, &connections);
        Ok(Self {
            claims: Claims::start(&settings, &connections),
            renewals: writes(WriteKind::Renew),
            completions: writes(WriteKind::Complete),
            failures: writes(WriteKind::Fail),
            connections,
            grace: settings.grace,
            durability,
            durability_settings,
            encryption,
        })
    }

    /// Who else can read what goes to the server and back, in one sentence: whether the first connection had
    /// TLS, and what was checked.
    #[must_use]
    pub fn encryption(&self) -> &str {
        self.encryption
    }

    /// How much a crash of the server can lose, in one sentence.
    #[must_use]
    pub fn durability(&self) -> &str {
        &self.durability
    }

    /// The settings of the server that this follows from, and those that say what a failover can lose.
    #[must_use]
    pub const fn durability_settings(&self) -> &DurabilitySettings {
        &self.durability_settings
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn sharing(&self) -> Sharing {
        Sharing::Shared
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        operation.validate()?;
        let connections = &self.connections;
        match operation {
            Operation::Claim(claim) => self.claims.claim(claim).await.map(Answer::Claimed),
            Operation::Renew { .. } => self.renewals.make(operation).await,
            Operation::Complete { .. } => self.completions.make(operation).await,
            Operation::Fail { .. } => self.failures.make(operation).await,
            Operation::Release { lease, park_after } => {
                writes::release(connections, operation, lease, *park_after).await
            }
            Operation::Look(key) => retry::show(connections, key).await.map(Answer::Looked),
            Operation::StepBegin { .. } => steps::begin(connections, operation).await,
            Operation::StepRestart { .. } => {
                steps::write(connections, operation, &STEP_RESTART).await
            }
            Operation::StepComplete { .. } => {
                steps::write(connections, operation, &STEP_COMPLETE).await
            }
            Operation::Resolve { key, how, by } => {
                operator::resolve(connections, operation, key, (how, by)).await
            }
            Operation::Redrive { key, .. } => {
                operator::act(connections, operation, key, &REDRIVE).await
            }
            Operation::Retain { key, retention } => {
                operator::retain(connections, operation, key, *retention).await
            }
            Operation::ReleaseByOperator { key, .. } => {
                operator::act(connections, operation, key, &RELEASE_BY_OPERATOR).await
            }
            Operation::Forget(key) => operator::act(connections, operation, key, &FORGET).await,
            Operation::Steps(key) => steps::show(connections, key).await.map(Answer::Steps),
            Operation::Index { key, ids, keep } => {
                let kept = index::keep(connections, key, ids, *keep).await;
                kept.map(|()| Answer::Indexed)
            }
            Operation::Find(id) => index::find(connections, id).await.map(Answer::Found),
            Operation::Ready => ready::check(connections).await.map(|()| Answer::Ready),
        }
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
}

#[async_trait]
impl Letters for PostgresStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        letters::put(&self.connections, letter).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        letters::list(&self.connections, after, limit).await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        letters::get(&self.connections, id).await
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        letters::mark(&self.connections, id, mark).await
    }
}
