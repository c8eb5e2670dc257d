//! Merges into tables that have grown, on DuckDB: within the horizon against over the whole table.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::disk;
use crate::report::{Group, Row, Target, Unit};
use crate::rounds::{Pace, Series};

/// What brings DuckDB.
const REQUIREMENTS: &str = include_str!("../../../warehouse/requirements.txt");

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/merge.py");

/// How many rows the tables have: one, ten and forty times as many days.
const SMALL: &str = "100000";
const MIDDLE: &str = "1000000";
const LARGE: &str = "4000000";

const BATCH_ROWS: f64 = 10_000.0;

/// The seconds of each round, by table and form.
struct Merges(BTreeMap<String, Vec<f64>>);

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Group> {
    let merges = Merges::run(pace)?;
    let against_whole = |rows: &str, times: f64| {
        let row = Row::rate(
            format!("rows merged into {rows}, within the horizon"),
            &merges.rate(rows, "horizon")?,
        );
        let whole = merges.rate(rows, "whole")?;
        let target = Target::RatioAtLeast(times);
        anyhow::Ok(row.beside("over the whole table", &whole).judged(target))
    };
    let grown = Row::new(
        format!("merge into {MIDDLE}, within the horizon"),
        Unit::Millis,
        &merges.millis(MIDDLE, "horizon")?,
    );
    let grown = grown.beside(format!("into {SMALL}"), &merges.millis(SMALL, "horizon")?);
    Ok(Group {
        title: "Merges on DuckDB",
        conditions: vec![
            "Batches of 10 000 rows, a tenth of them repeats, into tables with 10 000 rows per day, in a file with its \
             primary key; horizon: 7 days. The statements are those that `semel warehouse sql` prints."
                .into(),
        ],
        rows: vec![
            against_whole(MIDDLE, 3.0)?,
            against_whole(LARGE, 5.0)?,
            grown.judged(Target::RatioAtMost(1.5)),
        ],
    })
}

// === impl Merges ===

impl Merges {
    fn run(pace: Pace) -> anyhow::Result<Self> {
        let python = testbed::python_with("python-warehouse", REQUIREMENTS)?;
        let home = disk::directory()?;
        let mut command = Command::new(python);
        command.arg(SCRIPT).arg(home.path());
        command.args([&pace.rounds.to_string(), SMALL, MIDDLE, LARGE]);
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.context("cannot start the merges")?;
        if !output.status.success() {
            bail!("the merges ended with {}", output.status);
        }
        let seconds = serde_json::from_slice(&output.stdout);
        Ok(Self(seconds.context("the merges told no seconds")?))
    }

    fn rate(&self, rows: &str, form: &str) -> anyhow::Result<Series> {
        let per_second = self.seconds(rows, form)?.iter().map(|it| BATCH_ROWS / it);
        Ok(per_second.collect::<Vec<_>>().into())
    }

    fn millis(&self, rows: &str, form: &str) -> anyhow::Result<Series> {
        let millis = self.seconds(rows, form)?.iter().map(|it| it * 1e3);
        Ok(millis.collect::<Vec<_>>().into())
    }

    fn seconds(&self, rows: &str, form: &str) -> anyhow::Result<&[f64]> {
        let seconds = self.0.get(&format!("{rows} {form}"));
        Ok(seconds.context("a merge was not measured")?)
    }
}
