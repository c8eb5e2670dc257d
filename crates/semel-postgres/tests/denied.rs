//! A server that is there and does not take the writes: that is told from one that is away, and the same
//! call is taken once somebody has fixed it.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic"
)]

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

    /// What the store says when it does not take the outcome. A connection that was cut, or has not
    /// heard of the change yet, may say something else first.
    async fn denied(&self) -> String {
        let heard = async {
            loop {
                match self.complete().await {
                    Err(error @ Error::Denied(_)) => {
                        assert!(error.source().is_some(), "{error:?}");
                        return error.to_string();
                    }
                    Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
                    other => panic!("not denied: {other:?}"),
                }
            }
        };
        tokio::time::timeout(RECOVERY_MAX, heard).await.unwrap()
    }

    /// The same call, after the repair.
    async fn recorded(&self) {
        let recorded = async {
            loop {
                match self.complete().await {
                    Ok(held) => return held,
                    Err(Error::Denied(_) | Error::Unavailable(_)) => {
                        tokio::task::yield_now().await;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        };
        let held = tokio::time::timeout(RECOVERY_MAX, recorded).await.unwrap();
        assert_eq!(held, Held::Applied(State::Succeeded));
    }
}

const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";

async fn denies(breaks: &str, says: &str, repairs: &str) {
    let world = World::new().await;
    world.say(breaks).await;
    let why = world.denied().await;
    assert!(why.contains(says), "{why}");
    world.say(repairs).await;
    world.recorded().await;
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
