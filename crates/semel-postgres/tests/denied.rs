//! A server that is there and does not take the writes: that is told from one that is away, and the same
//! call is taken once somebody has fixed it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use semel::protocol::{Held, Lease, State};
use semel::store::StoreExt;
use semel::{Error, Outcome};
use semel_postgres::{PostgresSettings, PostgresStore};
use std::error::Error as _;
use std::time::Duration;
use support::{RETENTION, claim, connect, granted};
use testbed::Postgres;
use tokio_postgres::Client;

/// The longest pause between two attempts to connect, and a slow machine.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// A store of a user without special rights, and a superuser beside it.
struct World {
    _postgres: Postgres,
    store: PostgresStore,
    sql: Client,
    lease: Lease,
}

impl World {
    async fn new() -> Self {
        let postgres = Postgres::start().unwrap();
        let url = postgres.create_database("shop").unwrap();
        let sql = connect(&url).await;
        sql.batch_execute("CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE shop TO app")
            .await
            .unwrap();
        let settings = PostgresSettings::new(url.replace("postgres@", "app@"));
        let store = PostgresStore::connect(settings).await.unwrap();
        let lease = granted(store.claim(&claim()).await.unwrap());
        Self {
            _postgres: postgres,
            store,
            sql,
            lease,
        }
    }

    async fn say(&self, statements: &str) {
        for statement in statements.split("; ") {
            self.sql.batch_execute(statement).await.unwrap();
        }
    }

    async fn complete(&self) -> Result<Held, Error> {
        let result = Outcome::ok("done").encode();
        self.store.complete(&self.lease, &result, RETENTION).await
    }

    /// What the store says to the outcome, as soon as it says nothing of these. A connection that was cut, or has not
    /// heard of the change yet, may say something else first.
    async fn complete_past(&self, passing: fn(&Error) -> bool) -> Result<Held, Error> {
        let heard = async {
            loop {
                match self.complete().await {
                    Err(error) if passing(&error) => tokio::task::yield_now().await,
                    answer => return answer,
                }
            }
        };
        tokio::time::timeout(RECOVERY_MAX, heard).await.unwrap()
    }
}

const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";

async fn denies(breaks: &str, says: &str, repairs: &str) {
    let world = World::new().await;
    world.say(breaks).await;
    let away = |error: &Error| matches!(error, Error::Unavailable(_));
    let error = world.complete_past(away).await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "not denied: {error:?}");
    assert!(error.source().is_some(), "{error:?}");
    assert!(error.to_string().contains(says), "{error}");
    world.say(repairs).await;
    let broken = |error: &Error| matches!(error, Error::Denied(_) | Error::Unavailable(_));
    let held = world.complete_past(broken).await;
    assert_eq!(held, Ok(Held::Applied(State::Succeeded)));
}

#[tokio::test]
async fn user_who_may_not_log_in_is_denied() {
    denies(
        &format!("ALTER ROLE app NOLOGIN; {CUT}"),
        "28000",
        "ALTER ROLE app LOGIN",
    )
    .await;
}

#[tokio::test]
async fn right_that_is_missing_is_denied() {
    denies(
        "REVOKE UPDATE ON semel.rec FROM app",
        "grant the right",
        "GRANT UPDATE ON semel.rec TO app",
    )
    .await;
}

#[tokio::test]
async fn table_that_is_missing_is_denied() {
    denies(
        "ALTER TABLE semel.rec RENAME TO gone",
        "run `semel migrate`",
        "ALTER TABLE semel.gone RENAME TO rec",
    )
    .await;
}

#[tokio::test]
async fn server_that_is_read_only_is_denied() {
    denies(
        &format!("ALTER DATABASE shop SET default_transaction_read_only = on; {CUT}"),
        "25006",
        "SET default_transaction_read_only = off; ALTER DATABASE shop SET default_transaction_read_only = off",
    )
    .await;
}
