//! A timeline as a drawing: a lane for each party, time downwards, one event in each row.

use super::wording::{self, escape};
use crate::judge::timeline::{Event, What};

const ROW: usize = 26;
const LANE: usize = 120;
const LEFT: usize = 110;
const TOP: usize = 40;
const TEXT: usize = 560;

/// The lane of whoever hears the sender and asks the dependencies.
const HANDLER: usize = 1;

/// What a lane stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sender,
    Process,
    Dependency,
    End,
}

// === impl Kind ===

impl Kind {
    fn of(event: &Event) -> Self {
        match event.what {
            What::Sent { .. } | What::Answered { .. } | What::Unanswered { .. } => Self::Sender,
            What::Killed | What::Ended | What::Started | What::Paused | What::Resumed => {
                Self::Process
            }
            What::Wire { .. } => Self::Dependency,
            What::Effects { .. } => Self::End,
        }
    }
}

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
        let (x, top, lane) = (x(place), TOP - 10, escape(lane));
        drawing += &format!(
            "<text class=\"lane\" x=\"{x}\" y=\"20\">{lane}</text>\n\
             <line class=\"life\" x1=\"{x}\" y1=\"{top}\" x2=\"{x}\" y2=\"{height}\"/>\n"
        );
    }
    for (row, event) in timeline.iter().enumerate() {
        drawing += &draw(&lanes, row, event);
    }
    drawing + "</svg>\n"
}

/// The sender, then processes, then what they talk to, then what was seen in the end.
fn lanes(timeline: &[Event]) -> Vec<String> {
    let mut lanes = vec!["sender".to_owned()];
    for kind in [Kind::Process, Kind::Dependency, Kind::End] {
        for event in timeline.iter().filter(|event| Kind::of(event) == kind) {
            if !lanes.contains(&event.lane) {
                lanes.push(event.lane.clone());
            }
        }
        // A handler to which nothing happened is there all the same.
        if lanes.len() == HANDLER {
            lanes.push("handler".to_owned());
        }
    }
    lanes
}

fn draw(lanes: &[String], row: usize, event: &Event) -> String {
    let y = TOP + row * ROW + ROW / 2;
    let place = lanes.iter().position(|lane| *lane == event.lane);
    let place = place.unwrap_or(0);
    let class = class(&event.what);
    let mark = match arrow(&event.what, place) {
        Some((from, to)) => {
            let (from, to) = (x(from), x(to));
            format!(
                "<line class=\"{class}\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>\
                 <circle class=\"{class}\" cx=\"{to}\" cy=\"{y}\" r=\"4\"/>"
            )
        }
        None => {
            let x = x(place);
            format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"6\"/>")
        }
    };
    let said = escape(&format!("{} {}", event.lane, wording::event(event)));
    let (left, right) = (LEFT - 30, LEFT + lanes.len() * LANE);
    let (baseline, at) = (y + 4, wording::millis(event.at));
    format!(
        "<text class=\"time\" x=\"{left}\" y=\"{baseline}\">{at}</text>\n{mark}\n\
         <text class=\"said {class}\" x=\"{right}\" y=\"{baseline}\">{said}</text>\n"
    )
}

/// From which lane to which; nothing for what happens in one lane.
fn arrow(what: &What, place: usize) -> Option<(usize, usize)> {
    match what {
        What::Sent { .. } | What::Wire { outward: false, .. } => Some((place, HANDLER)),
        What::Answered { .. } | What::Wire { outward: true, .. } => Some((HANDLER, place)),
        What::Unanswered { .. }
        | What::Killed
        | What::Ended
        | What::Started
        | What::Paused
        | What::Resumed
        | What::Effects { .. } => None,
    }
}

fn class(what: &What) -> &'static str {
    match what {
        What::Killed
        | What::Ended
        | What::Unanswered { .. }
        | What::Answered { known: false, .. } => "bad",
        What::Effects { .. } => "effect",
        What::Paused | What::Resumed | What::Started => "turn",
        What::Sent { .. } | What::Answered { .. } => "call",
        What::Wire { .. } => "wire",
    }
}

fn x(place: usize) -> usize {
    LEFT + place * LANE + LANE / 3
}
