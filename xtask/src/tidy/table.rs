//! The counts as a table: today's value, the limit, the target.

use std::fmt::Write;

use super::count::{Counts, Measure, WHOLE};
use super::limits::Limits;

const HEAD: &str = "today/limit/target";

/// Returns one row per area.
pub(super) fn print(counts: &Counts, limits: &Limits) -> String {
    let mut rows = vec![head()];
    for (area, measures) in &counts.areas {
        let cell = |measure: &Measure| {
            let count = measures.get(measure);
            count.map_or_else(String::new, |count| {
                let limit = or_dash(limits.limit(area, *measure));
                format!(
                    "{}/{limit}/{}",
                    count.value,
                    or_dash(target(area, *measure))
                )
            })
        };
        let cells = Measure::ALL.iter().map(cell);
        rows.push(std::iter::once(area.clone()).chain(cells).collect());
    }
    aligned(&rows)
}

fn head() -> Vec<String> {
    let names = Measure::ALL.iter().map(|measure| measure.name());
    std::iter::once(HEAD)
        .chain(names)
        .map(String::from)
        .collect()
}

fn or_dash(value: Option<usize>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

/// Aligns the first column to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|it| it.get(column))
            .map(String::len)
            .max()
    };
    let widths: Vec<usize> = (0..columns).map(|it| width(it).unwrap_or(0)).collect();
    let mut table = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _infallible = match at {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

/// The values that the architecture and the language aim at. Lines have a target for the whole only.
fn target(area: &str, measure: Measure) -> Option<usize> {
    match measure {
        Measure::Cycle => Some(3),
        Measure::Folder => Some(20),
        Measure::Clauses => Some(5),
        Measure::Phrases => Some(0),
        Measure::Settings => Some(45),
        Measure::Product => (area == WHOLE).then_some(105_000),
        Measure::Rust => (area == WHOLE).then_some(170_000),
    }
}
