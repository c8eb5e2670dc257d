//! The server's eviction policy. It is read at the start, whenever a connection is made, and by every health check:
//! `CONFIG SET maxmemory-policy` takes effect without a restart. While it evicts, no claim is made.

use crate::connection::OpenConnection;
use crate::connections::{Connections, Size};
use redis::{Cmd, Value};
use semel::Error;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The one policy that keeps what it was given.
pub(crate) const KEEPS: &str = "noeviction";

/// The policy as it was last read, shared by a store and its connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Eviction {
    is_on: Arc<AtomicBool>,
}

/// Why a server with this policy cannot be used.
pub(crate) fn refusal(policy: &str) -> String {
    format!(
        "has maxmemory-policy {policy}: it may evict a record, and the work of an evicted record runs again. Fix it \
         with CONFIG SET maxmemory-policy {KEEPS} (and in redis.conf or your provider's settings); a Rust program to \
         which a second run is harmless may set RedisSettings::allow_eviction instead"
    )
}

// === impl Eviction ===

impl Eviction {
    /// Refuses a claim while the server evicts: the work of an evicted record would run again.
    pub(crate) async fn refuse_claims(
        &self,
        connections: &Connections,
        address: &str,
    ) -> Result<(), Error> {
        if self.is_on.load(Ordering::Relaxed) {
            return self.check(connections, address).await;
        }
        Ok(())
    }

    /// Reads the policy; refuses a server that evicts.
    pub(crate) async fn check(
        &self,
        connections: &Connections,
        address: &str,
    ) -> Result<(), Error> {
        let policy = policy(connections).await?;
        self.is_on.store(policy != KEEPS, Ordering::Relaxed);
        if policy == KEEPS {
            return Ok(());
        }
        Err(Error::denied(format!(
            "Redis at {address} {}; nothing was written, a retry succeeds once it is fixed",
            refusal(&policy)
        )))
    }

    /// Reads the policy over a new connection, and logs an error: the caller expects no answer.
    pub(crate) async fn alarm(&self, up: &mut OpenConnection, address: &str) {
        let config = up.send(&config()).await.ok().and_then(in_config);
        let policy = match config {
            Some(policy) => Some(policy),
            None => up.send(&info()).await.ok().as_ref().and_then(in_info),
        };
        if let Some(policy) = policy.filter(|policy| policy != KEEPS) {
            self.is_on.store(true, Ordering::Relaxed);
            tracing::error!("Redis at {address} {}", refusal(&policy));
        }
    }
}

async fn policy(connections: &Connections) -> Result<String, Error> {
    let config = match connections.ask(&config(), Size::Small).await {
        Ok(answer) => in_config(answer),
        // Managed servers forbid CONFIG; INFO has the policy too.
        Err(_) => None,
    };
    match config {
        Some(policy) => Ok(policy),
        None => Ok(in_info(&connections.ask(&info(), Size::Small).await?).unwrap_or_default()),
    }
}

fn config() -> Cmd {
    let mut config = redis::cmd("CONFIG");
    config.arg("GET").arg("maxmemory-policy");
    config
}

fn info() -> Cmd {
    let mut info = redis::cmd("INFO");
    info.arg("memory");
    info
}

fn in_config(answer: Value) -> Option<String> {
    let mut all = redis::from_redis_value::<HashMap<String, String>>(answer).ok()?;
    all.remove("maxmemory-policy")
}

fn in_info(answer: &Value) -> Option<String> {
    let text = redis::from_redis_value_ref::<String>(answer).ok()?;
    let mut lines = text.lines();
    let policy = lines.find_map(|line| line.strip_prefix("maxmemory_policy:"))?;
    Some(policy.trim().to_owned())
}
