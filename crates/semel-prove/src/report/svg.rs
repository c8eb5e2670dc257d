//! A timeline as a drawing: a lane for each party, time downwards, one event in each row.

use super::wording::{self, escape};
use crate::judge::timeline::{Event, What};

const ROW: usize = 26;
const LANE: usize = 120;
const LEFT: usize = 110;
const TOP: usize = 40;
const TEXT: usize = 560;

/// The lane of the handler, where it is not known which process takes part.
const HANDLER: usize = 1;

/// What a lane stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sender,
    Process,
    Dependency,
    End,
}

/// Which way an arrow points, if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrow {
    ToHandler,
    FromHandler,
    Absent,
}

/// In which kind of lane an event is drawn, with which arrow, and of which class.
fn look(what: &What) -> (Kind, Arrow, &'static str) {
    use Arrow::{Absent, FromHandler, ToHandler};
    match what {
        What::Sent { .. } => (Kind::Sender, ToHandler, "call"),
        What::Answered { known: true, .. } => (Kind::Sender, FromHandler, "call"),
        What::Answered { known: false, .. } => (Kind::Sender, FromHandler, "bad"),
        What::Unanswered { .. } => (Kind::Sender, Absent, "bad"),
        What::Wire { outward: true, .. } => (Kind::Dependency, FromHandler, "wire"),
        What::Wire { outward: false, .. } => (Kind::Dependency, ToHandler, "wire"),
        What::Fails { .. } => (Kind::Dependency, Absent, "bad"),
        What::Killed | What::Ended => (Kind::Process, Absent, "bad"),
        What::Started | What::Paused | What::Resumed => (Kind::Process, Absent, "turn"),
        What::Effects { .. } | What::State { .. } => (Kind::End, Absent, "effect"),
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
    let mut add = |lane: &str| {
        if !lanes.iter().any(|known| known == lane) {
            lanes.push(lane.to_owned());
        }
    };
    timeline.iter().filter_map(process).for_each(&mut add);
    for kind in [Kind::Dependency, Kind::End] {
        let of_kind = timeline.iter().filter(|event| look(&event.what).0 == kind);
        of_kind.for_each(|event| add(&event.lane));
    }
    // A handler of which nothing is known is there all the same.
    if !timeline.iter().any(|event| process(event).is_some()) {
        lanes.insert(HANDLER, "handler".to_owned());
    }
    lanes
}

/// The process that takes part in an event.
fn process(event: &Event) -> Option<&str> {
    match &event.what {
        What::Sent { to, .. } => to.as_deref(),
        What::Wire { process, .. } => Some(process),
        What::Killed | What::Ended | What::Started | What::Paused | What::Resumed => {
            Some(&event.lane)
        }
        What::Answered { .. }
        | What::Unanswered { .. }
        | What::Fails { .. }
        | What::Effects { .. }
        | What::State { .. } => None,
    }
}

fn draw(lanes: &[String], row: usize, event: &Event) -> String {
    let y = TOP + row * ROW + ROW / 2;
    let place = |name: &str| lanes.iter().position(|lane| lane == name);
    let (_, arrow, class) = look(&event.what);
    let handler = process(event).and_then(place).unwrap_or(HANDLER);
    let (here, handler) = (x(place(&event.lane).unwrap_or(0)), x(handler));
    let line = |from, to| {
        format!(
            "<line class=\"{class}\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>\
             <circle class=\"{class}\" cx=\"{to}\" cy=\"{y}\" r=\"4\"/>"
        )
    };
    let mark = match arrow {
        Arrow::ToHandler => line(here, handler),
        Arrow::FromHandler => line(handler, here),
        Arrow::Absent => format!("<circle class=\"{class}\" cx=\"{here}\" cy=\"{y}\" r=\"6\"/>"),
    };
    let said = escape(&format!("{} {}", event.lane, wording::event(event)));
    let (left, right) = (LEFT - 30, LEFT + lanes.len() * LANE);
    let (baseline, at) = (y + 4, wording::millis(event.at));
    format!(
        "<text class=\"time\" x=\"{left}\" y=\"{baseline}\">{at}</text>\n{mark}\n\
         <text class=\"said {class}\" x=\"{right}\" y=\"{baseline}\">{said}</text>\n"
    )
}

fn x(place: usize) -> usize {
    LEFT + place * LANE + LANE / 3
}
