//! `bench landing`: rows in groups against rows one by one, merges within a horizon against merges over everything, and
//! routes without records against those with them.

mod table;
mod files;
mod merge;
mod stateless;

use async_trait::async_trait;
use clap::ValueEnum;
use jiff::Timestamp;
use semel_landing::{Row, Sink};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

use crate::gate::semel::Binary;
use crate::load;
use crate::measurement::Flags;
use crate::rounds::{Contender, Pace};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct LandingArgs {
    #[command(flatten)]
    flags: Flags<LandingPart>,
    /// The program to measure; built from this repository unless given.
    #[arg(long, value_name = "PATH")]
    semel: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LandingPart {
    /// Rows into PostgreSQL.
    Table,
    /// Rows into files.
    Files,
    /// Merges of landed rows, on DuckDB.
    Merge,
    /// Deliveries through a gate without records.
    Stateless,
}

const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(4);

/// How many rows a group has.
const GROUP_ROWS: usize = 1_000;

/// Measures, and returns what there is to say.
pub(crate) async fn landing(args: &LandingArgs) -> anyhow::Result<String> {
    let pace = args.flags.pace(WARM_UP, WINDOW);
    let measure = async |part: &LandingPart| match part {
        LandingPart::Table => table::measure(pace).await,
        LandingPart::Files => files::measure(pace).await,
        LandingPart::Merge => merge::measure(pace),
        LandingPart::Stateless => {
            let binary = Binary::given(args.semel.as_deref())?;
            stateless::measure(&binary, pace).await
        }
    };
    args.flags.report(pace, measure).await
}

/// Writes the same group to a sink again and again.
struct Groups<S> {
    sink: Arc<Mutex<S>>,
    group: Arc<Vec<Row>>,
}

// === impl Groups ===

impl<S> Groups<S> {
    fn of(sink: S, count: usize) -> Self {
        Self {
            sink: Arc::new(Mutex::new(sink)),
            group: Arc::new(rows(count)),
        }
    }
}

#[async_trait]
impl<S: Sink> Contender for Groups<S> {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let (sink, group) = (Arc::clone(&self.sink), Arc::clone(&self.group));
        load::rate(1, pace, move |_| {
            let (sink, group) = (Arc::clone(&sink), Arc::clone(&group));
            async move {
                let rows: Vec<_> = group.iter().collect();
                sink.lock().await.write(&rows).await?;
                Ok(rows.len() as u64)
            }
        })
        .await
    }
}

/// Rows of 1 KiB, as deliveries of Pub/Sub make them.
fn rows(count: usize) -> Vec<Row> {
    let payload = format!("{{\"order\": 7, \"note\": \"{}\"}}", "x".repeat(996));
    let row = || {
        let key = format!("v1_{}", hex());
        Row {
            message_id: "11223344556677".into(),
            published_at: Timestamp::UNIX_EPOCH,
            received_at: Timestamp::UNIX_EPOCH,
            delivery_id: format!("{:032x}", rand::random::<u128>()),
            attempt: Some(1),
            ..Row::new("pubsub", payload.clone()).named(key, hex())
        }
    };
    (0..count).map(|_| row()).collect()
}

fn hex() -> String {
    format!(
        "{:032x}{:032x}",
        rand::random::<u128>(),
        rand::random::<u128>()
    )
}
