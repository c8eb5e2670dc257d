//! No server outlives the process that started it.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::Context;
use rustix::process::Signal;

use crate::command::tool;

/// Ends the server and removes its directory when the pipe on stdin closes, that is, when the process that started
/// the server dies without saying a word first. A word means: the server was ended in order. Nobody may be left to wait
/// for the dead server, so a zombie counts as gone.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r word && exit 0
kill "-$1" "$2"
kill -CONT "$2"
tries=0
alive() { grep -qs '^State:.[^XZ]' "/proc/$2/status"; }
while alive "$@" && [ "$tries" -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -KILL "$2"
rm -rf -- "$3"
"#;

/// A small process that watches over a server on behalf of the process that started both. Dropped without a word, it
/// ends the server.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
}

// === impl Keeper ===

impl Keeper {
    /// From now on the death of this process means `signal` to `server`, and the end of `dir`.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn watch(server: &Child, signal: Signal, dir: &Path) -> anyhow::Result<Self> {
        let child = tool("/bin/sh")
            .args(["-c", SCRIPT, "keeper"])
            .arg(signal.as_raw().to_string())
            .arg(server.id().to_string())
            .arg(dir)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the keeper")?;
        Ok(Self { child })
    }

    /// The server was ended in order; there is nothing left to watch over.
    ///
    /// # Errors
    /// When it does not hear us.
    pub fn dismiss(mut self) -> anyhow::Result<()> {
        if let Some(mut stdin) = self.child.stdin.take() {
            stdin
                .write_all(b"ended\n")
                .context("cannot tell the keeper")?;
        }
        self.child.wait().context("cannot wait for the keeper")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use tempfile::TempDir;

    use super::*;

    fn sleeper() -> (Child, TempDir, Keeper) {
        let child = tool("/bin/sleep").arg("600").spawn().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let keeper = Keeper::watch(&child, Signal::QUIT, dir.path()).unwrap();
        (child, dir, keeper)
    }

    #[test]
    fn keeper_ends_the_server_when_its_owner_dies() {
        let (mut child, dir, mut keeper) = sleeper();
        // A dying process closes its pipes.
        drop(keeper.child.stdin.take());
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(Signal::QUIT.as_raw()));
        keeper.child.wait().unwrap();
        assert!(!dir.path().exists());
    }

    #[test]
    fn dismissed_keeper_leaves_everything_alone() {
        let (mut child, dir, keeper) = sleeper();
        keeper.dismiss().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        assert!(dir.path().exists());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
