//! Runs a test program, shows its output, and kills it with everything it started when one of its tests takes too long.

use crate::run::{Stopwatch, line};
use anyhow::{Context, bail};
use semel_rig::{Group, ReaperHandle, Signal};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often the clock is looked at while a program is silent.
const TICK: Duration = Duration::from_millis(200);

/// How long to read on after a program ended; a server that it left behind may still hold the pipe.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The test harness names a test that has run for this long.
const NAMED_AFTER_SECONDS: f64 = 60.0;

/// How long tests may take. These are guards against hanging, many times what a loaded machine needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// One test; more than the time after which the harness names it.
    pub(crate) test_seconds: f64,
    /// A program that prints nothing: one without the harness, or a harness with one thread.
    pub(crate) silence_seconds: f64,
}

/// What passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) programs: u64,
    pub(crate) tests: u64,
    pub(crate) ignored: u64,
}

/// What a program has printed so far.
#[derive(Debug)]
struct Progress {
    last_line: Stopwatch,
    slow: BTreeMap<String, Stopwatch>,
    count: Count,
}

/// Runs it to its end. Its standard output goes to `shown`, line by line.
pub(crate) fn watch(
    mut command: Command,
    limits: Limits,
    shown: &mut dyn Write,
) -> anyhow::Result<Count> {
    let line = line(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = Group::lead(&mut command)?
        .spawn()
        .with_context(|| format!("cannot run `{line}`"))?;
    // What it starts outside of its group has a watch of its own, which ends it.
    let group = ReaperHandle::shared()?.watch(child.id(), Signal::TERM, None)?;
    let stdout = child.stdout.take().context("stdout is a pipe")?;
    let (lines, mut progress) = (lines_of(stdout), Progress::start());
    let followed = follow(&mut child, &lines, &mut progress, limits, shown);
    if followed.is_err() {
        group.signal(Signal::KILL);
        child.wait()?;
    }
    let status = followed.with_context(|| format!("`{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(progress.count)
}

fn follow(
    child: &mut Child,
    lines: &Receiver<String>,
    progress: &mut Progress,
    limits: Limits,
    shown: &mut dyn Write,
) -> anyhow::Result<ExitStatus> {
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => progress.take(&line, shown)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(child.wait()?),
        }
        if let Some(status) = child.try_wait()? {
            while let Ok(line) = lines.recv_timeout(LAST_LINES) {
                progress.take(&line, shown)?;
            }
            return Ok(status);
        }
        if let Some(complaint) = progress.exceeds(limits) {
            bail!("{complaint}, and was killed");
        }
    }
}

fn lines_of(stdout: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n') {
            let sent = line.map(|line| sender.send(String::from_utf8_lossy(&line).into_owned()));
            if !matches!(sent, Ok(Ok(()))) {
                break;
            }
        }
    });
    lines
}

// === impl Progress ===

impl Progress {
    fn start() -> Self {
        Self {
            last_line: Stopwatch::start(),
            slow: BTreeMap::new(),
            count: Count {
                programs: 1,
                ..Count::default()
            },
        }
    }

    fn take(&mut self, line: &str, shown: &mut dyn Write) -> anyhow::Result<()> {
        writeln!(shown, "{line}")?;
        self.last_line = Stopwatch::start();
        if let Some(summary) = line.strip_prefix("test result: ") {
            self.count.tests += counted(summary, " passed");
            self.count.ignored += counted(summary, " ignored");
        } else if let Some(test) = line.strip_prefix("test ") {
            match test.split_once(" has been running for over ") {
                Some((name, _)) => drop(self.slow.insert(name.to_owned(), Stopwatch::start())),
                None => self.slow.retain(|name, _| !ends(test, name)),
            }
        }
        Ok(())
    }

    fn exceeds(&self, limits: Limits) -> Option<String> {
        let mut slow = self.slow.iter();
        let over = |since: &Stopwatch| NAMED_AFTER_SECONDS + since.seconds() > limits.test_seconds;
        if let Some((name, _)) = slow.find(|(_, since)| over(since)) {
            return Some(format!(
                "the test {name} took more than {} s",
                limits.test_seconds
            ));
        }
        (self.last_line.seconds() > limits.silence_seconds)
            .then(|| format!("printed nothing for {} s", limits.silence_seconds))
    }
}

/// Whether this is the line about the end of a test.
fn ends(line: &str, name: &str) -> bool {
    let rest = line.strip_prefix(name);
    rest.is_some_and(|rest| rest.starts_with(" ... ") || rest.starts_with(" - "))
}

/// The number before a word: 12 in `12 passed; 0 failed`.
fn counted(summary: &str, word: &str) -> u64 {
    let before = summary.split(word).next().filter(|it| *it != summary);
    let number = before.and_then(|before| before.rsplit(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

// === impl Count ===

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.programs += other.programs;
        self.tests += other.tests;
        self.ignored += other.ignored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENT: Limits = Limits {
        test_seconds: 3600.0,
        silence_seconds: 3600.0,
    };

    fn shell(script: &str, limits: Limits) -> (anyhow::Result<Count>, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut shown = Vec::new();
        let count = watch(command, limits, &mut shown);
        (count, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn passed_tests_are_counted_and_shown() {
        let script = "echo 'test a ... ok'; echo 'test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured'";
        let (count, shown) = shell(script, PATIENT);
        let expected = Count {
            programs: 1,
            tests: 12,
            ignored: 1,
        };
        assert_eq!(count.unwrap(), expected);
        assert!(shown.starts_with("test a ... ok\n"), "{shown}");
    }

    #[test]
    fn slow_test_is_named_and_its_processes_are_killed() {
        let slow = "has been running for over 60 seconds";
        let script = format!(
            "echo 'test a {slow}'; echo 'test b::c {slow}'; echo 'test a ... ok'; sleep 600 & echo $!; wait"
        );
        let limits = Limits {
            test_seconds: 61.0,
            ..PATIENT
        };
        let (count, shown) = shell(&script, limits);
        let said = format!("{:#}", count.unwrap_err());
        assert!(said.contains("the test b::c took more than 61 s"), "{said}");
        let sleeper = shown.lines().last().unwrap().parse().unwrap();
        let sleeper = testbed::Process::new(sleeper).unwrap();
        testbed::until(Duration::from_secs(10), || Ok(!sleeper.is_alive())).unwrap();
        assert!(!sleeper.is_alive());
    }

    #[test]
    fn silent_program_is_killed() {
        let limits = Limits {
            silence_seconds: 0.5,
            ..PATIENT
        };
        let (count, _) = shell("sleep 600", limits);
        let said = format!("{:#}", count.unwrap_err());
        assert!(said.contains("printed nothing for 0.5 s"), "{said}");
    }

    #[test]
    fn program_that_fails_is_a_failure() {
        let said = format!("{:#}", shell("exit 3", PATIENT).0.unwrap_err());
        assert!(said.contains("exit status: 3"), "{said}");
    }
}
