//! Deliveries through a route without records, against one with records on the embedded store; and with a span for each
//! delivery and its call, against none.

use std::sync::Arc;

use anyhow::bail;

use crate::gate::deliveries::{CONNECTIONS, Rate, Reach};
use crate::gate::semel::{self, Binary};
use crate::gate::wrk::Names;
use crate::report::{Group, Row, Target};
use crate::rounds::{Pace, rounds};
use crate::running::{Ready, ask};
use crate::upstream::Upstream;

const NO_RECORDS: &str = "record = \"none\"\n";

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let receiver = Upstream::start().await?;
    let endpoint = format!("http://127.0.0.1:{}", receiver.port());
    let spans = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let (none, _) = semel::start_watched(binary, &handler, NO_RECORDS, &[]).await?;
    let (traced, admin) = semel::start_watched(binary, &handler, NO_RECORDS, &spans).await?;
    let (recorded, _) = semel::start_watched(binary, &handler, "", &[]).await?;
    let fresh = |port| Rate::boxed(port, Names::Fresh, Reach::Handler(Arc::clone(&handler)));
    let [stateless, traced, recorded] = rounds(
        [
            ("without records", fresh(none.port)),
            ("with spans", fresh(traced.port)),
            ("with records", fresh(recorded.port)),
        ],
        pace,
    )
    .await?;
    let [sent, dropped] = spans_of(admin).await?;
    if sent == 0 {
        bail!("no span reached its receiver");
    }
    Ok(Group {
        title: "Routes without records",
        conditions: vec![
            format!(
                "POST of 1 KiB JSON as Cloud Tasks sends it, each under a new name, wrk with {CONNECTIONS} connections; records \
                 on the embedded store."
            ),
            format!(
                "Spans: every delivery, to a receiver on this host (OTLP over HTTP); {sent} were sent, and {dropped} dropped, \
                 because no delivery waits for them."
            ),
        ],
        rows: vec![
            Row::rate("deliveries, record = \"none\"", &stateless)
                .beside("recorded", &recorded)
                .judged(Target::RatioAtLeast(1.0)),
            Row::rate("deliveries, record = \"none\", spans on", &traced)
                .beside("spans off", &stateless)
                .judged(Target::RatioAtLeast(0.9)),
        ],
    })
}

/// How many spans the gate has sent, and how many it has dropped.
async fn spans_of(admin: u16) -> anyhow::Result<[u64; 2]> {
    let metrics = Ready {
        port: admin,
        path: "/metrics",
    };
    let told = ask(metrics).await?;
    let counted = |name: &str| {
        let lines = told.lines().filter(|line| line.starts_with(name));
        let numbers = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        numbers.sum()
    };
    Ok([
        counted("semel_spans_sent_total"),
        counted("semel_spans_dropped_total"),
    ])
}
