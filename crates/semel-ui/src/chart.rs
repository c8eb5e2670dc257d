//! Pictures of numbers over time, drawn by the server: they need no script, and can be read aloud.

use crate::Tone;
use maud::{Markup, html};
use std::fmt::Write;

/// The room of the areas, in units of their own: they are stretched to whatever room there is. Words stand beside them,
/// where they keep their size.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// Where the lines are, from the top down, as parts of the scale.
const LINES: [f64; 3] = [1.0, 0.5, 0.0];

/// The size of the small picture in a tile.
const SPARK_WIDTH: f64 = 120.0;
const SPARK_HEIGHT: f64 = 22.0;

/// Numbers over time, one kind upon the other.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// What the picture says, in a sentence.
    pub label: &'a str,
    /// Behind the numbers at the side: `/s`.
    pub unit: &'a str,
    /// The kinds, from the lowest up; the oldest value first, all of the same length.
    pub series: &'a [Series<'a>],
    /// Words below: where along the width, from 0 to 1, and what.
    pub times: &'a [(f64, String)],
}

/// One kind of number.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// Its colour.
    pub tone: Tone,
    /// Its word.
    pub name: &'a str,
    /// Its values.
    pub values: Vec<f64>,
}

/// How something went, without words: what it is stands beside it.
#[must_use]
pub fn sparkline(tone: Tone, values: &[f64]) -> Markup {
    if values.len() < 2 {
        // One number is beside it already: it needs no room for a line.
        return html! {};
    }
    let max = round_up(values.iter().copied().fold(0.0, f64::max));
    let points: Vec<_> = along(values.len(), SPARK_WIDTH)
        .zip(values)
        .map(|(x, value)| (x, SPARK_HEIGHT - 1.0 - value / max * (SPARK_HEIGHT - 2.0)))
        .collect();
    html! {
        svg.spark viewBox={ "0 0 " (SPARK_WIDTH) " " (SPARK_HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
            path class={ "l-" (tone.word()) } d=(path(&points)) {}
        }
    }
}

// === impl Chart ===

impl Chart<'_> {
    /// The picture with its legend.
    #[must_use]
    pub fn draw(&self) -> Markup {
        let max = round_up(self.totals().into_iter().fold(0.0, f64::max));
        html! {
            div.card.chart {
                div.plot {
                    div.scale aria-hidden="true" {
                        @for part in LINES { span { (short(part * max)) (self.unit) } }
                    }
                    svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(self.label) {
                        @for part in LINES {
                            @let y = height(part, 1.0);
                            line.axis x1="0" x2=(WIDTH) y1=(y) y2=(y) {}
                        }
                        @for (series, area) in self.series.iter().zip(self.areas(max)) {
                            path class={ "a-" (series.tone.word()) } d=(area) {}
                        }
                    }
                    svg.times aria-hidden="true" {
                        @for (place, word) in self.times {
                            text x={ (place.clamp(0.0, 1.0) * 100.0) "%" } y="12" text-anchor=(anchor(*place)) { (word) }
                        }
                    }
                }
                div.legend {
                    @for series in self.series { (crate::state(series.tone, series.name)) }
                }
            }
        }
    }

    fn totals(&self) -> Vec<f64> {
        let mut totals = Vec::new();
        for series in self.series {
            totals = added(&totals, &series.values);
        }
        totals
    }

    /// Each kind's area: along its upper edge, and back along the lower one.
    fn areas(&self, max: f64) -> Vec<String> {
        let mut lower = Vec::new();
        let mut areas = Vec::new();
        for series in self.series {
            let upper = added(&lower, &series.values);
            lower.resize(upper.len(), 0.0);
            let edge = |values: &[f64]| -> Vec<(f64, f64)> {
                let places = along(values.len(), WIDTH);
                places
                    .zip(values)
                    .map(|(x, value)| (x, height(*value, max)))
                    .collect()
            };
            let back = edge(&lower).into_iter().rev();
            let around: Vec<_> = edge(&upper).into_iter().chain(back).collect();
            areas.push(path(&around) + "Z");
            lower = upper;
        }
        areas
    }
}

fn added(below: &[f64], values: &[f64]) -> Vec<f64> {
    let below = below.iter().copied().chain(std::iter::repeat(0.0));
    values
        .iter()
        .zip(below)
        .map(|(value, below)| value.max(0.0) + below)
        .collect()
}

/// So many places from 0 to `right`.
fn along(count: usize, right: f64) -> impl Iterator<Item = f64> {
    let gaps = u32::try_from(count.saturating_sub(1))
        .unwrap_or(u32::MAX)
        .max(1);
    (0..u32::try_from(count).unwrap_or(u32::MAX))
        .map(move |place| right * f64::from(place) / f64::from(gaps))
}

fn height(value: f64, max: f64) -> f64 {
    HEIGHT - value / max * HEIGHT
}

fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (place, (x, y)) in points.iter().enumerate() {
        let word = if place == 0 { 'M' } else { 'L' };
        write!(path, "{word}{x:.1},{y:.1}").expect("a String takes all");
    }
    path
}

/// The next number that reads well: 1, 2 or 5, and noughts.
fn round_up(max: f64) -> f64 {
    if !max.is_finite() || max <= 0.0 {
        return 1.0;
    }
    let ten = 10_f64.powf(max.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * ten);
    steps.into_iter().find(|step| *step >= max).unwrap_or(max)
}

fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} M", value / 1e6),
        value if value >= 1e4 => format!("{} k", value / 1e3),
        value => format!("{value}"),
    }
}

fn anchor(place: f64) -> &'static str {
    match place {
        place if place <= 0.02 => "start",
        place if place >= 0.98 => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(tone: Tone, values: &[f64]) -> Series<'static> {
        Series {
            tone,
            name: "kind",
            values: values.to_vec(),
        }
    }

    #[test]
    fn kinds_stand_upon_each_other() {
        let series = [
            series(Tone::Ran, &[1.0, 2.0]),
            series(Tone::Replayed, &[1.0, 3.0]),
        ];
        let chart = Chart {
            label: "ran and replayed",
            unit: "/s",
            series: &series,
            times: &[(1.0, "now".into())],
        };
        assert_eq!(chart.totals(), [2.0, 5.0]);
        let areas = chart.areas(5.0);
        assert_eq!(areas[0], "M0.0,80.0L1000.0,60.0L1000.0,100.0L0.0,100.0Z");
        assert_eq!(areas[1], "M0.0,60.0L1000.0,0.0L1000.0,60.0L0.0,80.0Z");
        let html = chart.draw().into_string();
        assert!(html.contains(r#"aria-label="ran and replayed""#) && html.contains(">5/s<"));
    }

    #[test]
    fn nothing_and_nonsense_are_drawn_too() {
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[-1.0, 2.0]] {
            let series = [series(Tone::Failed, values)];
            let chart = Chart {
                label: "",
                unit: "",
                series: &series,
                times: &[],
            };
            assert!(chart.draw().into_string().contains("<svg"));
            let sparkline = sparkline(Tone::Busy, values).into_string();
            assert_eq!(sparkline.contains("<svg"), values.len() > 1);
        }
    }

    #[test]
    fn scales_read_well() {
        for (max, scale) in [
            (0.0, 1.0),
            (0.3, 0.5),
            (1.0, 1.0),
            (41.0, 50.0),
            (1234.0, 2000.0),
        ] {
            assert!((round_up(max) - scale).abs() < 1e-9, "{max}");
        }
    }
}
