//! Google's emulator of Firestore, where it is installed.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use semel_rig::Signal;

use crate::command::{output, tool};
use crate::packages::find_program;
use crate::server::Server;

/// What is said where it is not installed.
pub const FIRESTORE_NOT_RUN: &str = "firestore store: no emulator (install google-cloud-cli-firestore-emulator and Java, \
                                     or set FIRESTORE_EMULATOR_HOST)";

/// Debian's package, of Google's own repository.
const PACKAGE: &str = "google-cloud-cli-firestore-emulator";
const JAR: &str = "cloud-firestore-emulator.jar";
const MAIN: &str = "com.google.cloud.datastore.emulator.firestore.CloudFirestore";
const READY: &str = "Dev App Server is now running";

/// An emulator of our own. Its data is in its memory: tests tell themselves apart by the project that they name.
#[derive(Debug)]
pub struct Firestore {
    server: Server,
    program: Installed,
    port: u16,
}

/// What it takes to start one.
#[derive(Clone, Debug)]
struct Installed {
    java: PathBuf,
    jar: PathBuf,
}

// === impl Firestore ===

impl Firestore {
    /// Whether one can be started here.
    #[must_use]
    pub fn is_installed() -> bool {
        Installed::find().is_ok()
    }

    /// Starts an empty emulator.
    ///
    /// # Errors
    /// When it is not installed, or does not start within 30 seconds.
    pub fn start() -> anyhow::Result<Self> {
        let program = Installed::find()?;
        let mut server = Server::new("firestore", Signal::KILL, None)?;
        let port = server.launch_on_free_port(|server, port| program.launch(server, port))?;
        Ok(Self {
            server,
            program,
            port,
        })
    }

    /// `host:port`, as `FIRESTORE_EMULATOR_HOST` has it.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The process id; none while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Ends it; its data goes with it.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.server.end_at_once()
    }

    /// Starts it again, empty, on the same port, after ending it if it runs.
    ///
    /// # Errors
    /// When it does not start within 30 seconds.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.kill()?;
        self.program.launch(&mut self.server, self.port)
    }
}

// === impl Installed ===

impl Installed {
    fn find() -> anyhow::Result<Self> {
        Ok(Self {
            java: java()?,
            jar: jar(PACKAGE, JAR)?,
        })
    }

    fn launch(&self, server: &mut Server, port: u16) -> anyhow::Result<()> {
        let mut command = tool(&self.java);
        command.arg("-cp").arg(&self.jar).arg(MAIN);
        command.args(["--host=127.0.0.1", &format!("--port={port}")]);
        let log = server.log();
        // Another process may have the port: the words in its log are its own.
        server.launch(command, |_| says_ready(&log) && answers(port))
    }
}

fn says_ready(log: &Path) -> bool {
    let log = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&log).contains(READY)
}

fn answers(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "Java is found as every program of Java's finds it"
)]
pub(crate) fn java() -> anyhow::Result<PathBuf> {
    let home = std::env::var("JAVA_HOME").ok();
    let at_home = home.map(|home| Path::new(&home).join("bin/java"));
    match at_home.filter(|java| java.exists()) {
        Some(java) => Ok(java),
        None => find_program("java"),
    }
}

/// The file of a Debian package whose name ends so.
pub(crate) fn jar(package: &str, ending: &str) -> anyhow::Result<PathBuf> {
    let files = output(tool("dpkg").args(["-L", package]))
        .with_context(|| format!("{package} is not installed"))?;
    let jar = files.lines().find(|file| file.ends_with(ending));
    let Some(jar) = jar.map(PathBuf::from).filter(|jar| jar.exists()) else {
        bail!("{package} has no {ending}: install it again");
    };
    Ok(jar)
}
