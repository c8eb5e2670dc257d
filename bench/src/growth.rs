//! First runs beside many settled keys against first runs beside few.

use anyhow::bail;
use async_trait::async_trait;
use bytes::Bytes;

use crate::first_run::FirstRuns;
use crate::grown::{Ground, Grown};
use crate::report::{Group, Row, Target, Unit};
use crate::rounds::{Contender, Pace, rounds};
use crate::table::grouped;

/// A store with few settled keys, a new one for each turn: what turns add would make it a larger one.
struct Small {
    ground: Ground,
    keys: u64,
}

const CALLERS: usize = 64;

const TARGET: Target = Target::RatioAtLeast(0.8);

/// How many times as many keys the larger store has.
const FACTOR: u64 = 100;

pub(crate) async fn measure(pace: Pace, keys: u64) -> anyhow::Result<Group> {
    if keys < FACTOR {
        bail!("--growth-keys {keys} is too few: give at least {FACTOR}");
    }
    let (mut conditions, mut rows, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for ground in Ground::all()? {
        let name = ground.name();
        eprintln!("  {name}: settling {keys} keys");
        conditions.push(ground.conditions().await?);
        let large = ground.grow(keys).await?;
        rows.push(compare(ground, &large, pace, keys).await?);
        weights.extend(large.weights.iter().map(|(what, bytes)| {
            let each = *bytes as f64 / keys as f64;
            Row::once(format!("{name}: {what}"), Unit::BytesPerKey, each)
        }));
    }
    rows.extend(weights);
    Ok(Group {
        title: "Growth: first runs beside settled keys",
        conditions,
        rows,
    })
}

/// What a turn adds does not change the size of the larger store by much.
async fn compare(ground: Ground, large: &Grown, pace: Pace, keys: u64) -> anyhow::Result<Row> {
    let (name, few) = (ground.name(), keys / FACTOR);
    let small = Small { ground, keys: few };
    let [large, small] = rounds(
        [
            ("the larger store", Box::new(first_runs(large))),
            ("the smaller store", Box::new(small)),
        ],
        pace,
    )
    .await?;
    let named = |keys: u64| format!("{} keys", grouped(keys as f64));
    let what = format!("{name}, {CALLERS} callers, {} (first runs)", named(keys));
    let row = Row::rate(what, &large).beside(named(few), &small);
    Ok(row.judged(TARGET))
}

// === impl Small ===

#[async_trait]
impl Contender for Small {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let store = self.ground.grow(self.keys).await?;
        first_runs(&store).turn(pace).await
    }
}

fn first_runs(store: &Grown) -> FirstRuns {
    FirstRuns {
        semel: store.semel.clone(),
        callers: CALLERS,
        label: Bytes::new(),
    }
}
