//! First runs on Redis against `redis-benchmark` with the same call.

use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use semel::{Semel, Settings, Store};
use semel_redis::{RedisSettings, RedisStore};
use testbed::Redis;

use crate::disk;
use crate::first_run::FirstRuns;
use crate::redis_benchmark::{RedisBenchmark, claim_call};
use crate::report::{Group, Row, Target};
use crate::rounds::{Pace, Series, rounds};

const CALLERS: usize = 64;

/// A first run calls the claim and the completion.
const CALLS_PER_RUN: f64 = 2.0;

const TARGET: Target = Target::RatioAtLeast(0.5);

/// The append-only file is not rewritten by itself: that would fall into one contender's turn and not into the
/// other's.
const SERVER: &[(&str, &str)] = &[("auto-aof-rewrite-percentage", "0")];

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let server = server()?;
    let settings = RedisSettings::new(server.url());
    let benchmark = |connections| {
        anyhow::Ok(RedisBenchmark {
            port: server.port(),
            connections,
            pipeline: CALLERS / connections,
            call: claim_call(&settings.prefix)?,
        })
    };
    // As many connections and as many calls under way on each as the library has; a connection for each caller.
    let (matched, apart) = (benchmark(settings.connections)?, benchmark(CALLERS)?);
    let (matched_name, apart_name) = (matched.name(), apart.name());
    let library = FirstRuns {
        semel: Semel::with_settings(open(&server).await?, Settings::default()),
        callers: CALLERS,
        label: Bytes::new(),
    };
    let [library, matched, apart] = rounds(
        [
            ("the library", Box::new(library)),
            ("redis-benchmark", Box::new(matched)),
            ("redis-benchmark, apart", Box::new(apart)),
        ],
        pace,
    )
    .await?;
    let calls = library.times(CALLS_PER_RUN);
    let row = |name: String, baseline: &Series| {
        let row = Row::rate(format!("{CALLERS} callers (script calls)"), &calls);
        row.beside(name, baseline).judged(TARGET)
    };
    Ok(Group {
        title: "Redis: first runs",
        conditions: vec![
            conditions(&server).await?,
            format!(
                "The library has {} connections, so its {CALLERS} callers have up to {} calls under way on each: the \
                 first baseline has just as many, the second a connection for each caller.",
                settings.connections,
                CALLERS / settings.connections
            ),
            "A first run is two calls, claim and completion; redis-benchmark sends the claim, with random keys.".to_owned(),
        ],
        rows: vec![row(matched_name, &matched), row(apart_name, &apart)],
    })
}

/// A private server with the settings that all of this program's Redis measurements have.
pub(crate) fn server() -> anyhow::Result<Redis> {
    disk::servers_have_one()?;
    Redis::start(SERVER)
}

/// The settings, as the server itself tells them.
pub(crate) async fn conditions(server: &Redis) -> anyhow::Result<String> {
    let notes = RedisStore::connect(RedisSettings::new(server.url())).await?;
    let mut line = connection(server).await?;
    let mut told = vec![format!("Redis: version {}", notes.start_notes().version)];
    for name in ["appendonly", "appendfsync", "auto-aof-rewrite-percentage"] {
        let mut ask = redis::cmd("CONFIG");
        let (_, value): (String, String) = ask.arg("GET").arg(name).query_async(&mut line).await?;
        told.push(format!("{name} {value}"));
    }
    Ok(format!("{}.", told.join(", ")))
}

/// A plain connection.
pub(crate) async fn connection(
    server: &Redis,
) -> anyhow::Result<redis::aio::MultiplexedConnection> {
    let client = redis::Client::open(server.url())?;
    let connection = client.get_multiplexed_async_connection().await;
    connection.context("cannot connect to Redis")
}

/// A store on an empty server.
pub(crate) async fn open(server: &Redis) -> anyhow::Result<Arc<dyn Store>> {
    let store = RedisStore::connect(RedisSettings::new(server.url())).await?;
    Ok(Arc::new(store))
}
