//! No process outlives the one that started it, however that one ends.

use crate::mark::Mark;
use crate::signals::reset_for_children;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};

/// Reads `+ GROUP SIGNAL DIRECTORY` and `- GROUP`. When the pipe closes, it sends each process group that is left its
/// signal, kills what does not end within five seconds, and removes the directories (`-`: none). Nobody may be left to
/// wait for the dead processes, so a zombie counts as gone. Group 0 stands for a directory without a group. Whoever has
/// the mark is killed wherever it is.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
mark=$2
[ -n "$1" ] && set -- "0 0 $1" || set --
while read -r sign group rest; do
  if [ "$sign" = + ]; then set -- "$@" "$group $rest"; continue; fi
  for entry do
    shift
    case $entry in "$group "*) ;; *) set -- "$@" "$entry" ;; esac
  done
done
to_each() {
  signal=$1; shift
  for entry do
    group=${entry%% *}; own=${entry#* }; own=${own%% *}
    [ "$group" = 0 ] || kill "-${signal:-$own}" "-$group"
  done
}
any_alive() {
  for entry do grep -qs '^State:.[^XZ]' "/proc/${entry%% *}/status" && return 0; done
  return 1
}
to_each '' "$@"
to_each CONT "$@"
tries=0
while any_alive "$@" && [ "$tries" -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
to_each KILL "$@"
if [ -n "$mark" ]; then
  for file in $(grep -ls "SEMEL_MARK=$mark" /proc/[0-9]*/environ); do
    process=${file#/proc/}; kill -KILL "${process%/environ}"
  done
fi
for entry do
  dir=${entry#* }; dir=${dir#* }
  [ "$dir" = - ] || rm -rf -- "$dir"
done
"#;

/// A small process that survives this one just long enough to end what is left. Dropped, it does that at once.
#[derive(Debug)]
pub struct Reaper {
    child: Child,
    handle: ReaperHandle,
}

/// Where the reaper is told what to watch. When the reaper has ended, nobody listens and nothing is left to watch.
#[derive(Clone, Debug)]
pub struct ReaperHandle(Arc<Mutex<Option<ChildStdin>>>);

/// A process group. It ends when this is dropped, and when this process ends.
#[derive(Debug)]
pub struct Group {
    id: Pid,
    reaper: ReaperHandle,
}

// === impl Reaper ===

impl Reaper {
    /// From now on the end of this process means the end of every group that is watched.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn start() -> io::Result<Self> {
        Self::start_with(Path::new(""), None)
    }

    /// The same; what has this mark ends, too, and `dir` is removed last.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn start_with(dir: &Path, mark: Option<&Mark>) -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(dir)
            .arg(mark.map_or("", |mark| mark.variable().1))
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("cannot start /bin/sh: {error}"))
            })?;
        let handle = ReaperHandle(Arc::new(Mutex::new(child.stdin.take())));
        Ok(Self { child, handle })
    }

    /// For those who start processes.
    #[must_use]
    pub fn handle(&self) -> ReaperHandle {
        self.handle.clone()
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
    /// The reaper of this process, started when it is asked for first.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn shared() -> io::Result<Self> {
        static SHARED: Mutex<Option<Reaper>> = Mutex::new(None);
        let mut shared = SHARED.lock().expect("nobody panics while holding it");
        match &mut *shared {
            Some(reaper) => Ok(reaper.handle()),
            none => Ok(none.insert(Reaper::start()?).handle()),
        }
    }

    /// Watches over the group that a child leads. When this process dies, the group gets `signal`, and `dir` is
    /// removed after its end.
    ///
    /// # Errors
    /// When `leader` cannot be a process id, or the reaper is gone.
    pub fn watch(&self, leader: u32, signal: Signal, dir: Option<&Path>) -> io::Result<Group> {
        let id = i32::try_from(leader).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other(format!("{leader} is not a process id")))?;
        let dir = dir.map_or_else(|| "-".into(), Path::to_string_lossy);
        let signal = signal.as_raw();
        self.tell(&format!("+ {} {signal} {dir}\n", id.as_raw_nonzero()))?;
        Ok(Group {
            id,
            reaper: self.clone(),
        })
    }

    fn tell(&self, line: &str) -> io::Result<()> {
        match &mut *self.lock() {
            Some(pipe) => pipe.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.0.lock().expect("nobody panics while holding it")
    }
}

// === impl Group ===

impl Group {
    /// Prepares a command to lead a group of its own, where Ctrl-C has its default meaning.
    ///
    /// # Errors
    /// When this process cannot tell, or change, what its children inherit.
    pub fn lead(command: &mut Command) -> io::Result<&mut Command> {
        reset_for_children()?;
        Ok(command.process_group(0))
    }

    /// Sends a signal to every process of it. A group that has ended cannot be signalled, and need not be.
    pub fn signal(&self, signal: Signal) {
        kill_process_group(self.id, signal).ok();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // In most cases it has ended already.
        self.signal(Signal::KILL);
        let line = format!("- {}\n", self.id.as_raw_nonzero());
        self.reaper.tell(&line).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sleeper() -> Child {
        let mut command = Command::new("/bin/sleep");
        Group::lead(command.arg("600")).unwrap().spawn().unwrap()
    }

    fn signal_of(child: &mut Child) -> Option<i32> {
        child.wait().unwrap().signal()
    }

    #[test]
    fn watched_groups_end_with_the_reaper_and_forgotten_ones_do_not() {
        let (home, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut one, mut two, mut three) = (sleeper(), sleeper(), sleeper());
        let reaper = Reaper::start_with(home.path(), None).unwrap();
        let handle = reaper.handle();
        let watched = [
            handle.watch(one.id(), Signal::QUIT, Some(own.path())),
            handle.watch(three.id(), Signal::KILL, None),
        ];
        let forgotten = two.id();
        handle.tell(&format!("+ {forgotten} 9 -\n")).unwrap();
        handle.tell(&format!("- {forgotten}\n")).unwrap();
        drop(reaper);
        // The reaper did it: the groups themselves are still held here.
        assert_eq!(signal_of(&mut one), Some(Signal::QUIT.as_raw()));
        assert_eq!(signal_of(&mut three), Some(Signal::KILL.as_raw()));
        drop(watched);
        assert!(two.try_wait().unwrap().is_none());
        two.kill().unwrap();
        two.wait().unwrap();
        assert!(!home.path().exists() && !own.path().exists());
    }

    #[test]
    fn paused_group_ends_with_the_reaper() {
        let reaper = Reaper::start().unwrap();
        let mut child = sleeper();
        let watched = reaper.handle().watch(child.id(), Signal::INT, None);
        crate::Process::of(&child).pause().unwrap();
        drop(reaper);
        assert_eq!(signal_of(&mut child), Some(Signal::INT.as_raw()));
        drop(watched);
    }

    #[test]
    fn group_ends_when_it_is_dropped() {
        let reaper = Reaper::start().unwrap();
        let mut child = sleeper();
        drop(reaper.handle().watch(child.id(), Signal::TERM, None));
        assert_eq!(signal_of(&mut child), Some(Signal::KILL.as_raw()));
    }
}
