//! First runs of a gate as it stands in production: senders verified by their tokens, traces at 1 %, metrics scraped;
//! against the same gate without.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;

use super::deliveries::{CONNECTIONS, Rate, Reach};
use super::issuer::{AUDIENCE, EMAIL, Issuer};
use super::semel::{self, Binary, Log, Store};
use super::wrk::Names;
use crate::report::{Group, Row, Target};
use crate::rounds::{Contender, Pace, rounds};
use crate::running::{Ready, Running, ask};
use crate::upstream::Upstream;

const TARGET: Target = Target::RatioAtLeast(0.85);

/// Fifteen times as often as Prometheus scrapes by default.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);

/// Deliveries to a gate whose metrics are scraped meanwhile.
struct Scraped {
    rate: Box<Rate>,
    metrics: Ready,
}

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let receiver = Upstream::start().await?;
    let issuer = Issuer::start().await?;
    let (watched, metrics) = start_watched(binary, &handler, &receiver, &issuer).await?;
    let plain = semel::start(binary, &Store::Embedded, &handler, Log::Default).await?;
    let to_handler = || Reach::Handler(Arc::clone(&handler));
    let scraped = Scraped {
        rate: Rate::with_token(watched.port, Names::Fresh, to_handler(), issuer.token()?),
        metrics,
    };
    let contenders: [(_, Box<dyn Contender>); 2] = [
        ("first runs, watched", Box::new(scraped)),
        (
            "first runs",
            Rate::boxed(plain.port, Names::Fresh, to_handler()),
        ),
    ];
    let [watched, plain] = rounds(contenders, pace).await?;
    if receiver.count().await? == 0 {
        bail!("no span reached its receiver");
    }
    let row = Row::rate("first runs, OIDC, traces at 1 %, metrics", &watched);
    Ok(Group {
        title: "Verified, traced and scraped, embedded store, 64 connections",
        conditions: vec![format!(
            "wrk with {CONNECTIONS} connections, each delivery with an RS256 token that the gate verifies by a key set; 1 % \
             of the traces sampled and sent to a receiver on this host (OTLP over HTTP), /metrics read every \
             {SCRAPE_EVERY:?}. Beside it the same gate with none of this. Both write a JSON line for each delivery."
        )],
        rows: vec![row.beside("without these", &plain).judged(TARGET)],
    })
}

/// The gate, and where its metrics are.
async fn start_watched(
    binary: &Binary,
    handler: &Upstream,
    receiver: &Upstream,
    issuer: &Issuer,
) -> anyhow::Result<(Running, Ready)> {
    let verify = format!(
        "verify = \"{}\"\nkeys_url = \"{}\"\naudience = \"{AUDIENCE}\"\nemails = [\"{EMAIL}\"]\n",
        issuer.name(),
        issuer.keys_url()
    );
    let endpoint = format!("http://127.0.0.1:{}", receiver.port());
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.01"),
    ];
    let (running, admin) = semel::start_watched(binary, handler, &verify, &variables).await?;
    let metrics = Ready {
        port: admin,
        path: "/metrics",
    };
    Ok((running, metrics))
}

#[async_trait]
impl Contender for Scraped {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let scrapes = async {
            loop {
                tokio::time::sleep(SCRAPE_EVERY).await;
                if let Err(error) = ask(self.metrics).await {
                    return error;
                }
            }
        };
        let rate = tokio::select! {
            rate = self.rate.turn(pace) => rate?,
            error = scrapes => return Err(error.context("the metrics could not be read")),
        };
        let told = ask(self.metrics).await?;
        if told
            .lines()
            .any(|line| line.starts_with("semel_spans_dropped_total{"))
        {
            bail!("spans were dropped");
        }
        let sent = told
            .lines()
            .find(|line| line.starts_with("semel_spans_sent_total"));
        sent.context("the gate sends no spans")?;
        Ok(rate)
    }
}
