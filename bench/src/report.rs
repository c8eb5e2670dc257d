//! What a measurement says: rows with their targets, as a table or as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::machine::Machine;
use crate::rounds::{Pace, Series};
use crate::table::{grouped, markdown};

/// Everything one run of the bench found out.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    rounds: usize,
    warm_up_seconds: f64,
    window_seconds: f64,
    groups: Vec<Group>,
}

/// What was measured together, in the same rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// Under which settings, in sentences.
    pub(crate) conditions: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// One thing that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    what: String,
    unit: Unit,
    measured: Spread,
    baseline: Option<Baseline>,
    /// None where a row is only told.
    judged: Option<Judged>,
}

/// What a row is held against.
#[derive(Debug, Serialize)]
struct Baseline {
    name: String,
    measured: Spread,
    /// The row over this, round by round.
    ratio: Spread,
}

/// What the median had to reach, and whether it did.
#[derive(Debug, Serialize)]
struct Judged {
    target: Target,
    met: bool,
}

/// What the median must reach.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// So many times what it is held against, or more.
    RatioAtLeast(f64),
    /// So many times what it is held against, or less.
    RatioAtMost(f64),
    /// So much, in the row's unit, or more.
    AtLeast(f64),
    /// So much, in the row's unit, or less.
    AtMost(f64),
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    PerSecond,
    Millis,
    Mib,
    BytesPerKey,
}

/// The middle of several rounds, and how far they lie apart.
#[derive(Debug, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
    rounds: Series,
}

const HEADS: [&str; 7] = [
    "what",
    "measured (min–max)",
    "baseline",
    "measured (min–max)",
    "ratio (min–max)",
    "target",
    "met",
];

// === impl Report ===

impl Report {
    pub(crate) fn new(machine: Machine, pace: Pace, groups: Vec<Group>) -> Self {
        Self {
            machine,
            rounds: pace.rounds,
            warm_up_seconds: pace.warm_up.as_secs_f64(),
            window_seconds: pace.window.as_secs_f64(),
            groups,
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!("{}\n\nMedians of {} rounds", self.machine, self.rounds);
        let (window, warm_up) = (self.window_seconds, self.warm_up_seconds);
        // What is counted instead of timed has no window.
        if window > 0.0 {
            text += &format!("; each measurement {window:.1} s after {warm_up:.1} s of warm-up");
        }
        text += ".\n";
        for group in &self.groups {
            text += &group.table();
        }
        text
    }
}

// === impl Group ===

impl Group {
    fn table(&self) -> String {
        let mut text = format!("\n## {}\n\n", self.title);
        for condition in &self.conditions {
            writeln!(text, "- {condition}").expect("writing to a String cannot fail");
        }
        text + "\n" + &rows(&self.rows)
    }
}

fn rows(rows: &[Row]) -> String {
    markdown(HEADS, rows.iter().map(Row::cells).collect())
}

// === impl Row ===

impl Row {
    pub(crate) fn new(what: impl Into<String>, unit: Unit, series: &Series) -> Self {
        Self {
            what: what.into(),
            unit,
            measured: Spread::of(series),
            baseline: None,
            judged: None,
        }
    }

    /// So many events a second.
    pub(crate) fn rate(what: impl Into<String>, series: &Series) -> Self {
        Self::new(what, Unit::PerSecond, series)
    }

    /// Something that was measured once.
    pub(crate) fn once(what: impl Into<String>, unit: Unit, number: f64) -> Self {
        Self::new(what, unit, &Series::from(vec![number]))
    }

    /// Held against something of the same unit, round by round.
    pub(crate) fn beside(mut self, name: impl Into<String>, other: &Series) -> Self {
        self.baseline = Some(Baseline {
            name: name.into(),
            measured: Spread::of(other),
            ratio: Spread::of(&self.measured.rounds.over(other)),
        });
        self
    }

    /// Judged by its median. A ratio is that to what it is beside.
    pub(crate) fn judged(mut self, target: Target) -> Self {
        let baseline = self.baseline.as_ref();
        let ratio = baseline.map_or(f64::NAN, |baseline| baseline.ratio.median);
        let met = match target {
            Target::RatioAtLeast(least) => ratio >= least,
            Target::RatioAtMost(most) => ratio <= most,
            Target::AtLeast(least) => self.measured.median >= least,
            Target::AtMost(most) => self.measured.median <= most,
        };
        self.judged = Some(Judged { target, met });
        self
    }

