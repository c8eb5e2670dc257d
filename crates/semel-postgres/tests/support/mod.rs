//! A store on a database of its own, and a second connection to look behind it.
#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic"
)]

use semel::protocol::{Claim, Claimed, Held, Lease, Owner, Settled, State};
use semel::store::StoreExt;
use semel::{Fingerprint, Key, Outcome, Store};
use semel_postgres::{PostgresSettings, PostgresStore};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const RETENTION: Duration = Duration::from_secs(3600);

/// A store and the database it is in.
pub(crate) struct Bed {
    pub(crate) url: String,
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) sql: Client,
}

impl Bed {
    /// A store with the default settings in a new database.
    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, |_| {}).await
    }

    /// The same with settings changed.
    pub(crate) async fn with(name: &str, change: impl FnOnce(&mut PostgresSettings)) -> Self {
        let url = testbed::fresh_database(name).unwrap();
        Self::at(&url, &url, change).await
    }

    /// A store that is reached by `url`, in the database at `direct`.
    pub(crate) async fn at(
        url: &str,
        direct: &str,
        change: impl FnOnce(&mut PostgresSettings),
    ) -> Self {
        let mut settings = PostgresSettings::new(url);
        change(&mut settings);
        let store = Arc::new(PostgresStore::connect(settings).await.unwrap());
        Self {
            url: direct.to_owned(),
            store,
            sql: connect(direct).await,
        }
    }

    /// A run of its own.
    pub(crate) async fn lease(&self) -> Lease {
        self.grant(&claim()).await
    }

    /// The run of a claim that must be granted.
    pub(crate) async fn grant(&self, claim: &Claim) -> Lease {
        granted(self.store.claim(claim).await.unwrap())
    }

    /// A duplicate by another owner hears the recorded end.
    pub(crate) async fn replays(&self, claim: &Claim) -> Settled {
        match self.store.claim(&by_another(claim)).await.unwrap() {
            Claimed::Replayed(settled) => settled,
            other => panic!("not replayed: {other:?}"),
        }
    }

    /// Success, which must be recorded.
    pub(crate) async fn complete(&self, lease: &Lease) {
        let result = Outcome::ok("done").encode();
        let held = self.store.complete(lease, &result, RETENTION).await;
        assert_eq!(held, Ok(Held::Applied(State::Succeeded)));
    }

    /// Where the work of a run stands.
    pub(crate) async fn state(&self, lease: &Lease) -> State {
        self.store.look(&lease.key).await.unwrap().unwrap().state
    }

    /// Statements without an answer.
    pub(crate) async fn execute(&self, statements: &str) {
        self.sql.batch_execute(statements).await.unwrap();
    }

    /// Sweeps to the end.
    pub(crate) async fn sweep(&self) {
        let mut after = None;
        loop {
            after = self.store.sweep(after.as_ref()).await.unwrap().next;
            if after.is_none() {
                return;
            }
        }
    }

    /// Until a session of this database waits for a lock.
    pub(crate) async fn until_somebody_waits(&self) {
        let waits = "SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                     WHERE NOT l.granted AND a.datname = current_database())";
        while !self.ask::<bool>(waits).await {
            tokio::task::yield_now().await;
        }
    }

    /// One value.
    pub(crate) async fn ask<T>(&self, sql: &str) -> T
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        self.sql.query_one(sql, &[]).await.unwrap().get(0)
    }
}

/// A store at this address, with the default settings.
pub(crate) async fn store_at(url: &str) -> PostgresStore {
    let settings = PostgresSettings::new(url);
    PostgresStore::connect(settings).await.unwrap()
}

/// A connection of a handler, an operator or a nosy test.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A claim of a key of its own.
#[allow(
    clippy::disallowed_methods,
    reason = "a key of its own in a database that others use"
)]
pub(crate) fn claim() -> Claim {
    Claim {
        lease: LEASE,
        retention: RETENTION,
        ..Claim::new(Key::from_bytes(rand::random()), Fingerprint::of(b"payload"))
    }
}

/// The same claim by another owner.
pub(crate) fn by_another(claim: &Claim) -> Claim {
    Claim {
        owner: Owner::random(),
        ..claim.clone()
    }
}

/// The text must contain each of these words.
#[track_caller]
pub(crate) fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// The lease of a claim that was granted.
pub(crate) fn granted(claimed: Claimed) -> Lease {
    match claimed {
        Claimed::Granted(lease) => lease,
        other => panic!("not granted: {other:?}"),
    }
}

/// Makes every record look `by` older, and its renewals and the tombstones of letters with it.
pub(crate) async fn age(sql: &Client, by: Duration) {
    let older = |table: &str| {
        format!(
            "UPDATE semel.{table} SET lease_until = lease_until - interval '{us} us', \
             expires_at = expires_at - interval '{us} us';",
            us = by.as_micros()
        )
    };
    let tombstones = format!(
        "UPDATE semel.letter SET expires_at = expires_at - interval '{} us' WHERE expires_at IS NOT NULL",
        by.as_micros()
    );
    let acts = format!(
        "UPDATE semel.rec SET acts_until = acts_until - interval '{us} us', \
         doubted_at = doubted_at - interval '{us} us' \
         WHERE acts_until IS NOT NULL OR doubted_at IS NOT NULL;",
        us = by.as_micros()
    );
    let index = format!(
        ";UPDATE semel.transport SET expires_at = expires_at - interval '{} us'",
        by.as_micros()
    );
    let all = older("rec") + &acts + &older("renewal") + &tombstones + &index;
    sql.batch_execute(&all).await.unwrap();
}
