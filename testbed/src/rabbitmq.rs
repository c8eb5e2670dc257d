//! A private RabbitMQ server.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use semel_rig::Signal;

use crate::command::tool;
use crate::packages;
use crate::server::Server;

/// Erlang's names need a server of their own, `epmd`. One that the node starts by itself is a daemon and outlives it;
/// ours belongs to the process group of the node, and is ended with it.
const LAUNCH: &str = "epmd & exec \"$0\"";

/// A node is named before its ports are known to be free; nobody else asks our `epmd`.
const NODE: &str = "semel@localhost";

/// What the node prints when it takes connections.
const READY: &str = "Server startup complete";

/// A RabbitMQ server of our own, for the user `guest`.
#[derive(Debug)]
pub struct RabbitMq {
    server: Server,
    port: u16,
}

// === impl RabbitMq ===

impl RabbitMq {
    /// Starts an empty RabbitMQ without plugins.
    ///
    /// # Errors
    /// When RabbitMQ is not installed, or does not start within 30 seconds.
    pub fn start() -> anyhow::Result<Self> {
        let program = packages::rabbitmq_server()?;
        let mut server = Server::new("rabbitmq", Signal::KILL, None)?;
        let port = server.launch_on_free_port(|server, port| launch(server, &program, port))?;
        Ok(Self { server, port })
    }

    /// The URL of its default virtual host.
    #[must_use]
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}//", self.port)
    }

    /// The process id; none when it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }
}

fn launch(server: &mut Server, program: &Path, port: u16) -> anyhow::Result<()> {
    let dir = server.dir().to_owned();
    let config =
        format!("listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = true\nlog.file = false\n");
    fs::write(dir.join("rabbitmq.conf"), config).context("cannot write rabbitmq.conf")?;
    let node = command(&dir, program)?;
    server.launch(node, |_| is_ready(&dir, port))
}

/// All that a node would otherwise look for in the directories of the system's own server.
fn command(dir: &Path, program: &Path) -> anyhow::Result<Command> {
    let mut node = tool("/bin/sh");
    node.args(["-c", LAUNCH]).arg(program);
    node.env("HOME", dir)
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_EPMD_PORT", crate::free_port()?.to_string())
        .env("RABBITMQ_DIST_PORT", crate::free_port()?.to_string())
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-kernel inet_dist_use_interface {127,0,0,1}",
        )
        .env("RABBITMQ_NODENAME", NODE)
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env("RABBITMQ_CONFIG_FILE", dir.join("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", dir.join("plugins"))
        .env("RABBITMQ_MNESIA_BASE", dir.join("data"))
        .env("RABBITMQ_LOG_BASE", dir.join("log"))
        // The script then becomes the node, instead of waiting for it.
        .env("RUNNING_UNDER_SYSTEMD", "1");
    Ok(node)
}

/// Whether it says that it is; that somebody listens on its port is not enough.
fn is_ready(dir: &Path, port: u16) -> bool {
    let log = fs::read_to_string(dir.join("server.log")).unwrap_or_default();
    log.contains(READY) && TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
