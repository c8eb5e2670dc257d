//! The table a person reads: Markdown, padded, so that it can be read as it is and kept in a document.

use std::fmt::Write as _;

use crate::report::{Fact, Group, Report, Row, Spread, Target};

const HEADS: [&str; 7] = [
    "what",
    "rate/s (min–max)",
    "baseline",
    "rate/s (min–max)",
    "ratio (min–max)",
    "target",
    "met",
];

/// All groups, one table each.
pub(crate) fn table(report: &Report) -> String {
    let mut text = format!(
        "{}\n\nMedians of {} rounds; each measurement {:.1} s after {:.1} s of warm-up.\n",
        report.machine, report.rounds, report.window_seconds, report.warm_up_seconds
    );
    for one in &report.groups {
        text += &group(one);
    }
    text
}

fn group(group: &Group) -> String {
    let mut text = format!("\n## {}\n\n", group.title);
    for condition in &group.conditions {
        writeln!(text, "- {condition}").expect("writing to a String cannot fail");
    }
    if !group.rows.is_empty() {
        text += &format!("\n{}", rows(&group.rows));
    }
    if !group.facts.is_empty() {
        text += &format!("\n{}", facts(&group.facts));
    }
    text
}

fn rows(rows: &[Row]) -> String {
    markdown(HEADS, rows.iter().map(cells).collect())
}

fn cells(row: &Row) -> [String; HEADS.len()] {
    let (name, rate, ratio) = match &row.baseline {
        Some(base) => (base.name.clone(), rates(&base.rate), ratios(&base.ratio)),
        None => Default::default(),
    };
    [
        format!("{} ({})", row.name, row.unit),
        rates(&row.rate),
        name,
        rate,
        ratio,
        target(row.target),
        if row.met { "yes" } else { "no" }.to_owned(),
    ]
}

fn facts(facts: &[Fact]) -> String {
    let cells = |fact: &Fact| [fact.name.clone(), grouped(fact.value), fact.unit.to_owned()];
    markdown(["what", "value", "unit"], facts.iter().map(cells).collect())
}

fn rates(spread: &Spread) -> String {
    let Spread {
        median, min, max, ..
    } = spread;
    format!("{} ({}–{})", grouped(*median), grouped(*min), grouped(*max))
}

fn ratios(spread: &Spread) -> String {
    let Spread {
        median, min, max, ..
    } = spread;
    format!("{median:.2} ({min:.2}–{max:.2})")
}

fn target(target: Target) -> String {
    match target {
        Target::Ratio(ratio) => format!("≥ {ratio} ×"),
        Target::Rate(rate) => format!("≥ {}/s", grouped(rate)),
    }
}

/// 1234567 as 1 234 567.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        let to_come = digits.len() - place;
        if place > 0 && to_come % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A Markdown table whose columns are as wide as their widest cell.
pub(crate) fn markdown<const N: usize>(heads: [&str; N], rows: Vec<[String; N]>) -> String {
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(rows);
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    lines.insert(1, widths.map(|width| "-".repeat(width)));
    lines.iter().map(|line| padded(line, &widths)).collect()
}

fn padded(line: &[String], widths: &[usize]) -> String {
    let mut text = String::from("|");
    for (cell, width) in line.iter().zip(widths) {
        write!(text, " {cell:<width$} |").expect("writing to a String cannot fail");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::Series;

    #[test]
    fn row_shows_both_rates_and_the_ratio_beside_the_target() {
        let ours = Series::from(vec![9_000.0, 12_345.4, 20_000.0]);
        let theirs = Series::from(vec![3_000.0, 3_000.0, 4_000.0]);
        let row = Row::ratio("64 callers", "runs", &ours, ("pattern", &theirs), 4.0);
        let expected = "\
| what              | rate/s (min–max)      | baseline | rate/s (min–max)    | ratio (min–max)  | target | met |
| ----------------- | --------------------- | -------- | ------------------- | ---------------- | ------ | --- |
| 64 callers (runs) | 12 345 (9 000–20 000) | pattern  | 3 000 (3 000–4 000) | 4.12 (3.00–5.00) | ≥ 4 ×  | yes |
";
        assert_eq!(rows(&[row]), expected);
    }

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [0.4, 999.0, 1_000.0, 1_234_567.0].map(grouped);
        assert_eq!(numbers, ["0", "999", "1 000", "1 234 567"]);
    }
}
