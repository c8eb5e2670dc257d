//! Rounds: every contender once, in an order that rotates, so that nobody always follows the same one.

use std::fmt::Debug;
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

/// Everybody who takes part, each under an id of the group's own.
pub(crate) type Contenders<Id> = Vec<(Id, Box<dyn Contender>)>;

/// What was measured, by contender.
#[derive(Debug)]
pub(crate) struct Rates<Id>(Vec<(Id, Series)>);

/// One number per round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Series(Vec<f64>);

/// The windows of a first try are short; a quarter of one has filled caches and connections.
const WARM_UP_SHARE: f64 = 0.25;

/// Measures every contender once per round.
pub(crate) async fn rounds<Id: Copy + Debug>(
    mut contenders: Contenders<Id>,
    pace: Pace,
) -> anyhow::Result<Rates<Id>> {
    let mut rates: Vec<_> = contenders
        .iter()
        .map(|(id, _)| (*id, Series(Vec::new())))
        .collect();
    for round in 0..pace.rounds {
        eprintln!("  round {} of {}", round + 1, pace.rounds);
        for place in order(round, contenders.len()) {
            let turns = contenders.get_mut(place).zip(rates.get_mut(place));
            let ((id, contender), (_, series)) = turns.expect("an order has only places there are");
            let rate = contender.turn(pace).await;
            series
                .0
                .push(rate.with_context(|| format!("cannot measure {id:?}"))?);
        }
    }
    Ok(Rates(rates))
}

/// The places of a round, beginning one further than the round before.
fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + round) % count)
}

// === impl Pace ===

impl Pace {
    pub(crate) fn new(rounds: usize, window: Duration) -> Self {
        Self {
            rounds,
            warm_up: window.mul_f64(WARM_UP_SHARE),
            window,
        }
    }
}

// === impl Rates ===

impl<Id: Copy + PartialEq> Rates<Id> {
    /// The rates of a contender that took part.
    pub(crate) fn of(&self, id: Id) -> &Series {
        let found = self.0.iter().find(|(other, _)| *other == id);
        &found.expect("a group asks for its own contenders").1
    }
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
