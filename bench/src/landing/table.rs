//! A table: COPY of groups against an INSERT per delivery, and against an INSERT of groups by `unnest`.

use std::sync::Arc;

use async_trait::async_trait;
use semel_landing::{Row as Landed, written};
use semel_postgres::{PostgresSettings, TableSettings, TableSink};
use tokio_postgres::{Client, Statement};

use super::{GROUP_ROWS, Groups, rows};
use crate::load;
use crate::pattern::connect;
use crate::postgres::{conditions, server};
use crate::report::{Group, Row, Target};
use crate::rounds::{Contender, Pace, rounds};

const TABLES: &str = include_str!("../../../warehouse/sql/postgres/ddl.sql");

/// Each delivery by itself.
const INSERT: &str = "INSERT INTO landing VALUES ($1, $2, $3, $4, $5::text::timestamptz, $6::text::timestamptz, $7, $8, $9, $10)";

/// A group in one statement.
const UNNEST: &str = "INSERT INTO landing SELECT e, f, m, s, p::timestamptz, r::timestamptz, d, a, v, b \
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], \
     $9::bigint[], $10::text[]) AS u (e, f, m, s, p, r, d, a, v, b)";

/// A statement that takes a row, or a group of them as arrays.
struct Inserts {
    client: Arc<Client>,
    statement: Statement,
    group: Arc<Vec<Landed>>,
    unnest: bool,
}

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let server = server()?;
    let database = async |name: &str| {
        let url = server.create_database(name)?;
        connect(&url).await?.batch_execute(TABLES).await?;
        anyhow::Ok(url)
    };
    let sink = TableSink::new(TableSettings {
        database: PostgresSettings::new(database("copy").await?),
        table: "landing".parse()?,
        answers: false,
    })?;
    let single = Inserts::new(&database("single").await?, false).await?;
    let unnest = Inserts::new(&database("unnest").await?, true).await?;
    let contenders: [(&'static str, Box<dyn Contender>); 3] = [
        ("COPY", Box::new(Groups::of(sink, GROUP_ROWS))),
        ("INSERT", Box::new(single)),
        ("unnest", Box::new(unnest)),
    ];
    let [copied, inserted, unnested] = rounds(contenders, pace).await?;
    let row = |what: &str| Row::rate(format!("COPY of {GROUP_ROWS} against {what}"), &copied);
    Ok(Group {
        title: "Landing in PostgreSQL",
        conditions: vec![
            conditions(&server).await?,
            "Rows of 1 KiB, one connection each, every commit waits for the disk.".into(),
        ],
        rows: vec![
            row("one insert per delivery")
                .beside("INSERT", &inserted)
                .judged(Target::RatioAtLeast(50.0)),
            row("insert of the same group by unnest")
                .beside("unnest", &unnested)
                .judged(Target::RatioAtLeast(3.0)),
        ],
    })
}

// === impl Inserts ===

impl Inserts {
    async fn new(url: &str, unnest: bool) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        let statement = client.prepare(if unnest { UNNEST } else { INSERT }).await?;
        let count = if unnest { GROUP_ROWS } else { 1 };
        Ok(Self {
            client: Arc::new(client),
            statement,
            group: Arc::new(rows(count)),
            unnest,
        })
    }
}

#[async_trait]
impl Contender for Inserts {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let (client, statement) = (Arc::clone(&self.client), self.statement.clone());
        let (group, unnest) = (Arc::clone(&self.group), self.unnest);
        load::rate(1, pace, move |_| {
            let (client, statement) = (Arc::clone(&client), statement.clone());
            let group = Arc::clone(&group);
            async move {
                if unnest {
                    insert_group(&client, &statement, &group).await?;
                } else if let Some(row) = group.first() {
                    insert(&client, &statement, row).await?;
                }
                Ok(group.len() as u64)
            }
        })
        .await
    }
}

async fn insert(client: &Client, statement: &Statement, row: &Landed) -> anyhow::Result<()> {
    let (published, received) = (written(row.published_at), written(row.received_at));
    let attempt = row.attempt.map(i64::try_from).transpose()?;
    let payload = row.payload_text();
    client
        .execute(
            statement,
            &[
                &row.event_id,
                &row.fingerprint,
                &row.message_id,
                &row.source,
                &published,
                &received,
                &row.delivery_id,
                &attempt,
                &row.version,
                &payload,
            ],
        )
        .await?;
    Ok(())
}

async fn insert_group(
    client: &Client,
    statement: &Statement,
    group: &[Landed],
) -> anyhow::Result<()> {
    fn all<'a, T>(group: &'a [Landed], of: impl Fn(&'a Landed) -> T) -> Vec<T> {
        group.iter().map(of).collect()
    }
    client
        .execute(
            statement,
            &[
                &all(group, |row| &row.event_id),
                &all(group, |row| &row.fingerprint),
                &all(group, |row| &row.message_id),
                &all(group, |row| row.source),
                &all(group, |row| written(row.published_at)),
                &all(group, |row| written(row.received_at)),
                &all(group, |row| &row.delivery_id),
                &all(group, |row| {
                    row.attempt.and_then(|it| i64::try_from(it).ok())
                }),
                &all(group, |row| row.version),
                &all(group, |row| row.payload_text()),
            ],
        )
        .await?;
    Ok(())
}
