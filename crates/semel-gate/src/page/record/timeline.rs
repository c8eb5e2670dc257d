//! What happened to a record, in order: deliveries that this gate remembers, runs that were superseded, and the last one.

use crate::operate::history::{begun_by, is_act, lasted, status};
use crate::page::format::{clock, span, whole};
use crate::page::overview::sender;
use crate::page::screen::delivery_tone;
use crate::recent::RecentDelivery;
use semel::clock::Time;
use semel::protocol::{Fence, Record, State, StepRecord, Superseded};
use semel_ui::{Markup, Moment, Tone, empty, html, timeline as draw};
use std::sync::Arc;

/// Something that happened, and when.
struct Event {
    at: Time,
    tone: Tone,
    what: Markup,
    about: String,
}

/// Each thing at the moment when it happened: a delivery that ran something arrives, and is answered after its run.
pub(super) fn timeline(
    record: Option<&Record>,
    deliveries: &[Arc<RecentDelivery>],
    steps: &[(String, StepRecord)],
    now: Time,
) -> Markup {
    let mut events: Vec<Event> = deliveries.iter().flat_map(|it| delivered(it)).collect();
    if let Some(record) = record {
        events.extend(runs(record, steps));
        events.extend(end(record, now));
    }
    if events.is_empty() {
        return empty(&html! { "Nothing is known of what happened." });
    }
    events.sort_by_key(|event| event.at);
    let shown: Vec<_> = events
        .into_iter()
        .map(|event| {
            Moment::new(clock(event.at, now), event.tone, event.what)
                .whole(whole(event.at))
                .about(event.about)
        })
        .collect();
    draw(&shown)
}

fn delivered(delivery: &RecentDelivery) -> Vec<Event> {
    let ended = delivery.time().plus(delivery.elapsed);
    let tone = delivery_tone(delivery.outcome);
    let by = sender(delivery);
    let trace = format!("trace {:032x}", delivery.trace_id);
    let mut about = vec![format!("in {}", span(delivery.elapsed))];
    about.extend(delivery.attempt.map(|it| format!("run {it}")));
    about.extend(delivery.why.as_deref().map(str::to_owned));
    let event = |at, tone, what, about: &[String]| Event {
        at,
        tone,
        what,
        about: about.join(" · "),
    };
    if delivery.is_end {
        let what = html! { "The run ended: " b { (delivery.outcome) } };
        return vec![event(ended, tone, what, &about)];
    }
    let heard = html! {
        (delivery.outcome) @if let Some(status) = delivery.status { ", heard " (status) }
    };
    if delivery.fence.is_none() {
        about.push(trace);
        let what = html! { "Delivered by " b { (by) } ": " (heard) };
        return vec![event(delivery.time(), tone, what, &about)];
    }
    vec![
        event(
            delivery.time(),
            Tone::Busy,
            html! { "Delivered by " b { (by) } },
            &[trace],
        ),
        event(
            ended,
            tone,
            html! { "Answered " b { (by) } ": " (heard) },
            &about,
        ),
    ]
}

/// Each run that was superseded: where and when it began, and how it ended; and where the last one began.
fn runs(record: &Record, steps: &[(String, StepRecord)]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut at = None;
    let by = begun_by(record);
    for (superseded, by) in record.history.iter().zip(&by) {
        events.push(begun(superseded.fence, by, at, steps));
        events.extend(ended(superseded, by));
        at = Some(superseded.at);
    }
    let last = by.last().map_or("", String::as_str);
    events.push(begun(record.fence, last, at, steps));
    events
}

