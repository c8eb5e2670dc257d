//! A private Redis server.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use semel_rig::Signal;

use crate::command::tool;
use crate::packages;
use crate::server::Server;

/// Nothing is evicted and everything is written to the append-only file: what a store of records needs.
const SETTINGS: &[(&str, &str)] = &[
    ("bind", "127.0.0.1"),
    ("appendonly", "yes"),
    ("appendfsync", "everysec"),
    ("maxmemory-policy", "noeviction"),
    ("save", "\"\""),
];

/// A server that accepts a connection and says nothing is asked again after this.
const ANSWER_BOUND: Duration = Duration::from_secs(1);

/// A Redis server of our own, without a password.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    program: PathBuf,
    settings: String,
    port: u16,
}

// === impl Redis ===

impl Redis {
    /// Starts an empty Redis. Each of `config` is a line of `redis.conf`: a name and its value, quoted as there;
    /// it takes the place of ours of that name. A password would keep us from seeing that the server is ready.
    ///
    /// # Errors
    /// When Redis 7.0 or later is not installed, or does not start within 30 seconds.
    pub fn start(config: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_by(config, false)
    }

    /// The same with a clock that [`Redis::jump`] sets.
    ///
    /// # Errors
    /// As [`Redis::start`], and when libfaketime is not installed.
    pub fn start_jumping(config: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_by(config, true)
    }

    /// Sets its clock so many seconds off the machine's.
    ///
    /// # Errors
    /// When the clock cannot be set, or it was not started with one.
    pub fn jump(&self, seconds: i64) -> anyhow::Result<()> {
        self.server.jump(seconds)
    }

    fn start_by(config: &[(&str, &str)], jumps: bool) -> anyhow::Result<Self> {
        let program = packages::redis_server()?;
        let settings = settings(config);
        let mut server = Server::new("redis", Signal::KILL, None)?;
        server.set_clock(jumps)?;
        let port =
            server.launch_on_free_port(|server, port| launch(server, &program, &settings, port))?;
        Ok(Self {
            server,
            program,
            settings,
            port,
        })
    }

    /// The URL of database 0.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id; none while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Stops it in order: the append-only file is written out.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds; it was killed then.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.server.end(Signal::TERM)
    }

    /// Ends it as a crash would (SIGKILL). What it handed to the kernel survives; a power cut would take that too.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.server.end_at_once()
    }

    /// Starts it again on the same port and data, after stopping it if it runs.
    ///
    /// # Errors
    /// When it does not start within 30 seconds.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.stop()?;
        launch(&mut self.server, &self.program, &self.settings, self.port)
    }
}

fn settings(config: &[(&str, &str)]) -> String {
    let replaced = |ours: &str| config.iter().any(|(name, _)| *name == ours);
    let kept = SETTINGS.iter().filter(|(name, _)| !replaced(name));
    kept.chain(config)
        .fold(String::new(), |mut text, (name, value)| {
            writeln!(text, "{name} {value}").expect("writing to a String cannot fail");
            text
        })
}

fn launch(server: &mut Server, program: &PathBuf, settings: &str, port: u16) -> anyhow::Result<()> {
    let config = server.dir().join("redis.conf");
    std::fs::write(&config, format!("port {port}\n{settings}"))
        .context("cannot write redis.conf")?;
    let mut redis = tool(program);
    redis.arg(&config);
    server.launch(redis, |pid| answers(port, pid))
}

/// Whether it is our process that answers, and it has loaded its data. Every problem means: not yet.
fn answers(port: u16, pid: u32) -> bool {
    let Ok(answer) = ask(port) else { return false };
    answer.starts_with("+PONG") && answer.contains(&format!("process_id:{pid}\r\n"))
}

fn ask(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(ANSWER_BOUND))?;
    stream.write_all(b"PING\r\nINFO server\r\nQUIT\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
