//! Load by wrk: keep-alive connections that each send the next delivery as soon as the last one was answered.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use tokio::process::Command;

/// What wrk sends, where to, and on how many connections.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) port: u16,
    pub(crate) connections: usize,
    pub(crate) names: Names,
    /// What each delivery shows its sender by.
    pub(crate) token: Option<String>,
}

/// Under which task names.
#[derive(Debug, Clone)]
pub(crate) enum Names {
    /// Each under its own.
    Fresh,
    /// Under so many that begin with this, in turn.
    Few(String, u64),
}

/// What came of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Answered {
    pub(crate) requests: u64,
    microseconds: u64,
    connect: u64,
    read: u64,
    write: u64,
    timeout: u64,
    status: u64,
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gate/load.lua");
const BODY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gate/order.json");

/// More threads than cores that serve would only be in their way.
const THREADS_MAX: usize = 2;

/// An answer later than this is an error.
const TIMEOUT: &str = "10s";

// === impl Load ===

impl Load {
    /// Loads for a while; an answer of 400 or more, or none, makes it invalid.
    pub(crate) async fn run(&self, length: Duration) -> anyhow::Result<Answered> {
        let (prefix, names) = match &self.names {
            Names::Fresh => (fresh_prefix(), 0),
            Names::Few(prefix, names) => (prefix.clone(), *names),
        };
        let output = Command::new(testbed::find_program("wrk")?)
            .arg(format!("-t{}", self.connections.min(THREADS_MAX)))
            .arg(format!("-c{}", self.connections))
            .arg(format!("-d{}s", length.as_secs()))
            .args(["--timeout", TIMEOUT, "-s", SCRIPT])
            .arg(format!("http://127.0.0.1:{}/orders", self.port))
            .args(["--", BODY, &prefix, &names.to_string()])
            .args(&self.token)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot run wrk")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().last().unwrap_or_default();
        let answered: Answered = serde_json::from_str(last).with_context(|| {
            let complaints = String::from_utf8_lossy(&output.stderr);
            format!("wrk told no result: {said}{complaints}")
        })?;
        answered.valid()
    }
}

/// The first part of names that nobody has used before.
pub(crate) fn fresh_prefix() -> String {
    format!("{:016x}", rand::random::<u64>())
}

// === impl Answered ===

impl Answered {
    pub(crate) fn per_second(&self) -> f64 {
        self.requests as f64 * 1e6 / self.microseconds as f64
    }

    fn valid(self) -> anyhow::Result<Self> {
        let Self {
            requests,
            connect,
            read,
            write,
            timeout,
            status,
            ..
        } = self;
        if requests == 0 || connect + read + write + timeout + status > 0 {
            bail!(
                "a measurement with errors is worth nothing: {requests} requests, {status} answered with 400 or more, \
                 {timeout} late, {connect} failed connections, {read} failed reads, {write} failed writes"
            );
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u64) -> Answered {
        let text = format!(
            r#"{{"requests":100,"microseconds":500000,"connect":0,"read":0,"write":0,"timeout":0,"status":{status}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn rate_is_taken_over_the_time_that_wrk_tells() {
        let answered = told(0).valid().unwrap();
        assert!((answered.per_second() - 200.0).abs() < 1e-9);
    }

    #[test]
    fn one_refused_delivery_makes_a_measurement_invalid() {
        let error = told(1).valid().unwrap_err().to_string();
        assert!(error.contains("1 answered with 400"), "{error}");
    }

    #[test]
    fn body_is_one_kibibyte_of_json() {
        let body = std::fs::read(BODY).unwrap();
        assert_eq!(body.len(), 1024);
        serde_json::from_slice::<serde_json::Value>(&body).unwrap();
    }
}
