//! Debian's packages: which servers are here, and fetching those that are not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use rustix::process::geteuid;

use crate::clock;

const POSTGRES_MAJOR_MIN: u32 = 15;
const REDIS_VERSION_MIN: (u32, u32) = (7, 0);

/// Where Debian puts each major version of PostgreSQL.
const POSTGRES_HOME: &str = "/usr/lib/postgresql";

/// RabbitMQ's own program. The one on Debian's PATH runs it as another user, in the directory of the system's server.
const RABBITMQ_SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// Looked at directly: servers live in sbin, which is often not on a developer's PATH.
const PROGRAM_DIRS: &[&str] = &["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin"];

/// Debian asks this file before it starts a service; 101 forbids it.
const POLICY_PATH: &str = "/usr/sbin/policy-rc.d";
const POLICY: &str = "#!/bin/sh\nexit 101\n";

/// Keeps freshly installed packages from starting system services we would never use.
#[derive(Debug)]
struct NoServices;

/// Packages to install before the servers of this crate can start; empty when all are here, new enough.
#[must_use]
pub fn missing_packages() -> Vec<&'static str> {
    absent([
        ("postgresql", postgres_bin()),
        ("redis-server", redis_server()),
        ("pgbouncer", pgbouncer()),
        ("libfaketime", clock::library()),
        ("openssl", find_program("openssl")),
    ])
}

/// Packages to install beside those before the gate can be measured; tests need none of them.
#[must_use]
pub fn missing_bench_packages() -> Vec<&'static str> {
    absent([("nginx-light", "nginx"), ("wrk", "wrk")].map(found))
}

/// Packages to install beside those before the long tests of the Python package can run.
#[must_use]
pub fn missing_long_packages() -> Vec<&'static str> {
    absent([("rabbitmq-server", rabbitmq_server())])
}

/// Packages to install before the examples, Google's clients and the page can be tested; empty when all are here.
#[must_use]
pub fn missing_tools() -> Vec<&'static str> {
    let mut missing = crate::python::missing();
    let programs = [
        ("nodejs", "node"),
        ("npm", "npm"),
        ("curl", "curl"),
        ("chromium", "chromium"),
    ];
    missing.extend(absent(programs.map(found)));
    missing
}

