//! First runs beside many settled keys against first runs beside few.

use anyhow::bail;
use async_trait::async_trait;

use crate::first_run::FirstRuns;
use crate::grown::{Ground, Grown};
use crate::report::{Fact, Group, Row};
use crate::rounds::{Contender, Contenders, Pace, rounds};
use crate::table::grouped;

/// A store with many settled keys. What a turn adds does not change its size by much.
struct Large(Grown);

/// A store with few settled keys, a new one for each turn: what turns add would make it a larger one.
struct Small {
    ground: Ground,
    keys: u64,
}

const CALLERS: usize = 64;

const TARGET: f64 = 0.8;

/// How many times as many keys the larger store has.
const FACTOR: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Large,
    Small,
}

pub(crate) async fn measure(pace: Pace, keys: u64) -> anyhow::Result<Group> {
    if keys < FACTOR {
        bail!("--growth-keys {keys} is too few: give at least {FACTOR}");
    }
    let mut group = Group {
        title: "Growth: first runs beside settled keys",
        conditions: Vec::new(),
        rows: Vec::new(),
        facts: Vec::new(),
    };
    for ground in Ground::all()? {
        eprintln!("  {}: settling {keys} keys", ground.name());
        group.conditions.push(ground.conditions().await?);
        let (row, facts) = compare(&ground, pace, keys).await?;
        group.rows.push(row);
        group.facts.extend(facts);
    }
    Ok(group)
}

async fn compare(ground: &Ground, pace: Pace, keys: u64) -> anyhow::Result<(Row, Vec<Fact>)> {
    let (name, few) = (ground.name(), keys / FACTOR);
    let mut large = ground.grow(keys).await?;
    let mut facts = std::mem::take(&mut large.facts);
    for fact in &mut facts {
        fact.name = format!("{name}: {}", fact.name);
    }
    let small = Small {
        ground: ground.clone(),
        keys: few,
    };
    let contenders: Contenders<Id> = vec![
        (Id::Large, Box::new(Large(large))),
        (Id::Small, Box::new(small)),
    ];
    let rates = rounds(contenders, pace).await?;
    let row = Row::ratio(
        format!("{name}, {CALLERS} callers, {}", named(keys)),
        "first runs",
        rates.of(Id::Large),
        (named(few), rates.of(Id::Small)),
        TARGET,
    );
    Ok((row, facts))
}

fn named(keys: u64) -> String {
    format!("{} keys", grouped(keys as f64))
}

// === impl Large ===

#[async_trait]
impl Contender for Large {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        first_runs(&self.0, pace).await
    }
}

// === impl Small ===

#[async_trait]
impl Contender for Small {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let store = self.ground.grow(self.keys).await?;
        first_runs(&store, pace).await
    }
}

async fn first_runs(store: &Grown, pace: Pace) -> anyhow::Result<f64> {
    let mut runs = FirstRuns {
        semel: store.semel.clone(),
        callers: CALLERS,
    };
    runs.turn(pace).await
}
