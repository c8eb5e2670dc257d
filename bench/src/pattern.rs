//! What PostgreSQL is held against: the two statements everybody writes by hand.

use std::sync::Arc;

use anyhow::{Context, bail};
use async_trait::async_trait;
use tokio_postgres::{Client, NoTls, Statement};

use crate::first_run::{body, fresh_key};
use crate::load;
use crate::rounds::{Contender, Pace};

/// As many callers as are asked for, each on a connection of its own.
#[derive(Clone)]
pub(crate) struct Pattern {
    connections: Arc<[Connection]>,
    pub(crate) callers: usize,
}

/// A connection with both statements prepared.
struct Connection {
    client: Client,
    begin: Statement,
    end: Statement,
}

const TABLE: &str =
    "CREATE TABLE once (key bytea PRIMARY KEY, state smallint NOT NULL, result bytea)";
const BEGIN: &str = "INSERT INTO once (key, state) VALUES ($1, 1) ON CONFLICT DO NOTHING";
const END: &str = "UPDATE once SET state = 2, result = $2 WHERE key = $1";

// === impl Pattern ===

impl Pattern {
    /// Makes the table in an empty database and connects for as many callers as there will ever be.
    pub(crate) async fn connect(url: &str, callers: usize) -> anyhow::Result<Self> {
        connect(url).await?.batch_execute(TABLE).await?;
        let mut connections = Vec::with_capacity(callers);
        for _ in 0..callers {
            connections.push(Connection::open(url).await?);
        }
        Ok(Self {
            connections: connections.into(),
            callers,
        })
    }

    /// The same table and connections, used by fewer callers.
    pub(crate) fn with(&self, callers: usize) -> Self {
        Self {
            connections: Arc::clone(&self.connections),
            callers,
        }
    }
}

#[async_trait]
impl Contender for Pattern {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let connections = Arc::clone(&self.connections);
        let run = move |caller: usize| {
            let connections = Arc::clone(&connections);
            async move {
                let connection = connections
                    .get(caller)
                    .context("fewer connections than callers")?;
                connection.first_run().await
            }
        };
        load::rate(self.callers, pace, run).await
    }
}

// === impl Connection ===

impl Connection {
    async fn open(url: &str) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        let begin = client.prepare(BEGIN).await?;
        let end = client.prepare(END).await?;
        Ok(Self { client, begin, end })
    }

    async fn first_run(&self) -> anyhow::Result<u64> {
        let key = fresh_key();
        let key = key.as_bytes().as_slice();
        let begun = self.client.execute(&self.begin, &[&key]).await?;
        let result = body();
        let ended = self
            .client
            .execute(&self.end, &[&key, &result.as_ref()])
            .await?;
        if (begun, ended) != (1, 1) {
            bail!("a fresh key was inserted {begun} times and updated {ended} times");
        }
        Ok(1)
    }
}

/// A plain connection, driven until its client is dropped.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("cannot connect to PostgreSQL")?;
    // What breaks the connection is told to whoever uses the client.
    tokio::spawn(connection);
    Ok(client)
}
