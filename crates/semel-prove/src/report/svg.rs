//! A timeline as a drawing: a lane for each party, time downwards, one event in each row.

use super::words::{self, escape};
use crate::verdict::{Event, What};
use std::fmt::Write as _;

const ROW: usize = 26;
const LANE: usize = 150;
const LEFT: usize = 90;
const TOP: usize = 40;
const TEXT: usize = 560;

/// The drawing; it brings no style of its own but class names.
pub(super) fn svg(timeline: &[Event]) -> String {
    let lanes = lanes(timeline);
    let width = LEFT + lanes.len() * LANE + TEXT;
    let height = TOP + timeline.len() * ROW + ROW / 2;
    let mut drawing = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n"
    );
    for (place, lane) in lanes.iter().enumerate() {
        let x = x(place);
        put(
            &mut drawing,
            &format!(
                "<text class=\"lane\" x=\"{x}\" y=\"20\">{}</text>",
                escape(lane)
            ),
        );
        put(
            &mut drawing,
            &format!(
                "<line class=\"life\" x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{height}\"/>",
                TOP - 10
            ),
        );
    }
    for (row, event) in timeline.iter().enumerate() {
        draw(&mut drawing, &lanes, row, event);
    }
    drawing + "</svg>\n"
}

/// The sender first, then everybody in the order of appearance.
fn lanes(timeline: &[Event]) -> Vec<String> {
    let mut lanes = vec!["sender".to_owned()];
    for event in timeline {
        if !lanes.contains(&event.lane) {
            lanes.push(event.lane.clone());
        }
    }
    lanes
}

fn draw(drawing: &mut String, lanes: &[String], row: usize, event: &Event) {
    let y = TOP + row * ROW + ROW / 2;
    let place = lanes
        .iter()
        .position(|lane| *lane == event.lane)
        .unwrap_or(0);
    let (here, class) = (x(place), class(&event.what));
    put(
        drawing,
        &format!(
            "<text class=\"time\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 50,
            y + 4,
            words::millis(event.at)
        ),
    );
    match arrow(&event.what, place, lanes.len()) {
        Some((from, to)) => put(
            drawing,
            &format!(
                "<line class=\"{class}\" x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\"/><circle class=\"{class}\" cx=\"{}\" cy=\"{y}\" r=\"4\"/>",
                x(from),
                x(to),
                x(to)
            ),
        ),
        None => put(
            drawing,
            &format!("<circle class=\"{class}\" cx=\"{here}\" cy=\"{y}\" r=\"6\"/>"),
        ),
    }
    let said = format!("{} {}", event.lane, words::event(event));
    let from = LEFT + lanes.len() * LANE;
    put(
        drawing,
        &format!(
            "<text class=\"said {class}\" x=\"{from}\" y=\"{}\">{}</text>",
            y + 4,
            escape(&said)
        ),
    );
}

/// From which lane to which; nothing for what happens in one lane.
fn arrow(what: &What, place: usize, lanes: usize) -> Option<(usize, usize)> {
    let neighbour = if place == 0 { 1 } else { place - 1 };
    if neighbour >= lanes {
        return None;
    }
    match what {
        What::Sent { .. } => Some((place, neighbour)),
        What::Answered { .. } => Some((neighbour, place)),
        What::Wire { outward: true, .. } => Some((neighbour, place)),
        What::Wire { outward: false, .. } => Some((place, neighbour)),
        What::Unanswered { .. }
        | What::Killed
        | What::Started
        | What::Paused
        | What::Resumed
        | What::Effects { .. } => None,
    }
}

fn class(what: &What) -> &'static str {
    match what {
        What::Killed | What::Unanswered { .. } | What::Answered { known: false, .. } => "bad",
        What::Effects { .. } => "effect",
        What::Paused | What::Resumed | What::Started => "turn",
        What::Sent { .. } | What::Answered { .. } => "call",
        What::Wire { .. } => "wire",
    }
}

fn x(place: usize) -> usize {
    LEFT + place * LANE + LANE / 3
}

fn put(drawing: &mut String, element: &str) {
    writeln!(drawing, "{element}").expect("writing to a String cannot fail");
}
