//! What a measurement says: rows with their targets, and plain facts.

use serde::Serialize;

use crate::machine::Machine;
use crate::rounds::{Pace, Series};

/// Everything one run of the bench found out.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) rounds: usize,
    pub(crate) warm_up_seconds: f64,
    pub(crate) window_seconds: f64,
    pub(crate) groups: Vec<Group>,
}

/// What was measured together, in the same rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// Under which settings, in sentences.
    pub(crate) conditions: Vec<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) facts: Vec<Fact>,
}

/// One thing with a target.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) rate: Spread,
    /// What it is held against; none where the target is a rate.
    pub(crate) baseline: Option<Baseline>,
    pub(crate) target: Target,
    pub(crate) met: bool,
}

/// What a row is held against.
#[derive(Debug, Serialize)]
pub(crate) struct Baseline {
    pub(crate) name: String,
    pub(crate) rate: Spread,
    /// The row's rate over this one's, round by round.
    pub(crate) ratio: Spread,
}

/// What the median must reach.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// So many times the baseline.
    Ratio(f64),
    /// So many a second.
    Rate(f64),
}

/// The middle of several rounds, and how far they lie apart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) rounds: Series,
}

/// A number without a target.
#[derive(Debug, Serialize)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

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
}

// === impl Row ===

impl Row {
    /// A row whose median ratio must reach `at_least`. Both rates are in `unit`.
    pub(crate) fn ratio(
        name: impl Into<String>,
        unit: &'static str,
        rate: &Series,
        (baseline, base): (impl Into<String>, &Series),
        at_least: f64,
    ) -> Self {
        let ratio = Spread::of(&rate.over(base));
        Self {
            name: name.into(),
            unit,
            rate: Spread::of(rate),
            met: ratio.median >= at_least,
            baseline: Some(Baseline {
                name: baseline.into(),
                rate: Spread::of(base),
                ratio,
            }),
            target: Target::Ratio(at_least),
        }
    }

    /// A row whose median rate must reach `at_least`.
    pub(crate) fn rate(
        name: impl Into<String>,
        unit: &'static str,
        rate: &Series,
        at_least: f64,
    ) -> Self {
        let rate = Spread::of(rate);
        Self {
            name: name.into(),
            unit,
            met: rate.median >= at_least,
            rate,
            baseline: None,
            target: Target::Rate(at_least),
        }
    }
}

// === impl Spread ===

impl Spread {
    pub(crate) fn of(series: &Series) -> Self {
        Self {
            median: series.median(),
            min: series.min(),
            max: series.max(),
            rounds: series.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_judged_by_the_median_ratio() {
        let ours = Series::from(vec![30.0, 44.0, 90.0]);
        let theirs = Series::from(vec![10.0, 11.0, 10.0]);
        let row = |at_least| Row::ratio("row", "runs", &ours, ("pattern", &theirs), at_least);
        assert!(row(4.0).met);
        assert!(!row(4.1).met);
    }

    #[test]
    fn rate_that_could_not_be_measured_meets_nothing() {
        assert!(!Row::rate("row", "runs", &Series::from(Vec::new()), 0.0).met);
    }
}
