//! What became of deliveries, as overview, routes and duplicates show it: from the gate's own counters.

use super::format::span;
use crate::gate::Gate;
use crate::rates::{BUCKET, Became, Counts, RouteSnapshot};
use semel_ui::{Chart, Markup, Series, Tone};
use std::time::Duration;

/// So many buckets become one point of a chart: half a minute.
const BUCKETS_PER_POINT: usize = 3;

/// The last minute, in buckets.
const MINUTE: usize = 6;

/// What became of the deliveries of some routes.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// Oldest first; the last one has only begun.
    buckets: Vec<Counts>,
}

// === impl Traffic ===

impl Traffic {
    /// Of the whole gate.
    pub(super) fn of(gate: &Gate) -> Self {
        Self::of_routes(&gate.rates.snapshot())
    }

    /// Of these routes together.
    pub(super) fn of_routes(routes: &[RouteSnapshot]) -> Self {
        let longest = routes.iter().map(|it| it.buckets.len()).max().unwrap_or(0);
        let mut buckets = vec![Counts::default(); longest];
        for route in routes {
            let late = longest - route.buckets.len();
            for (sum, counts) in buckets.iter_mut().skip(late).zip(&route.buckets) {
                *sum = sum.plus(counts);
            }
        }
        Self { buckets }
    }

    /// Everything that is counted: at most an hour.
    pub(super) fn hour(&self) -> Counts {
        sum(&self.buckets)
    }

    /// For how long that was.
    pub(super) fn covers(&self) -> Duration {
        BUCKET.saturating_mul(u32::try_from(self.buckets.len()).unwrap_or(u32::MAX))
    }

    /// Deliveries per second in the last whole minute.
    pub(super) fn per_second(&self) -> f64 {
        let whole = self.buckets.len().saturating_sub(1);
        let last = self.buckets.get(whole.saturating_sub(MINUTE)..whole);
        let last = last.unwrap_or_default();
        if last.is_empty() {
            return as_rate(self.hour().sum(), BUCKET.as_secs());
        }
        as_rate(sum(last).sum(), BUCKET.as_secs() * last.len() as u64)
    }

    /// Effects that were not repeated, point by point.
    pub(super) fn saved_trend(&self) -> Vec<f64> {
        self.points(Counts::not_repeated)
    }

    /// The picture of the last hour.
    pub(super) fn chart(&self, label: &str) -> Markup {
        let kinds = [
            (Tone::Ran, "ran", &[Became::Ran][..]),
            (
                Tone::Replayed,
                "duplicate, answered from the record",
                &[Became::Replayed, Became::FailedBefore],
            ),
            (Tone::Busy, "busy: comes again", &[Became::Busy]),
            (Tone::Failed, "failed at the handler", &[Became::Failed]),
            (
                Tone::Refused,
                "refused by the gate",
                &[Became::Invalid, Became::Mismatched, Became::Refused],
            ),
            (
                Tone::Doubt,
                "in doubt or parked",
                &[Became::InDoubt, Became::Parked],
            ),
        ];
        let series: Vec<_> = kinds
            .into_iter()
            .map(|(tone, name, became)| Series {
                tone,
                name,
                values: self.points(|counts| became.iter().map(|it| counts.of(*it)).sum()),
            })
            .collect();
        let covers = self.covers();
        let times = [
            (0.0, format!("{} ago", span(covers))),
            (0.5, format!("{} ago", span(covers / 2))),
            (1.0, "now".to_owned()),
        ];
        Chart {
            label,
            unit: "/s",
            series: &series,
            times: &times,
        }
        .draw()
    }

    /// Per second, the oldest first. The last bucket has only begun and would look like a slump, so it is left out once
    /// there is a whole one.
    fn points(&self, of: impl Fn(&Counts) -> u64) -> Vec<f64> {
        let whole = self.buckets.len().saturating_sub(1).max(1);
        let whole = self.buckets.get(..whole).unwrap_or_default();
        let chunks = whole.rchunks(BUCKETS_PER_POINT);
        let mut points: Vec<_> = chunks
            .map(|chunk| as_rate(of(&sum(chunk)), BUCKET.as_secs() * chunk.len() as u64))
            .collect();
        points.reverse();
        // A line needs two ends.
        if let [only] = points.as_slice() {
            return vec![*only, *only];
        }
        points
    }
}

fn sum(buckets: &[Counts]) -> Counts {
    let none = Counts::default();
    buckets.iter().fold(none, |sum, counts| sum.plus(counts))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate for people has three digits"
)]
fn as_rate(count: u64, seconds: u64) -> f64 {
    count as f64 / seconds.max(1) as f64
}

/// A share in percent, with one digit after the point.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    let thousandths = part.saturating_mul(1000).saturating_add(whole / 2) / whole;
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_has_only_begun_is_no_slump() {
        let busy = Counts::of_one(Became::Replayed);
        let begun = Counts::default();
        let buckets = vec![busy, busy, busy, busy, busy, busy, begun];
        assert_eq!(Traffic { buckets }.saved_trend(), [0.1, 0.1]);
        // Before the first whole one it is all there is.
        let buckets = vec![busy];
        assert_eq!(Traffic { buckets }.saved_trend(), [0.1, 0.1]);
    }

    #[test]
    fn shares_have_one_digit() {
        assert_eq!(percent(31, 1000), "3.1 %");
        assert_eq!(percent(2, 3), "66.7 %");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(2, 2), "100.0 %");
        assert_eq!(percent(0, 0), "–");
    }
}
