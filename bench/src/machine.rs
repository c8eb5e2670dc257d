//! Where and when was measured: numbers mean nothing without it.

use std::fmt;
use std::fs;

use jiff::Timestamp;
use semel::clock::{Clock, SystemClock, Time};
use serde::Serialize;

/// This machine, now.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    date: String,
    processor: String,
    cores: usize,
    memory_gib: u64,
    kernel: String,
    optimised: bool,
    command: String,
}

const KIB_PER_GIB: u64 = 1024 * 1024;

// === impl Machine ===

impl Machine {
    pub(crate) fn this(now: Time) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            date: date(now),
            processor: after_colon("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: memory_gib(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            optimised: !cfg!(debug_assertions),
            command: format!("cargo xtask bench {}", arguments.join(" ")),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}` on {}", self.command, self.date)?;
        write!(
            f,
            "{} × {}, {} GiB, Linux {}",
            self.cores, self.processor, self.memory_gib, self.kernel
        )?;
        if !self.optimised {
            write!(f, "\nNOT OPTIMISED: these numbers are worth nothing")?;
        }
        Ok(())
    }
}

/// The time of this machine's clock.
pub(crate) fn now() -> Time {
    SystemClock::new().wall()
}

/// Linux says all this in files. What is not there is left empty: it is only told, not used.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn after_colon(path: &str, name: &str) -> String {
    let text = read(path);
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn memory_gib() -> u64 {
    kib(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0) / KIB_PER_GIB
}

/// The number after a name of `/proc/meminfo` or `/proc/<pid>/status`.
pub(crate) fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The day, in UTC.
fn date(now: Time) -> String {
    let microseconds = i64::try_from(now.0).unwrap_or(i64::MAX);
    let at = Timestamp::from_microsecond(microseconds).unwrap_or_default();
    at.strftime("%F").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_SECONDS: u64 = 24 * 60 * 60;

    #[test]
    fn days_have_their_dates() {
        let on = |day: u64| date(Time(day * DAY_SECONDS * 1_000_000));
        assert_eq!(on(0), "1970-01-01");
        assert_eq!(on(31 + 28), "1970-03-01");
        // 30 years with 7 leap days, then the leap day of 2000.
        assert_eq!(on(30 * 365 + 7 + 31 + 28), "2000-02-29");
        assert_eq!(on(30 * 365 + 7 + 365), "2000-12-31");
    }
}
