//! First runs on PostgreSQL against a handler that does the same by hand.

use std::sync::Arc;

use super::deliveries::{Rate, Reach};
use super::fastapi::{self, FastApi};
use super::report::{Group, Row, Target, Unit};
use super::semel::{Binary, Gate, Log, Store};
use super::upstream::Upstream;
use super::wrk::{Load, Names};
use crate::postgres::{conditions, server};
use crate::rounds::{Contenders, Pace, rounds};

const CONNECTIONS: usize = 64;
const TARGET: Target = Target::RatioAtLeast(3.0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Gate(Log),
    ByHand,
}

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let server = server()?;
    let handler = Arc::new(Upstream::start().await?);
    let (usual, quiet) = (
        server.create_database("usual")?,
        server.create_database("quiet")?,
    );
    let gate = Gate::start(binary, &Store::Postgres(usual), &handler, Log::Usual).await?;
    let warns = Gate::start(binary, &Store::Postgres(quiet), &handler, Log::Warnings).await?;
    let by_hand = FastApi::start(&server.create_database("by_hand")?).await?;
    let rate = |port, reach| Rate {
        load: Load {
            port,
            connections: CONNECTIONS,
            names: Names::Fresh,
        },
        reach,
    };
    let through = || Reach::Handler(Arc::clone(&handler));
    let contenders: Contenders<Id> = vec![
        (Id::Gate(Log::Usual), Box::new(rate(gate.port(), through()))),
        (Id::ByHand, Box::new(rate(by_hand.port(), Reach::NoHandler))),
        (
            Id::Gate(Log::Warnings),
            Box::new(rate(warns.port(), through())),
        ),
    ];
    let rates = rounds(contenders, pace).await?;
    let row = |what: &str, log| {
        let row = Row::new(what, Unit::PerSecond, rates.of(Id::Gate(log)));
        row.beside("FastAPI, by hand", rates.of(Id::ByHand))
    };
    Ok(Group {
        title: "PostgreSQL store, 64 connections",
        conditions: vec![
            conditions(&server).await?,
            "Gate: before the same handler as above, its own usual settings; PostgreSQL shares the cores, too.".into(),
            fastapi::conditions(),
        ],
        rows: vec![
            row("first runs", Log::Usual).judged(TARGET),
            row("first runs, SEMEL_LOG=warn", Log::Warnings),
        ],
    })
}
