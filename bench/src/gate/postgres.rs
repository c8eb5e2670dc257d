//! First runs on PostgreSQL against a handler that does the same by hand.

use std::sync::Arc;

use super::deliveries::{Rate, Reach};
use super::semel::{self, Binary, Log, Store};
use super::{fastapi, wrk::Names};
use crate::postgres::{conditions, server};
use crate::report::{Group, Row, Target};
use crate::rounds::{Pace, Series, rounds};
use crate::upstream::Upstream;

const TARGET: Target = Target::RatioAtLeast(3.0);

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let server = server()?;
    let handler = Arc::new(Upstream::start().await?);
    let start = async |database, log| {
        let store = Store::Postgres(server.create_database(database)?);
        semel::start(binary, &store, &handler, log).await
    };
    let gate = start("gate", Log::Default).await?;
    let quiet = start("quiet", Log::Warnings).await?;
    let by_hand = fastapi::start(&server.create_database("by_hand")?).await?;
    let through = |port| Rate::boxed(port, Names::Fresh, Reach::Handler(Arc::clone(&handler)));
    let alone = Rate::boxed(by_hand.port, Names::Fresh, Reach::NoHandler);
    let [runs, by_hand, quiet_runs] = rounds(
        [
            ("first runs", through(gate.port)),
            ("FastAPI, by hand", alone),
            ("first runs, quiet", through(quiet.port)),
        ],
        pace,
    )
    .await?;
    let row =
        |what: &str, rates: &Series| Row::rate(what, rates).beside("FastAPI, by hand", &by_hand);
    Ok(Group {
        title: "PostgreSQL store, 64 connections",
        conditions: vec![
            conditions(&server).await?,
            "Gate: before the same handler as above, with its default settings; PostgreSQL shares the cores, too.".into(),
            fastapi::conditions(),
        ],
        rows: vec![
            row("first runs", &runs).judged(TARGET),
            row("first runs, SEMEL_LOG=warn", &quiet_runs),
        ],
    })
}