/// An act may leave the fence as it was, as a keeper's does: it has the time of its own entry.
fn begun(fence: Fence, by: &str, acted_at: Option<Time>, steps: &[(String, StepRecord)]) -> Event {
    let at = Time(fence.0);
    if is_act(by) {
        return Event {
            at: acted_at.unwrap_or(at),
            tone: Tone::Parked,
            what: html! { "An operator acted: " b { (by) } },
            about: format!("fence {fence}"),
        };
    }
    Event {
        at,
        tone: Tone::Ran,
        what: html! { @if by.is_empty() { "A run began" } @else { b { (by) } " began a run" } },
        about: [format!("fence {fence}")]
            .into_iter()
            .chain(steps.iter().filter(|(_, it)| it.fence == fence).map(step))
            .collect::<Vec<_>>()
            .join(" · "),
    }
}

/// A step that a run began last.
fn step((name, step): &(String, StepRecord)) -> String {
    let how = match step.result {
        Some(_) => "done",
        None => "begun, and not said to be done",
    };
    format!("step {name}: {how}")
}

fn ended(superseded: &Superseded, by: &str) -> Option<Event> {
    if is_act(by) {
        return None;
    }
    let until = superseded.until.min(superseded.at);
    let status = status(&superseded.result);
    let (tone, what) = match superseded.state {
        State::Running => (
            Tone::Doubt,
            html! { "That run was lost: nobody renewed its lease after this" },
        ),
        State::Waiting if superseded.in_doubt => (
            Tone::Doubt,
            html! { "That run ended in doubt" @if let Some(status) = status { ", after the handler answered " (status) } },
        ),
        State::Waiting => (
            Tone::Waiting,
            html! { "That run failed" @if let Some(status) = status { ": the handler answered " (status) } },
        ),
        State::Failed => (
            Tone::Failed,
            html! { "That run failed for good" @if let Some(status) = status { " with " (status) } },
        ),
        State::Parked => (
            Tone::Parked,
            html! { "It was parked: a person had to look" },
        ),
        State::Succeeded => (Tone::Ran, html! { "It succeeded" }),
    };
    let lasted = lasted(superseded);
    let about = format!(
        "after {}{}",
        span(lasted),
        if superseded.in_doubt {
            ", in doubt"
        } else {
            ""
        }
    );
    Some(Event {
        at: until,
        tone,
        what,
        about,
    })
}

/// How the record stands now, if that is an event.
fn end(record: &Record, now: Time) -> Option<Event> {
    let status = record.result.as_ref().and_then(status);
    let with =
        |words: &'static str| html! { (words) @if let Some(status) = status { ": " (status) } };
    let (tone, what) = match record.state {
        State::Running if record.lease_until <= now => (
            Tone::Doubt,
            html! { "Nobody renews its lease any more: the run is lost or in doubt" },
        ),
        State::Running => return None,
        State::Succeeded => (Tone::Ran, with("Succeeded")),
        State::Failed => (Tone::Failed, with("Failed for good")),
        State::Waiting => (
            Tone::Waiting,
            with("The last run failed; a delivery or a redrive from here on runs it"),
        ),
        State::Parked => (Tone::Parked, with("Parked: a person decides")),
    };
    let took = record.lease_until.since(Time(record.fence.0));
    let about = match record.state {
        // Who says what became of it takes no time.
        State::Succeeded | State::Failed if !took.is_zero() => format!("after {}", span(took)),
        State::Succeeded | State::Failed | State::Running | State::Waiting | State::Parked => {
            String::new()
        }
    };
    Some(Event {
        at: record.lease_until,
        tone,
        what,
        about,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_steps_that_it_began() {
        let step = |name: &str, fence: u64, result: Option<&'static [u8]>| {
            let result = result.map(bytes::Bytes::from_static);
            let fence = Fence(fence);
            (name.to_owned(), StepRecord { fence, result })
        };
        let steps = [
            step("charge", 7, Some(b"rc_1")),
            step("mail", 7, None),
            step("ship", 9, None),
        ];
        assert_eq!(
            begun(Fence(7), "gate-7", None, &steps).about,
            "fence 7 · step charge: done · step mail: begun, and not said to be done"
        );
    }
}
