//! The driver of a race: starts the processes, waits for them, and reads what they wrote.

use super::call::Call;
use super::log;
use super::worker::RacerConfig;
use anyhow::Context;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// How much longer than its time a process may take.
const LATE_MAX: Duration = Duration::from_secs(20);

/// Runs the processes to their end.
///
/// # Errors
/// When one cannot be started, fails, or does not end.
pub async fn drive(program: &Path, configs: &[RacerConfig]) -> anyhow::Result<Vec<Call>> {
    let mut workers = Vec::new();
    for config in configs {
        let worker = Command::new(program)
            .args(["worker", &serde_json::to_string(config)?])
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a worker")?;
        workers.push(worker);
    }
    for (mut worker, config) in workers.into_iter().zip(configs) {
        let status = timeout(config.lasts + LATE_MAX, worker.wait())
            .await
            .with_context(|| format!("worker {} does not end", config.worker))??;
        anyhow::ensure!(
            status.success(),
            "worker {} ended with {status}",
            config.worker
        );
    }
    let mut calls = Vec::new();
    for config in configs {
        calls.extend(log::read(&config.log())?);
    }
    Ok(calls)
}
