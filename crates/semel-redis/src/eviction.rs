//! Whether the server evicts records. It is asked at the start, whenever a connection is made, and by every health check:
//! `CONFIG SET maxmemory-policy` takes effect without a restart.

use crate::connection::OpenConnection;
use crate::connections::{Connections, Size};
use redis::{Cmd, Value};
use semel::Error;
use std::collections::HashMap;

/// The one policy that keeps what it was given.
pub(crate) const KEEPS: &str = "noeviction";

/// Why a server with this policy cannot be used.
pub(crate) fn refusal(policy: &str) -> String {
    format!(
        "has maxmemory-policy {policy}: it may evict a record, and the work of an evicted record runs again. Fix it \
         with CONFIG SET maxmemory-policy {KEEPS} (and in redis.conf or your provider's settings); a Rust program to \
         which a second run is harmless may set RedisSettings::allow_eviction instead"
    )
}

/// Asks the server; refuses what evicts.
pub(crate) async fn check(connections: &Connections, address: &str) -> Result<(), Error> {
    let policy = match connections.ask(&config(), Size::Small).await {
        Ok(answer) => in_config(answer),
        // Managed servers forbid CONFIG; INFO has the policy too.
        Err(_) => None,
    };
    let policy = match policy {
        Some(policy) => policy,
        None => in_info(&connections.ask(&info(), Size::Small).await?).unwrap_or_default(),
    };
    if policy == KEEPS {
        return Ok(());
    }
    Err(Error::denied(format!(
        "Redis at {address} {}; nothing was written, a retry succeeds once it is fixed",
        refusal(&policy)
    )))
}

/// Asks over a connection that was just made, and raises the alarm: there is nobody to tell.
pub(crate) async fn alarm(up: &mut OpenConnection, address: &str) {
    let config = up.send(&config()).await.ok().and_then(in_config);
    let policy = match config {
        Some(policy) => Some(policy),
        None => up.send(&info()).await.ok().as_ref().and_then(in_info),
    };
    if let Some(policy) = policy.filter(|policy| policy != KEEPS) {
        tracing::error!("Redis at {address} {}", refusal(&policy));
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
