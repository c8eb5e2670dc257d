//! First runs on PostgreSQL against the hand-written pattern.

use std::sync::Arc;

use bytes::Bytes;
use semel::store::Letters;
use semel::{Semel, Settings};
use semel_postgres::{PostgresSettings, PostgresStore};
use testbed::Postgres;
use tokio_postgres::Client;

use crate::disk;
use crate::first_run::{BODY_BYTES, FirstRuns};
use crate::pattern::{Pattern, connect};
use crate::report::{Group, Row, Target};
use crate::rounds::{NamedContender, Pace, Series, rounds_of};

/// What this measurement adds to PostgreSQL's defaults: memory for all rows, and no checkpoint by itself, which
/// would fall into one contender's turn and not into the other's. Durability stays as it is.
const SERVER: &[(&str, &str)] = &[
    ("shared_buffers", "2GB"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
];

/// What is told of the server's settings.
const TOLD: [&str; 6] = [
    "server_version",
    "fsync",
    "synchronous_commit",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
];

/// How many callers, and what the library must reach there. Alone it has nothing to group, and may cost 15 %.
const TARGETS: [(usize, f64); 3] = [(1, 0.85), (64, 4.0), (256, 5.0)];

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let server = server()?;
    let semel = Semel::with_settings(
        open(&server.create_database("library")?).await?,
        Settings::default(),
    );
    let callers_max = TARGETS.iter().map(|(callers, _)| *callers).max();
    let url = server.create_database("pattern")?;
    let pattern = Pattern::connect(&url, callers_max.unwrap_or(1)).await?;
    let rates = rounds_of(contenders(&semel, &pattern), pace).await?;
    Ok(Group {
        title: "PostgreSQL: first runs",
        conditions: vec![
            conditions(&server).await?,
            format!(
                "The library has up to {} connections, whatever the number of callers.",
                PostgresSettings::new("").pool_size
            ),
            format!(
                "Baseline: `INSERT … ON CONFLICT DO NOTHING`, then `UPDATE … SET state, result` of {BODY_BYTES} B, two \
                 transactions, tokio-postgres, prepared statements, a connection for each caller."
            ),
        ],
        rows: rates.chunks_exact(2).zip(TARGETS).map(row).collect(),
    })
}

/// For each number of callers the library, then the pattern.
fn contenders(semel: &Semel, pattern: &Pattern) -> Vec<NamedContender> {
    let pair = |(callers, _)| -> [NamedContender; 2] {
        let semel = semel.clone();
        [
            (
                "the library",
                Box::new(FirstRuns {
                    semel,
                    callers,
                    label: Bytes::new(),
                }),
            ),
            ("the pattern", Box::new(pattern.with(callers))),
        ]
    };
    TARGETS.map(pair).into_iter().flatten().collect()
}

fn row((pair, (callers, at_least)): (&[Series], (usize, f64))) -> Row {
    let [library, pattern] = pair else {
        unreachable!("contenders come in pairs");
    };
    let plural = if callers == 1 { "" } else { "s" };
    Row::rate(format!("{callers} caller{plural} (first runs)"), library)
        .beside("insert, then update", pattern)
        .judged(Target::RatioAtLeast(at_least))
}

/// A private server with the settings that all of this program's PostgreSQL measurements have.
pub(crate) fn server() -> anyhow::Result<Postgres> {
    server_with(&[])
}

/// The same with more settings.
pub(crate) fn server_with(more: &[(&str, &str)]) -> anyhow::Result<Postgres> {
    disk::servers_have_one()?;
    Postgres::start_with(&[SERVER, more].concat())
}

/// The settings, as the server itself tells them.
pub(crate) async fn conditions(server: &Postgres) -> anyhow::Result<String> {
    let client = connect(&server.url()).await?;
    let mut told = Vec::new();
    for name in TOLD {
        told.push(format!("{name} {}", show(&client, name).await?));
    }
    Ok(format!("PostgreSQL: {}.", told.join(", ")))
}

async fn show(client: &Client, name: &str) -> anyhow::Result<String> {
    let row = client.query_one(&format!("SHOW {name}"), &[]).await?;
    Ok(row.try_get(0)?)
}

/// A store in an empty database.
pub(crate) async fn open(url: &str) -> anyhow::Result<Arc<dyn Letters>> {
    let store = PostgresStore::connect(PostgresSettings::new(url)).await?;
    Ok(Arc::new(store))
}
