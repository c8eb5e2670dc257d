//! What Redis is held against: `redis-benchmark` with the claim's own call.

use std::process::Stdio;

use anyhow::{Context, bail};
use async_trait::async_trait;
use tokio::process::Command;

use crate::rounds::{Contender, Pace};

/// `redis-benchmark` with so many connections, each with so many calls under way.
pub(crate) struct RedisBenchmark {
    pub(crate) port: u16,
    pub(crate) connections: usize,
    pub(crate) pipeline: usize,
    pub(crate) call: Vec<String>,
}

/// Drawn anew wherever it stands in a call: 12 digits below [`KEYS`].
const DRAWN: &str = "__rand_int__";
const DRAWN_DIGITS: usize = 12;

/// So many that a key is hardly ever drawn twice.
const KEYS: &str = "100000000";

/// What the warm-up takes the rate for, before any is known.
const GUESS_PER_SECOND: f64 = 20_000.0;

/// The claim of a fresh key with the default terms, as the store calls it.
pub(crate) fn claim_call(prefix: &str) -> anyhow::Result<Vec<String>> {
    let head = semel_redis::library().lines().next().unwrap_or_default();
    let library = head
        .strip_prefix("#!lua name=")
        .context("the library does not begin with its name")?;
    let record = format!("{prefix}:{{{}{DRAWN}}}", "a".repeat(64 - DRAWN_DIGITS));
    let steps = format!("{record}:s");
    let (fingerprint, owner) = ("f".repeat(32), "o".repeat(16));
    let (lease_us, retention_us) = ("30000000", "86400000000");
    let (in_doubt, max_attempts, max_in_doubt, doubt_age) = ("0", "0", "0", "0");
    let (park_after, acts_for, label) = ("", "", "");
    let call = format!(
        "FCALL {library}_claim 2 {record} {steps} {fingerprint} {owner} {lease_us} {retention_us} \
         {in_doubt} {max_attempts} {max_in_doubt} {doubt_age} {park_after} {acts_for} {label}"
    );
    Ok(call.split(' ').map(str::to_owned).collect())
}

// === impl RedisBenchmark ===

impl RedisBenchmark {
    pub(crate) fn name(&self) -> String {
        format!(
            "redis-benchmark -c {} -P {}",
            self.connections, self.pipeline
        )
    }

    /// Sends so many calls; how many a second it came to.
    async fn send(&self, calls: f64) -> anyhow::Result<f64> {
        let mut command = Command::new("redis-benchmark");
        command
            .env_remove("REDISCLI_AUTH")
            .args(["-p", &self.port.to_string()])
            .args(["-c", &self.connections.to_string()])
            .args(["-P", &self.pipeline.to_string()])
            .args(["-n", &format!("{calls:.0}")])
            .args(["-r", KEYS, "--csv"])
            .args(&self.call)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command
            .output()
            .await
            .context("cannot run redis-benchmark: install the package redis-tools")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || complained.contains("Error from server") {
            bail!(
                "redis-benchmark failed: {} {}",
                said.trim(),
                complained.trim()
            );
        }
        rate(&said).with_context(|| format!("redis-benchmark said {said:?}, which has no rate"))
    }
}

#[async_trait]
impl Contender for RedisBenchmark {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let about = self
            .send(GUESS_PER_SECOND * pace.warm_up.as_secs_f64())
            .await?;
        self.send(about * pace.window.as_secs_f64()).await
    }
}

/// The second column of the last line of the table.
fn rate(csv: &str) -> Option<f64> {
    let line = csv.lines().last()?;
    line.split("\",\"").nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_read_from_the_table() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"FCALL x 2 a b\",\"34013.61\",\"1.2\"\n";
        assert_eq!(rate(csv), Some(34_013.61));
        assert_eq!(rate("\"test\",\"rps\",\"avg_latency_ms\"\n"), None);
    }

    #[test]
    fn drawn_keys_are_as_long_as_real_ones() {
        let call = claim_call("sml").unwrap();
        let key = call[3].replace(DRAWN, &"0".repeat(DRAWN_DIGITS));
        assert_eq!(key.len(), "sml:{}".len() + 64);
    }
}
