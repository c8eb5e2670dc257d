//! What is asked of the server before it is used, and what its settings mean for records.

use crate::connection::{OpenConnection, Target};
use crate::connections;
use crate::errors;
use crate::eviction;
use crate::settings::RedisSettings;
use redis::{Cmd, RedisError, Value};
use semel::Error;
use std::collections::HashMap;

/// The oldest server with functions: major and minor version.
const VERSION_MIN: (u32, u32) = (7, 0);

/// What the server's settings mean for the records kept there, in sentences for a log.
///
/// ```no_run
/// # async fn example() -> Result<(), semel::Error> {
/// use semel_redis::{RedisSettings, RedisStore};
///
/// let store = RedisStore::connect(RedisSettings::new("redis://127.0.0.1")).await?;
/// println!("{}", store.start_notes().durability);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartNotes {
    /// The server's version.
    pub version: String,
    /// How much a crash of the server's machine can lose.
    pub durability: String,
    /// What else an operator should know: failover, eviction.
    pub warnings: Vec<String>,
    /// The settings that this follows from.
    pub settings: DurabilitySettings,
}

/// What the server's settings were when the store connected, as far as they say what a crash or a failover can lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurabilitySettings {
    /// Whether it keeps an append-only file.
    pub appendonly: bool,
    /// When that reaches the disk; none when the server does not let it be read.
    pub appendfsync: Option<String>,
    /// Whether records go when memory is full.
    pub evicts: bool,
    /// How many replicas followed it.
    pub replicas: u32,
}

/// What the server says about itself, by the names of `INFO` and `CONFIG GET`.
#[derive(Debug, Default)]
struct Facts(HashMap<String, String>);

/// Asks the server whether it can keep records, and loads the library if it is missing.
pub(crate) async fn check(
    target: &Target,
    settings: &RedisSettings,
    probe: &Cmd,
) -> Result<StartNotes, Error> {
    let refused =
        |error: RedisError| errors::error_at_start(&error, &target.address, target.patience);
    let mut up = target.dial().await.map_err(refused)?;
    let facts = ask_facts(&mut up).await.map_err(refused)?;
    let notes = judge(&facts, settings, &target.address)?;
    probe_functions(&mut up, probe).await.map_err(refused)?;
    Ok(notes)
}

async fn ask_facts(up: &mut OpenConnection) -> Result<Facts, RedisError> {
    let mut facts = Facts::default();
    facts.add_info(&up.send(&redis::cmd("INFO")).await?);
    let mut config = redis::cmd("CONFIG");
    config.arg("GET").arg("maxmemory-policy").arg("appendfsync");
    // Managed servers forbid CONFIG; INFO has the policy too.
    if let Ok(answer) = up.send(&config).await {
        facts.add_config(answer);
    }
    if facts.is("cluster_enabled", "1") {
        facts.add_info(&up.send(redis::cmd("CLUSTER").arg("INFO")).await?);
    }
    Ok(facts)
}

/// Calls a function, so that missing rights show now and not with the first delivery.
async fn probe_functions(up: &mut OpenConnection, probe: &Cmd) -> Result<(), RedisError> {
    match up.send(probe).await {
        Err(error) if errors::is_missing_function(&error) => {
            up.send(&connections::load()).await?;
            up.send(probe).await.map(drop)
        }
        answer => answer.map(drop),
    }
}

/// Refuses a server that would lose or repeat work; says what is left to know.
fn judge(facts: &Facts, settings: &RedisSettings, address: &str) -> Result<StartNotes, Error> {
    let refuse = |what: String| Err(Error::invalid(format!("Redis at {address} {what}")));
    let version = facts.get("redis_version").to_owned();
    if parsed(&version).is_none_or(|version| version < VERSION_MIN) {
        let (major, minor) = VERSION_MIN;
        return refuse(format!(
            "has version {version:?}; functions need {major}.{minor} or later, upgrade it"
        ));
    }
    if facts.is("role", "slave") {
        return Err(Error::unavailable(format!(
            "Redis at {address} is a replica and takes no writes: name its master; nothing was written, a retry is safe"
        )));
    }
    let masters = facts.get("cluster_size").parse().unwrap_or(1_u32);
    if masters > 1 {
        return refuse(format!(
            "is one of {masters} masters of a cluster, which this store does not route to yet; use a single server"
        ));
    }
    let policy = facts.policy();
    let evicts = facts.evicts();
    if evicts && !settings.allow_eviction {
        return refuse(eviction::refusal(policy));
    }
    let eviction = evicts.then(|| {
        format!("maxmemory-policy {policy}: the work of an evicted record runs again (allow_eviction is set)")
    });
    Ok(StartNotes {
        version,
        durability: durability(facts),
        warnings: eviction
            .into_iter()
            .chain(failover(facts, settings))
            .collect(),
        settings: facts.durability_settings(),
    })
}

fn durability(facts: &Facts) -> String {
    let repeat = "and their work can then run twice";
    if !facts.is("aof_enabled", "1") {
        return format!(
            "appendonly no: acknowledged records since the last snapshot, or all of them, are lost when the server \
             ends, {repeat}"
        );
    }
    match facts.get("appendfsync") {
        "always" => "appendfsync always: acknowledged records are on the server's disk".into(),
        "everysec" => format!(
            "appendfsync everysec: up to about two seconds of acknowledged records can be lost when the machine \
             dies, {repeat}"
        ),
        "no" => format!(
            "appendfsync no: acknowledged records of half a minute or more can be lost when the machine dies, {repeat}"
        ),
        _ => format!(
            "appendfsync cannot be read: unless it is always, seconds of acknowledged records can be lost when the \
             machine dies, {repeat}"
        ),
    }
}

fn failover(facts: &Facts, settings: &RedisSettings) -> Option<String> {
    let replicas = facts.replicas();
    match settings.wait_replicas {
        Some(wait) => Some(format!(
            "wait_replicas: each write is confirmed by {} of {replicas} replicas; a failover to another one can still \
             lose it",
            wait.count
        )),
        None if replicas > 0 => Some(format!(
            "{replicas} replicas, asynchronous: a failover can lose acknowledged records, and their work can then run \
             twice"
        )),
        None => None,
    }
}

fn parsed(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

// === impl StartNotes ===

impl StartNotes {
    /// All sentences, one per line of a log.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        let warnings = self.warnings.iter().map(String::as_str);
        std::iter::once(self.durability.as_str()).chain(warnings)
    }
}

// === impl Facts ===

impl Facts {
    /// The value of that name; empty when the server did not say.
    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == value
    }

    fn policy(&self) -> &str {
        match self.get("maxmemory-policy") {
            "" => self.get("maxmemory_policy"),
            policy => policy,
        }
    }

    fn evicts(&self) -> bool {
        self.policy() != eviction::KEEPS
    }

    fn replicas(&self) -> u32 {
        self.get("connected_slaves").parse().unwrap_or(0)
    }

    fn durability_settings(&self) -> DurabilitySettings {
        let appendfsync = Some(self.get("appendfsync")).filter(|value| !value.is_empty());
        DurabilitySettings {
            appendonly: self.is("aof_enabled", "1"),
            appendfsync: appendfsync.map(str::to_owned),
            evicts: self.evicts(),
            replicas: self.replicas(),
        }
    }

    fn add_info(&mut self, answer: &Value) {
        let text = redis::from_redis_value_ref::<String>(answer).unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        self.0
            .extend(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())));
    }

    fn add_config(&mut self, answer: Value) {
        self.0
            .extend(redis::from_redis_value::<HashMap<String, String>>(answer).unwrap_or_default());
    }
}
