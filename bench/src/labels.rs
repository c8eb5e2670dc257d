//! First runs whose records say what they are about, as a gate's do, against first runs that say nothing.

use bytes::Bytes;
use semel::{Semel, Settings};

use crate::first_run::FirstRuns;
use crate::report::{Group, Row, Target};
use crate::rounds::{NamedContender, Pace, Series, rounds_of};
use crate::{disk, embedded, postgres};

const CALLERS: usize = 64;

/// What a label may cost.
const TARGET: Target = Target::RatioAtLeast(0.95);

/// A label as a gate writes it of a task.
pub(crate) const LABEL: &str = r#"{"route":"charge","source":"cloud-tasks","gate":"gate-7f9c5:8080","id":"7318650291834710235","from":"orders","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","parts":{"order_id":"A-1001"},"digests":"5c2d1e8f9a0b3c4d----------------7e6f5a4b"}"#;

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let dir = disk::directory()?;
    let server = postgres::server()?;
    let stores = [
        embedded::open(dir.path())?,
        postgres::open(&server.create_database("labels")?).await?,
    ];
    let mut contenders = Vec::new();
    for store in stores {
        contenders.extend(pair(&Semel::with_settings(store, Settings::default())));
    }
    let rates = rounds_of(contenders, pace).await?;
    let rows = ["embedded", "PostgreSQL"]
        .into_iter()
        .zip(rates.chunks_exact(2));
    Ok(Group {
        title: "Labels: what it costs that records say what they are about",
        conditions: vec![
            format!(
                "A label of {} B, the same for all; {CALLERS} callers.",
                LABEL.len()
            ),
            postgres::conditions(&server).await?,
        ],
        rows: rows.map(row).collect(),
    })
}

/// The same store with and without a label.
fn pair(semel: &Semel) -> [NamedContender; 2] {
    let runs = |label| {
        Box::new(FirstRuns {
            semel: semel.clone(),
            callers: CALLERS,
            label,
        })
    };
    [
        ("with a label", runs(Bytes::from_static(LABEL.as_bytes()))),
        ("without", runs(Bytes::new())),
    ]
}

fn row((store, pair): (&str, &[Series])) -> Row {
    let [labelled, plain] = pair else {
        unreachable!("contenders come in pairs");
    };
    Row::rate(format!("{store} (first runs with a label)"), labelled)
        .beside("without", plain)
        .judged(TARGET)
}
