//! What a measurement of the gate says: rows with their targets, as a table or as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::machine::Machine;
use crate::report::Spread;
use crate::rounds::{Pace, Series};
use crate::table::{grouped, markdown};

/// Everything one run of the bench found out.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    rounds: usize,
    warm_up_seconds: u64,
    window_seconds: u64,
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
    beside: Option<Beside>,
    /// None where a row is only told.
    judged: Option<Judged>,
    #[serde(skip)]
    series: Series,
}

/// What a row is held against.
#[derive(Debug, Serialize)]
struct Beside {
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
    /// So much, in the row's unit, or less.
    AtMost(f64),
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    PerSecond,
    Millis,
    Mib,
}

const HEADS: [&str; 7] = [
    "what",
    "measured (min–max)",
    "beside",
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
            warm_up_seconds: pace.warm_up.as_secs(),
            window_seconds: pace.window.as_secs(),
            groups,
        }
    }

    /// Markdown, padded, so that it can be read as it is and kept in a document.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{}\n\nMedians of {} rounds", self.machine, self.rounds);
        // What is counted instead of timed has no window.
        if self.window_seconds > 0 {
            let (window, warm_up) = (self.window_seconds, self.warm_up_seconds);
            write!(
                text,
                "; each measurement {window} s after {warm_up} s of warm-up"
            )
            .expect("writing to a String cannot fail");
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
        text + "\n" + &markdown(HEADS, self.rows.iter().map(Row::cells).collect())
    }
}

// === impl Row ===

impl Row {
    pub(crate) fn new(what: &str, unit: Unit, series: &Series) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            measured: Spread::of(series),
            beside: None,
            judged: None,
            series: series.clone(),
        }
    }

    /// Held against something of the same unit, round by round.
    pub(crate) fn beside(mut self, name: &str, other: &Series) -> Self {
        self.beside = Some(Beside {
            name: name.to_owned(),
            measured: Spread::of(other),
            ratio: Spread::of(&self.series.over(other)),
        });
        self
    }

    /// Judged by its median. A ratio is that to what it is beside.
    pub(crate) fn judged(mut self, target: Target) -> Self {
        let ratio = self
            .beside
            .as_ref()
            .map_or(f64::NAN, |beside| beside.ratio.median);
        let met = match target {
            Target::RatioAtLeast(least) => ratio >= least,
            Target::RatioAtMost(most) => ratio <= most,
            Target::AtMost(most) => self.measured.median <= most,
        };
        self.judged = Some(Judged { target, met });
        self
    }

    fn cells(&self) -> [String; HEADS.len()] {
        let (name, other, ratio) = match &self.beside {
            Some(beside) => (
                beside.name.clone(),
                self.unit.spread(&beside.measured),
                spread(&beside.ratio, |ratio| format!("{ratio:.2}")),
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
        }
    }

    fn number(self, number: f64) -> String {
        match self {
            Self::PerSecond => grouped(number),
            Self::Millis => format!("{number:.3}"),
            Self::Mib => format!("{number:.1}"),
        }
    }

    fn spread(self, of: &Spread) -> String {
        format!(
            "{} {}",
            spread(of, |number| self.number(number)),
            self.word()
        )
    }
}

fn spread(spread: &Spread, number: impl Fn(f64) -> String) -> String {
    let Spread {
        median, min, max, ..
    } = spread;
    format!("{} ({}–{})", number(*median), number(*min), number(*max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_shows_what_it_is_held_against_and_its_target() {
        let ours = Series::from(vec![9_000.0, 12_345.0, 20_000.0]);
        let nginx = Series::from(vec![30_000.0, 30_000.0, 40_000.0]);
        let row = Row::new("first runs", Unit::PerSecond, &ours).beside("nginx", &nginx);
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
        let row = |target| Row::new("memory", Unit::Mib, &Series::from(vec![25.5])).judged(target);
        let met = |target| row(target).judged.is_some_and(|judged| judged.met);
        assert!(met(Target::AtMost(26.0)));
        assert!(!met(Target::AtMost(25.0)));
        // Nothing to compare with: no ratio is met.
        assert!(!met(Target::RatioAtMost(1.0)));
        assert!(!met(Target::RatioAtLeast(0.0)));
    }
}