    fn cells(&self) -> [String; HEADS.len()] {
        let (name, other, ratio) = match &self.baseline {
            Some(baseline) => (
                baseline.name.clone(),
                self.unit.spread(&baseline.measured),
                baseline.ratio.text(|ratio| format!("{ratio:.2}")),
            ),
            None => Default::default(),
        };
        let (target, met) = match &self.judged {
            Some(judged) => (
                judged.target.text(self.unit),
                if judged.met { "yes" } else { "no" }.to_owned(),
            ),
            None => Default::default(),
        };
        let measured = self.unit.spread(&self.measured);
        [self.what.clone(), measured, name, other, ratio, target, met]
    }
}

// === impl Target ===

impl Target {
    fn text(self, unit: Unit) -> String {
        match self {
            Self::RatioAtLeast(ratio) => format!("≥ {ratio} ×"),
            Self::RatioAtMost(ratio) => format!("≤ {ratio} ×"),
            Self::AtLeast(least) => format!("≥ {} {}", unit.number(least), unit.word()),
            Self::AtMost(most) => format!("≤ {most} {}", unit.word()),
        }
    }
}

// === impl Unit ===

impl Unit {
    const fn word(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::Millis => "ms",
            Self::Mib => "MiB",
            Self::BytesPerKey => "bytes per key",
        }
    }

    fn number(self, number: f64) -> String {
        match self {
            Self::PerSecond | Self::BytesPerKey => grouped(number),
            Self::Millis => format!("{number:.3}"),
            Self::Mib => format!("{number:.1}"),
        }
    }

    fn spread(self, of: &Spread) -> String {
        format!("{} {}", of.text(|it| self.number(it)), self.word())
    }
}

// === impl Spread ===

impl Spread {
    fn of(series: &Series) -> Self {
        Self {
            median: series.median(),
            min: series.min(),
            max: series.max(),
            rounds: series.clone(),
        }
    }

    fn text(&self, number: impl Fn(f64) -> String) -> String {
        let [median, min, max] = [self.median, self.min, self.max].map(number);
        format!("{median} ({min}–{max})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held against a pattern, where it must reach so many times as much.
    fn first_runs(at_least: f64) -> Row {
        let ours = Series::from(vec![9_000.0, 12_345.4, 20_000.0]);
        let theirs = Series::from(vec![3_000.0, 3_000.0, 4_000.0]);
        let row = Row::rate("first runs", &ours).beside("pattern", &theirs);
        row.judged(Target::RatioAtLeast(at_least))
    }

    fn is_met(row: &Row) -> bool {
        row.judged.as_ref().is_some_and(|judged| judged.met)
    }

    #[test]
    fn target_is_judged_by_the_median_ratio() {
        assert!(is_met(&first_runs(4.11)));
        assert!(!is_met(&first_runs(4.12)));
    }

    #[test]
    fn rate_that_could_not_be_measured_meets_nothing() {
        let row = Row::rate("row", &Series::from(Vec::new()));
        assert!(!is_met(&row.judged(Target::AtLeast(0.0))));
    }

    #[test]
    fn row_shows_both_rates_and_the_ratio_beside_the_target() {
        let expected = "\
| what       | measured (min–max)       | baseline | measured (min–max)     | ratio (min–max)  | target | met |
| ---------- | ------------------------ | -------- | ---------------------- | ---------------- | ------ | --- |
| first runs | 12 345 (9 000–20 000) /s | pattern  | 3 000 (3 000–4 000) /s | 4.12 (3.00–5.00) | ≥ 4 ×  | yes |
";
        assert_eq!(rows(&[first_runs(4.0)]), expected);
    }

    #[test]
    fn row_shows_what_it_is_held_against_and_its_target() {
        let ours = Series::from(vec![9_000.0, 12_345.0, 20_000.0]);
        let nginx = Series::from(vec![30_000.0, 30_000.0, 40_000.0]);
        let row = Row::rate("first runs", &ours).beside("nginx", &nginx);
        let cells = row.judged(Target::RatioAtLeast(0.4)).cells();
        let expected = [
            "first runs",
            "12 345 (9 000–20 000) /s",
            "nginx",
            "30 000 (30 000–40 000) /s",
            "0.41 (0.30–0.50)",
            "≥ 0.4 ×",
            "yes",
        ];
        assert_eq!(cells, expected.map(str::to_owned));
    }

    #[test]
    fn most_is_judged_from_above() {
        let met = |target| is_met(&Row::once("memory", Unit::Mib, 25.5).judged(target));
        assert!(met(Target::AtMost(26.0)));
        assert!(!met(Target::AtMost(25.0)));
        // Nothing to compare with: no ratio is met.
        assert!(!met(Target::RatioAtMost(1.0)));
        assert!(!met(Target::RatioAtLeast(0.0)));
    }
}
