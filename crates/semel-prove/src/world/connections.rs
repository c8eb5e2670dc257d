//! Speaks to the real servers, never through a proxy: for `before` and for probes.

use crate::world::command::with_timeout;
use crate::world::protocol::reads;
use crate::world::sqlite::Access;
use redis::aio::MultiplexedConnection;
use std::collections::BTreeMap;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Connections by URL, kept for the whole run.
#[derive(Default)]
pub(crate) struct Connections {
    databases: BTreeMap<String, tokio_postgres::Client>,
    caches: BTreeMap<String, MultiplexedConnection>,
}

/// Rows of text.
pub(crate) type Rows = Vec<Vec<String>>;

// === impl Connections ===

impl Connections {
    /// Statements on PostgreSQL.
    pub(crate) async fn sql(
        &mut self,
        url: &str,
        sql: &str,
        access: Access,
    ) -> Result<Rows, String> {
        let client = self.database(url).await?;
        let answer = match access {
            Access::Change => say(client, sql).await?,
            Access::Read => {
                say(client, "BEGIN TRANSACTION READ ONLY").await?;
                let answer = say(client, sql).await;
                say(client, "ROLLBACK").await?;
                answer?
            }
        };
        let rows = answer.iter().filter_map(|message| {
            let SimpleQueryMessage::Row(row) = message else {
                return None;
            };
            let columns = (0..row.len()).map(|at| row.get(at).unwrap_or_default());
            Some(columns.map(str::to_owned).collect())
        });
        Ok(rows.collect())
    }

    /// A command on Redis that changes nothing.
    pub(crate) async fn redis_read<T: redis::FromRedisValue>(
        &mut self,
        url: &str,
        command: &[&str],
    ) -> Result<T, String> {
        let name = command.first().copied().unwrap_or_default();
        if !reads(name) {
            return Err(format!("a probe may only read, and `{name}` may write"));
        }
        self.redis(url, command).await
    }

    /// A command on Redis.
    pub(crate) async fn redis<T: redis::FromRedisValue>(
        &mut self,
        url: &str,
        command: &[impl AsRef<str>],
    ) -> Result<T, String> {
        let (name, arguments) = command.split_first().ok_or("the Redis command is empty")?;
        let connection = self.cache(url).await?;
        let mut command = redis::cmd(name.as_ref());
        for argument in arguments {
            command.arg(argument.as_ref());
        }
        let answer = with_timeout(command.query_async(connection)).await?;
        answer.map_err(|why: redis::RedisError| why.to_string())
    }

    async fn database(&mut self, url: &str) -> Result<&tokio_postgres::Client, String> {
        self.databases.retain(|_, client| !client.is_closed());
        if !self.databases.contains_key(url) {
            let connected = with_timeout(tokio_postgres::connect(url, NoTls)).await?;
            let (client, connection) = connected
                .map_err(|why| format!("{}: {}", host_and_port(url), server_message(&why)))?;
            tokio::spawn(async move {
                // Its error shows at the next query.
                connection.await.ok();
            });
            self.databases.insert(url.to_owned(), client);
        }
        let client = self.databases.get(url);
        client.ok_or_else(|| "the connection is gone".to_owned())
    }

    async fn cache(&mut self, url: &str) -> Result<&mut MultiplexedConnection, String> {
        if !self.caches.contains_key(url) {
            let client = redis::Client::open(url).map_err(|why| why.to_string())?;
            let connected = with_timeout(client.get_multiplexed_async_connection()).await?;
            let connection = connected.map_err(|why| format!("{}: {why}", host_and_port(url)))?;
            self.caches.insert(url.to_owned(), connection);
        }
        let connection = self.caches.get_mut(url);
        connection.ok_or_else(|| "the connection is gone".to_owned())
    }
}

async fn say(
    client: &tokio_postgres::Client,
    sql: &str,
) -> Result<Vec<SimpleQueryMessage>, String> {
    let answer = with_timeout(client.simple_query(sql)).await?;
    answer.map_err(|why| server_message(&why))
}

/// Host and port of a server, without its password.
fn host_and_port(url: &str) -> String {
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| {
        let port = url.port().map(|port| format!(":{port}"));
        Some(format!("{}{}", url.host_str()?, port.unwrap_or_default()))
    });
    host.unwrap_or_else(|| "the server".to_owned())
}

/// The server's own words, or the system's; the driver's alone say only "db error".
fn server_message(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error);
    match (error.as_db_error(), cause) {
        (Some(said), _) => said.message().to_owned(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn probe_writes_nothing_to_redis() {
        let url = testbed::redis_url().unwrap();
        let mut connections = Connections::default();
        let key = format!("read-only-{}", std::process::id());
        let write = ["SET", &key, "1"];
        let written = connections.redis_read::<String>(&url, &write).await;
        let said = written.unwrap_err();
        assert!(said.contains("may only read"), "{said}");
        let read = ["EXISTS", &key];
        assert_eq!(connections.redis_read(&url, &read).await, Ok(0_u8));
    }

    #[tokio::test]
    async fn probe_writes_nothing_to_postgres_and_its_connection_stays_good() {
        let url = testbed::fresh_database("prove").unwrap();
        let mut connections = Connections::default();
        let mut sql = async |sql, access| connections.sql(&url, sql, access).await;
        sql("CREATE TABLE t (n int)", Access::Change).await.unwrap();
        let refused = sql("INSERT INTO t VALUES (1)", Access::Read).await;
        let said = refused.unwrap_err();
        assert!(said.contains("read-only transaction"), "{said}");
        let count = sql("SELECT count(*) FROM t", Access::Read).await;
        assert_eq!(count, Ok(vec![vec!["0".to_owned()]]));
    }
}
