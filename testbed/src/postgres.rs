//! A private PostgreSQL server.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use semel_rig::Signal;

use crate::command::{User, output, run, tool, tool_as};
use crate::packages;
use crate::server::Server;

/// PostgreSQL cuts longer names silently.
const NAME_BYTES_MAX: usize = 63;

/// What differs from PostgreSQL's defaults. `fsync` stays on: durability is among the things tested.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "400"),
    ("fsync", "on"),
];

/// A PostgreSQL server of our own; everybody on this machine may connect as `postgres`, without a password.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    program: Program,
    port: u16,
}

/// The installed PostgreSQL and how to run it.
#[derive(Debug)]
struct Program {
    bin: PathBuf,
    user: Option<User>,
    settings: Vec<String>,
}

// === impl Postgres ===

impl Postgres {
    /// Starts the newest PostgreSQL installed from Debian's packages, with a new, empty cluster.
    ///
    /// # Errors
    /// When PostgreSQL 15 or later is not installed, or does not start within 30 seconds.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(&[])
    }

    /// The same with settings of `postgresql.conf` added to ours, or in their place.
    ///
    /// # Errors
    /// As [`Postgres::start`].
    pub fn start_with(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_by(settings, false)
    }

    /// The same with a clock that [`Postgres::jump`] sets.
    ///
    /// # Errors
    /// As [`Postgres::start`], and when libfaketime is not installed.
    pub fn start_jumping(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_by(settings, true)
    }

    /// Sets its clock so many seconds off the machine's.
    ///
    /// # Errors
    /// When the clock cannot be set, or it was not started with one.
    pub fn jump(&self, seconds: i64) -> anyhow::Result<()> {
        self.server.jump(seconds)
    }

    fn start_by(settings: &[(&str, &str)], jumps: bool) -> anyhow::Result<Self> {
        let program = Program::find(settings)?;
        // SIGQUIT is the immediate shutdown: no checkpoint, as in a crash, but no child is left behind either.
        let mut server = Server::new("postgres", Signal::QUIT, program.user)?;
        program.init(&server)?;
        server.set_clock(jumps)?;
        let port = server.launch_on_free_port(|server, port| program.launch(server, port))?;
        Ok(Self {
            server,
            program,
            port,
        })
    }

    /// The URL of the database `postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the postmaster; none while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Creates an empty database and returns its URL.
    ///
    /// # Errors
    /// When the name is not lower-case letters, digits and `_`, is taken, or the server does not run.
    pub fn create_database(&self, name: &str) -> anyhow::Result<String> {
        create_database(&self.url(), name)
    }

    /// Stops it in order: open transactions are rolled back and everything is written out.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds; it was killed then.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.server.end(Signal::INT)
    }

    /// Ends it as a crash would: no checkpoint, so the next start recovers from the write-ahead log.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds; it was killed then.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.server.end_at_once()
    }

    /// Starts it again on the same port and data, after stopping it if it runs.
    ///
    /// # Errors
    /// When it does not start within 30 seconds.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.stop()?;
        self.program.launch(&mut self.server, self.port)
    }
}

// === impl Program ===

impl Program {
    fn find(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Ok(Self {
            bin: packages::postgres_bin()?,
            user: User::for_server()?,
            settings: SETTINGS
                .iter()
                .chain(settings)
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        })
    }

    fn init(&self, server: &Server) -> anyhow::Result<()> {
        let mut initdb = self.command("initdb");
        initdb
            .args(["--username=postgres", "--auth=trust", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C.UTF-8", "--pgdata=data"])
            .current_dir(server.dir());
        run(&mut initdb).context("cannot make a PostgreSQL cluster")
    }

    fn launch(&self, server: &mut Server, port: u16) -> anyhow::Result<()> {
        let socket_dir = server.dir().to_owned();
        let mut postgres = self.command("postgres");
        postgres.args(["-D", "data", "-p", &port.to_string(), "-k"]);
        postgres.arg(&socket_dir);
        for setting in &self.settings {
            postgres.args(["-c", setting]);
        }
        // The socket is in our own directory, so whoever answers there is our server, whoever has the port.
        server.launch(postgres, |_pid| {
            self.command("pg_isready")
                .args(["--quiet", "--username=postgres", "--dbname=postgres"])
                .arg(format!("--port={port}"))
                .arg("--host")
                .arg(&socket_dir)
                .current_dir(&socket_dir)
                .status()
                .is_ok_and(|answer| answer.success())
        })
    }

    fn command(&self, name: &str) -> Command {
        tool_as(self.user, self.bin.join(name))
    }
}

/// What `psql` prints for a statement: a line per row, its columns separated by `|`.
///
/// # Errors
/// When the database cannot be reached or refuses the statement.
pub fn query(url: &str, statement: &str) -> anyhow::Result<String> {
    let mut psql = tool(packages::postgres_bin()?.join("psql"));
    psql.args(["--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-qAt", "-c"]);
    let printed = output(psql.args([statement, url])).with_context(|| statement.to_owned())?;
    Ok(printed.trim_end().to_owned())
}

/// Creates an empty database next to the one `server_url` names and returns its URL.
pub(crate) fn create_database(server_url: &str, name: &str) -> anyhow::Result<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
        bail!("`{name}` cannot name a test database: take 1 to {NAME_BYTES_MAX} of a-z, 0-9 and _");
    }
    let (server, _database) = server_url
        .rsplit_once('/')
        .with_context(|| format!("`{server_url}` is not a URL that ends in a database's name"))?;
    // template0 has no visitors, so databases can be created from it at the same time.
    let mut createdb = tool(packages::postgres_bin()?.join("createdb"));
    createdb
        .arg(format!("--maintenance-db={server_url}"))
        .args(["--template=template0", name]);
    run(&mut createdb).with_context(|| format!("cannot create the database {name}"))?;
    Ok(format!("{server}/{name}"))
}
