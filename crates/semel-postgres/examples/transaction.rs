//! Effect and record in one transaction: both commit, or neither does. This is the exactly-once form.
//!
//! `DATABASE_URL=postgres://… cargo run -p semel-postgres --example transaction`

use semel::work::Completes;
use semel::{Ended, Failure, Fingerprint, Key, Outcome, Run, Semel, Work};
use semel_postgres::{PostgresSettings, PostgresStore, complete_in};
use std::error::Error;
use tokio_postgres::{Client, NoTls};

type Anything = Box<dyn Error + Send + Sync>;

async fn connect(url: &str) -> Result<Client, Anything> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Takes one piece from the stock, and says so in the record of the run, last before COMMIT.
async fn reserve(run: &Run, url: &str) -> Result<Outcome, Anything> {
    let mut client = connect(url).await?;
    let outcome = Outcome::ok("reserved");
    let transaction = client.transaction().await?;
    transaction
        .execute("UPDATE stock SET pieces = pieces - 1", &[])
        .await?;
    complete_in(&transaction, run.lease(), &outcome).await?;
    transaction.commit().await?;
    Ok(outcome)
}

pub(crate) async fn reserve_twice(url: &str) -> Result<(), Anything> {
    let client = connect(url).await?;
    client
        .batch_execute("CREATE TABLE stock (pieces int); INSERT INTO stock VALUES (10)")
        .await?;
    let semel = Semel::new(PostgresStore::connect(PostgresSettings::new(url)).await?);
    let order = || {
        let work = Work::new(Key::from_bytes([7; 32]), Fingerprint::of(b"order 7"));
        work.completes(Completes::Handler)
    };
    let effect = || {
        let url = url.to_owned();
        move |run: Run| async move {
            let reserved = reserve(&run, &url).await;
            reserved.map_err(|error| Failure::retryable(error.to_string()))
        }
    };

    assert!(matches!(semel.run(order(), effect()).await?, Ended::Ran(_)));
    assert!(matches!(
        semel.run(order(), effect()).await?,
        Ended::Replayed(_)
    ));
    let left: i32 = client
        .query_one("SELECT pieces FROM stock", &[])
        .await?
        .get(0);
    assert_eq!(left, 9);
    Ok(())
}

#[tokio::main]
#[allow(dead_code, reason = "the test has a database of its own")]
#[allow(clippy::disallowed_methods, reason = "a program reads its environment")]
async fn main() -> Result<(), Anything> {
    reserve_twice(&std::env::var("DATABASE_URL")?).await
}
