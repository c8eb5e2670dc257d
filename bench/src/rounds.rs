//! Rounds: every contender once, in an order that rotates, so that nobody always follows the same one.

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use serde::Serialize;

/// Something whose rate can be measured again and again.
#[async_trait]
pub(crate) trait Contender: Send {
    /// One turn: warms up, measures for a window, and says how many events a second it came to.
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64>;
}

/// How often and how long is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

/// A contender and its name.
pub(crate) type NamedContender = (&'static str, Box<dyn Contender>);

/// One number per round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Series(Vec<f64>);

/// Measures every contender once per round; the series are in the order of the contenders.
pub(crate) async fn rounds<const N: usize>(
    contenders: [NamedContender; N],
    pace: Pace,
) -> anyhow::Result<[Series; N]> {
    let series = rounds_of(contenders.into(), pace).await?;
    Ok(series.try_into().expect("each contender has its series"))
}

/// The same, for as many as there are.
pub(crate) async fn rounds_of(
    mut contenders: Vec<NamedContender>,
    pace: Pace,
) -> anyhow::Result<Vec<Series>> {
    let mut rates = vec![Series(Vec::new()); contenders.len()];
    for round in 0..pace.rounds {
        say_round(round, pace);
        for place in order(round, contenders.len()) {
            let turns = contenders.get_mut(place).zip(rates.get_mut(place));
            let ((name, contender), series) = turns.expect("an order has only places there are");
            let rate = contender.turn(pace).await;
            series
                .0
                .push(rate.with_context(|| format!("cannot measure {name}"))?);
        }
    }
    Ok(rates)
}

/// Tells whoever waits how far it is.
pub(crate) fn say_round(round: usize, pace: Pace) {
    eprintln!("  round {} of {}", round + 1, pace.rounds);
}

/// The places of a round, beginning one further than the round before.
fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + round) % count)
}

// === impl Series ===

impl Series {
    /// Counts each event as `by`: a first run is two rows, or two calls of a script.
    pub(crate) fn times(&self, by: f64) -> Self {
        Self(self.0.iter().map(|rate| rate * by).collect())
    }

    /// Round by round, this over that.
    pub(crate) fn over(&self, baseline: &Self) -> Self {
        let pairs = self.0.iter().zip(&baseline.0);
        Self(pairs.map(|(rate, base)| rate / base).collect())
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let count = sorted.len();
        f64::midpoint(middle(count.saturating_sub(1) / 2), middle(count / 2))
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl From<Vec<f64>> for Series {
    fn from(rates: Vec<f64>) -> Self {
        Self(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_everybody_and_begins_with_another() {
        let rounds: Vec<Vec<usize>> = (0..3).map(|round| order(round, 3).collect()).collect();
        assert_eq!(rounds, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }

    #[test]
    fn median_stands_in_the_middle() {
        assert!((Series(vec![9.0, 1.0, 2.0]).median() - 2.0).abs() < f64::EPSILON);
        assert!((Series(vec![4.0, 1.0, 2.0, 9.0]).median() - 3.0).abs() < f64::EPSILON);
        assert!(Series(Vec::new()).median().is_nan());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // Both contenders halved in the second round: the ratio does not move.
        let (ours, theirs) = (Series(vec![40.0, 20.0]), Series(vec![10.0, 5.0]));
        assert_eq!(ours.over(&theirs), Series(vec![4.0, 4.0]));
    }
}
