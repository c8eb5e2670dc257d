//! Processes that left their group: a daemon forks twice and begins a session of its own, so that no signal to the group
//! reaches it. They are known by a variable that every process inherits.

use crate::process::Process;
use crate::wait::until;
use rustix::process::{Signal, WaitOptions, waitpid};
use std::io;
use std::process::Command;
use std::time::Duration;

/// The kernel ends a killed process at once unless the disk holds it.
const END_BOUND: Duration = Duration::from_secs(2);

/// The variable. What is marked begins with the same text.
pub(crate) const VARIABLE: &str = "SEMEL_MARK";

/// Marks what is started, and all that it starts in turn, wherever it goes.
#[derive(Clone, Debug)]
pub struct Mark(String);

/// From now on, processes whose parents have ended are children of this one, and can be waited for here.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?)
}

// === impl Mark ===

impl Mark {
    /// A mark that nobody else has. Marks that begin with it are found with it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name and the value of the variable that marks a process.
    #[must_use]
    pub fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.0)
    }

    /// Marks what this command starts.
    pub fn set<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env(VARIABLE, &self.0)
    }

    /// Every process with this mark that is alive.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let ids = names.filter_map(|name| name.parse::<u32>().ok());
        let marked = ids.filter(|id| self.is_on(*id));
        let marked = marked.filter_map(|id| Process::new(id).ok());
        marked.filter(Process::is_alive).collect()
    }

    /// Sends a signal to each of them.
    pub fn signal(&self, signal: Signal) {
        for process in self.processes() {
            // It may have ended meanwhile.
            process.send(signal).ok();
        }
    }

    /// Ends them all, with no chance to tidy up, and waits for those that this process has adopted.
    pub fn end(&self) {
        let processes = self.processes();
        for process in &processes {
            process.send(Signal::KILL).ok();
        }
        let gone = || {
            for process in &processes {
                waitpid(Some(process.pid()), WaitOptions::NOHANG).ok();
            }
            Ok(!processes.iter().any(Process::is_alive))
        };
        // What the disk holds is left to the kernel.
        until(END_BOUND, gone).ok();
    }

    fn is_on(&self, id: u32) -> bool {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let marked = format!("{VARIABLE}={}", self.0);
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(marked.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemon_that_left_its_group_is_found_and_ended() {
        adopt_orphans().unwrap();
        let mark = Mark::new(format!("mark-test-{}", std::process::id()));
        let mut command = Command::new("/bin/sh");
        mark.set(command.args(["-c", "setsid sh -c 'sleep 600 & sleep 600' & exit 0"]));
        assert!(command.status().unwrap().success());
        let came = until(END_BOUND, || Ok(mark.processes().len() >= 2));
        assert!(came.unwrap(), "nobody is marked");
        let daemons = mark.processes();
        mark.end();
        assert!(mark.processes().is_empty());
        for daemon in daemons {
            let entry = format!("/proc/{}", daemon.pid().as_raw_nonzero());
            assert!(
                !std::path::Path::new(&entry).exists(),
                "{entry} was not waited for"
            );
        }
    }
}
