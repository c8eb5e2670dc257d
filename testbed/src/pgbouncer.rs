//! A private PgBouncer in front of a PostgreSQL server.

use std::path::Path;

use anyhow::Context;
use semel_rig::Signal;

use crate::command::{User, run, tool, tool_as};
use crate::packages;
use crate::server::Server;

/// A PgBouncer of our own that pools by transaction: each transaction may land on another connection.
#[derive(Debug)]
pub struct PgBouncer {
    server: Server,
    port: u16,
    database: String,
}

// === impl PgBouncer ===

impl PgBouncer {
    /// Starts a PgBouncer for every database of the server at `postgres_url`, as
    /// [`Postgres::url`](crate::Postgres::url) writes it.
    ///
    /// # Errors
    /// When the URL is not of that shape, PgBouncer is not installed, or does not answer within 30 seconds; also
    /// when PostgreSQL does not.
    pub fn start(postgres_url: &str) -> anyhow::Result<Self> {
        let (postgres_port, database) = port_and_database(postgres_url).with_context(|| {
            format!("`{postgres_url}` is not of the shape postgres://postgres@127.0.0.1:port/name")
        })?;
        let program = packages::pgbouncer()?;
        let user = User::for_server()?;
        // It has no children, and what a gentler signal means changes between its versions.
        let mut server = Server::new("pgbouncer", Signal::KILL, user)?;
        let port = server.launch_on_free_port(|server, port| {
            launch(server, &program, user, (port, postgres_port), database)
        })?;
        Ok(Self {
            server,
            port,
            database: database.to_owned(),
        })
    }

    /// The URL of the database it was started for.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.database)
    }

    /// The URL of another database of the same server.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The process id; none when it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Ends it at once; every connection through it breaks.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.server.end_at_once()
    }
}

fn port_and_database(postgres_url: &str) -> Option<(u16, &str)> {
    let (port, database) = postgres_url
        .strip_prefix("postgres://postgres@127.0.0.1:")?
        .split_once('/')?;
    Some((port.parse().ok()?, database))
}

fn launch(
    server: &mut Server,
    program: &Path,
    user: Option<User>,
    (port, postgres_port): (u16, u16),
    database: &str,
) -> anyhow::Result<()> {
    let dir = server.dir().to_owned();
    std::fs::write(dir.join("users"), "\"postgres\" \"\"\n")
        .context("cannot write PgBouncer's users")?;
    std::fs::write(dir.join("pgbouncer.ini"), config(&dir, port, postgres_port))
        .context("cannot write pgbouncer.ini")?;
    let psql = packages::postgres_bin()?.join("psql");
    let mut pgbouncer = tool_as(user, program);
    pgbouncer.arg("pgbouncer.ini");
    // Asked through the socket in our own directory: whoever answers there is ours.
    server.launch(pgbouncer, |_pid| {
        let mut question = tool(&psql);
        question
            .args(["--no-psqlrc", "--quiet", "--command=select 1"])
            .args(["--username=postgres", "--dbname", database])
            .arg(format!("--port={port}"))
            .arg("--host")
            .arg(&dir);
        run(&mut question).is_ok()
    })
}

/// `extra_float_digits` is sent by some clients at the start and means nothing to a pool.
fn config(dir: &Path, port: u16, postgres_port: u16) -> String {
    let dir = dir.display();
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={postgres_port}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir = {dir}\n\
         auth_type = trust\n\
         auth_file = {dir}/users\n\
         admin_users = postgres\n\
         pool_mode = transaction\n\
         max_client_conn = 400\n\
         default_pool_size = 20\n\
         ignore_startup_parameters = extra_float_digits\n"
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn pgbouncer_without_its_port_has_not_started() {
        let postgres = crate::Postgres::start().unwrap();
        let user = User::for_server().unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = (other.local_addr().unwrap().port(), postgres.port());

        let mut server = Server::new("pgbouncer", Signal::KILL, user).unwrap();
        let program = packages::pgbouncer().unwrap();
        let error = launch(&mut server, &program, user, ports, "postgres").unwrap_err();
        assert!(
            error.to_string().contains("another process has its port"),
            "{error}"
        );
    }
}
