//! No process outlives the one that started it, however that one ends.

use crate::cannot::CannotJudge;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Reads `+ GROUP` and `- GROUP`; when the pipe closes, ends every process group that is left and removes the directory.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -KILL "-$group"; done
rm -rf -- "$1"
"#;

/// A small process that survives us just long enough to tidy up.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    told: Option<ChildStdin>,
}

// === impl Keeper ===

impl Keeper {
    /// From now on the end of this process means the end of every group that is kept, and of `dir`.
    pub(crate) fn start(dir: &Path) -> Result<Self, CannotJudge> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "keeper"])
            .arg(dir)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| CannotJudge::machine("/bin/sh cannot be started", why))?;
        let told = child.stdin.take();
        Ok(Self { child, told })
    }

    pub(crate) fn keep(&mut self, group: u32) -> Result<(), CannotJudge> {
        self.tell(&format!("+ {group}\n"))
    }

    pub(crate) fn forget(&mut self, group: u32) -> Result<(), CannotJudge> {
        self.tell(&format!("- {group}\n"))
    }

    fn tell(&mut self, line: &str) -> Result<(), CannotJudge> {
        let Some(told) = &mut self.told else {
            return Ok(());
        };
        told.write_all(line.as_bytes())
            .map_err(|why| CannotJudge::machine("the keeper of the processes is gone", why))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.told.take());
        // A destructor has nobody to tell.
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        Command::new("/bin/sleep")
            .arg("600")
            .process_group(0)
            .spawn()
            .unwrap()
    }

    #[test]
    fn kept_groups_end_with_the_keeper_and_forgotten_ones_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let (mut one, mut two, mut three) = (sleeper(), sleeper(), sleeper());
        let mut keeper = Keeper::start(dir.path()).unwrap();
        for child in [&one, &two, &three] {
            keeper.keep(child.id()).unwrap();
        }
        keeper.forget(two.id()).unwrap();
        drop(keeper);
        assert!(!one.wait().unwrap().success());
        assert!(!three.wait().unwrap().success());
        assert!(two.try_wait().unwrap().is_none());
        two.kill().unwrap();
        two.wait().unwrap();
        assert!(!dir.path().exists());
    }
}
