//! No process outlives the one that started it, however that one ends.

use crate::error::Error;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};

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
pub(crate) struct Reaper {
    child: Child,
    pub(crate) handle: ReaperHandle,
}

/// Where the reaper is told. When it has ended, nobody listens and nothing is left to be kept.
#[derive(Clone, Debug)]
pub(crate) struct ReaperHandle(Arc<Mutex<Option<ChildStdin>>>);

/// A process group. It ends when this is dropped, and when we end.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    id: Pid,
    handle: ReaperHandle,
}

// === impl Reaper ===

impl Reaper {
    /// From now on the end of this process means the end of every group that is kept, and of `dir`.
    pub(crate) fn start(dir: &Path) -> Result<Self, Error> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(dir)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| Error::system("/bin/sh cannot be started", why))?;
        let handle = ReaperHandle(Arc::new(Mutex::new(child.stdin.take())));
        Ok(Self { child, handle })
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.handle.lock().take());
        // A destructor has nobody to tell.
        self.child.wait().ok();
    }
}

// === impl ReaperHandle ===

impl ReaperHandle {
    fn tell(&self, sign: char, group: Pid) -> Result<(), Error> {
        let Some(told) = &mut *self.lock() else {
            return Ok(());
        };
        told.write_all(format!("{sign} {}\n", group.as_raw_nonzero()).as_bytes())
            .map_err(|why| Error::system("the reaper of the processes is gone", why))
    }

    fn lock(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.0.lock().expect("nobody panics while holding it")
    }
}

// === impl ProcessGroup ===

impl ProcessGroup {
    /// The group that a child leads; none when it has ended already.
    pub(crate) fn of(leader: Option<u32>, handle: &ReaperHandle) -> Result<Option<Self>, Error> {
        let id = leader.and_then(|id| i32::try_from(id).ok());
        let Some(id) = id.and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let group = Self {
            id,
            handle: handle.clone(),
        };
        group.handle.tell('+', id)?;
        Ok(Some(group))
    }

    /// A group that has ended cannot be signalled, and need not be.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process_group(self.id, signal).ok();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Usually it has ended already.
        self.signal(Signal::KILL);
        self.handle.tell('-', self.id).ok();
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

    fn group(of: &Child, reaper: &Reaper) -> ProcessGroup {
        ProcessGroup::of(Some(of.id()), &reaper.handle)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn kept_groups_end_with_the_keeper_and_forgotten_ones_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let (mut one, mut two, mut three) = (sleeper(), sleeper(), sleeper());
        let reaper = Reaper::start(dir.path()).unwrap();
        let kept = [&one, &three].map(|child| group(child, &reaper));
        let forgotten = Pid::from_child(&two);
        reaper.handle.tell('+', forgotten).unwrap();
        reaper.handle.tell('-', forgotten).unwrap();
        drop(reaper);
        // The reaper did it: the groups themselves are still held here.
        assert!(!one.wait().unwrap().success());
        assert!(!three.wait().unwrap().success());
        drop(kept);
        assert!(two.try_wait().unwrap().is_none());
        two.kill().unwrap();
        two.wait().unwrap();
        assert!(!dir.path().exists());
    }

    #[test]
    fn group_ends_when_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let reaper = Reaper::start(dir.path()).unwrap();
        let mut child = sleeper();
        drop(group(&child, &reaper));
        assert!(!child.wait().unwrap().success());
    }
}
