//! Running other programs, apart from our environment and, where they insist, not as root.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use rustix::process::geteuid;

/// Some servers refuse to run as root; they run as this user then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

// === impl User ===

impl User {
    /// Debian's `postgres` when we are root; none, and the server runs as ourselves, when we are not.
    pub(crate) fn for_server() -> anyhow::Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let user = passwd.lines().find_map(Self::parse_postgres).context(
            "no user `postgres`, and PostgreSQL refuses root: install the package postgresql",
        )?;
        Ok(Some(user))
    }

    fn parse_postgres(line: &str) -> Option<Self> {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some(Self {
            uid: fields.next()?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
        })
    }
}

/// A command that sees nothing of our environment: `PGHOST` or a locale must not steer a private server.
pub(crate) fn tool(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("LC_ALL", "C.UTF-8");
    command
}

/// The same, run as `user`.
pub(crate) fn tool_as(user: Option<User>, program: impl AsRef<Path>) -> Command {
    let mut command = tool(program);
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
}

/// Runs a command to its end; its own words become the error when it fails.
///
/// # Errors
/// When it cannot be run, or fails.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    output(command).map(drop)
}

/// The same, and gives what it printed.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!(
            "{program} failed with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