/// A package, and the program that it brings.
fn found((package, program): (&'static str, &str)) -> (&'static str, anyhow::Result<PathBuf>) {
    (package, find_program(program))
}

fn absent<const N: usize>(
    packages: [(&'static str, anyhow::Result<PathBuf>); N],
) -> Vec<&'static str> {
    let packages = packages.into_iter();
    packages
        .filter_map(|(package, here)| here.is_err().then_some(package))
        .collect()
}

/// Installs packages with apt-get, as root or through a sudo that asks no password, and looks that the servers are
/// new enough afterwards.
///
/// # Errors
/// When we may not install; the message then has the line to type. When apt-get fails, or Debian's version is too old.
pub fn install(missing: &[&str]) -> anyhow::Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!(
        "apt-get update && apt-get install -y --no-install-recommends {}",
        missing.join(" ")
    );
    let root = geteuid().is_root();
    if !root && !sudo_asks_nothing() {
        bail!("only root may install packages; type: sudo sh -c '{line}'");
    }
    let no_services = root.then(NoServices::begin).transpose()?;
    let status = shell(root, &line)
        .status()
        .context("cannot run apt-get; this works on Debian and its kin only")?;
    drop(no_services);
    if !status.success() {
        bail!("apt-get failed with {status}; to repeat it: {line}");
    }
    postgres_bin()?;
    redis_server()?;
    pgbouncer()?;
    clock::library()?;
    Ok(())
}

/// The directory of the newest PostgreSQL's programs.
pub(crate) fn postgres_bin() -> anyhow::Result<PathBuf> {
    let versions = fs::read_dir(POSTGRES_HOME).ok().into_iter().flatten();
    let newest = versions
        .filter_map(|dir| dir.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|major| *major >= POSTGRES_MAJOR_MIN && complete(&postgres_bin_of(*major)))
        .max();
    newest.map(postgres_bin_of).with_context(|| {
        format!(
            "PostgreSQL {POSTGRES_MAJOR_MIN} or later is not in {POSTGRES_HOME}: \
             apt-get install postgresql, then retry"
        )
    })
}

/// Redis's server program.
pub(crate) fn redis_server() -> anyhow::Result<PathBuf> {
    let program = find_program("redis-server")?;
    let output = crate::command::tool(&program)
        .arg("--version")
        .output()
        .context("cannot run redis-server")?;
    let words = String::from_utf8_lossy(&output.stdout);
    let version = redis_version(&words)
        .with_context(|| format!("redis-server tells no version we can read: {words}"))?;
    if version < REDIS_VERSION_MIN {
        let ((major, minor), (min_major, min_minor)) = (version, REDIS_VERSION_MIN);
        bail!("Redis {major}.{minor} is too old: install {min_major}.{min_minor} or later");
    }
    Ok(program)
}

/// PgBouncer's program.
pub(crate) fn pgbouncer() -> anyhow::Result<PathBuf> {
    find_program("pgbouncer")
}

/// RabbitMQ's server program.
pub(crate) fn rabbitmq_server() -> anyhow::Result<PathBuf> {
    let program = PathBuf::from(RABBITMQ_SERVER);
    let missing = "RabbitMQ is not installed: apt-get install rabbitmq-server, then retry";
    program.exists().then_some(program).context(missing)
}

fn postgres_bin_of(major: u32) -> PathBuf {
    Path::new(POSTGRES_HOME).join(major.to_string()).join("bin")
}

fn complete(bin: &Path) -> bool {
    ["initdb", "postgres", "pg_isready", "psql", "createdb"]
        .iter()
        .all(|program| bin.join(program).exists())
}

/// Where a program of Debian's packages is.
///
/// # Errors
/// When it is not installed.
pub fn find_program(name: &str) -> anyhow::Result<PathBuf> {
    PROGRAM_DIRS
        .iter()
        .map(|dir| Path::new(dir).join(name))
        .find(|path| path.exists())
        .with_context(|| format!("{name} is not installed: apt-get install {name}, then retry"))
}

/// From a line such as `Redis server v=7.0.15 sha=...`.
fn redis_version(words: &str) -> Option<(u32, u32)> {
    let version = words
        .split_whitespace()
        .find_map(|word| word.strip_prefix("v="))?;
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn sudo_asks_nothing() -> bool {
    Command::new("sudo")
        .args(["-n", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Keeps the environment, because a proxy for apt may be set there.
fn shell(root: bool, line: &str) -> Command {
    let mut command = Command::new(if root { "sh" } else { "sudo" });
    if !root {
        command.args(["-n", "sh"]);
    }
    command
        .args([
            "-c",
            &format!("export DEBIAN_FRONTEND=noninteractive; {line}"),
        ])
        .stdin(Stdio::null());
    command
}

// === impl NoServices ===

impl NoServices {
    /// Does nothing where the machine has a policy already.
    fn begin() -> anyhow::Result<Option<Self>> {
        use std::os::unix::fs::PermissionsExt;
        if Path::new(POLICY_PATH).exists() {
            return Ok(None);
        }
        fs::write(POLICY_PATH, POLICY).context("cannot forbid services")?;
        let forbids = Self;
        fs::set_permissions(POLICY_PATH, fs::Permissions::from_mode(0o755))
            .context("cannot forbid services")?;
        Ok(Some(forbids))
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        // Left behind, it only keeps later packages from starting services.
        fs::remove_file(POLICY_PATH).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_version_is_read_from_its_own_words() {
        let words = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64";
        assert_eq!(redis_version(words), Some((7, 0)));
        assert_eq!(redis_version("Valkey"), None);
    }
}
