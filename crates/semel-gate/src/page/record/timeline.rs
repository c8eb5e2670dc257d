//! What happened to a record, in order: deliveries that this gate remembers, runs that were superseded, and the last one.

use crate::operate::history::{begun_by, is_act, lasted, status};
use crate::page::format::{clock, span, whole};
use crate::page::overview::sender;
use crate::page::screen::delivery_tone;
use crate::recent::RecentDelivery;
use semel::clock::Time;
use semel::protocol::{Fence, Record, State, Superseded};
use semel_ui::{Markup, Moment, Tone, empty, html, timeline as draw};
use std::sync::Arc;

/// Something that happened, and when.
struct Event {
    at: Time,
    tone: Tone,
    what: Markup,
    about: String,
}

pub(super) fn timeline(
    record: Option<&Record>,
    deliveries: &[Arc<RecentDelivery>],
    now: Time,
) -> Markup {
    let mut events: Vec<Event> = deliveries.iter().map(|it| delivered(it)).collect();
    if let Some(record) = record {
        events.extend(runs(record));
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
    html! {
        (draw(&shown))
        @if deliveries.is_empty() {
            p.lead { "This gate remembers no delivery of it: they came before its memory reaches back, or to another gate." }
        }
    }
}

fn delivered(delivery: &RecentDelivery) -> Event {
    let heard = delivery
        .status
        .map_or_else(String::new, |status| format!(", heard {status}"));
    let mut about = vec![format!("in {}", span(delivery.elapsed))];
    about.extend(delivery.attempt.map(|it| format!("run {it}")));
    about.extend(delivery.why.as_deref().map(str::to_owned));
    about.push(format!("trace {:032x}", delivery.trace_id));
    let what = if delivery.is_end {
        html! { "The run ended: " b { (delivery.outcome) } }
    } else {
        html! { "Delivered by " b { (sender(delivery)) } ": " (delivery.outcome) (heard) }
    };
    Event {
        at: delivery.time(),
        tone: delivery_tone(delivery.outcome),
        what,
        about: about.join(" · "),
    }
}

/// Each run that was superseded: where and when it began, and how it ended; and where the last one began.
fn runs(record: &Record) -> Vec<Event> {
    let mut events = Vec::new();
    let mut at = None;
    let by = begun_by(record);
    for (superseded, by) in record.history.iter().zip(&by) {
        events.push(begun(superseded.fence, by, at));
        events.extend(ended(superseded, by));
        at = Some(superseded.at);
    }
    let last = by.last().map_or("", String::as_str);
    events.push(begun(record.fence, last, at));
    events
}

/// An act may leave the fence as it was, as a keeper's does: it has the time of its own entry.
fn begun(fence: Fence, by: &str, acted_at: Option<Time>) -> Event {
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
        about: format!("fence {fence}"),
    }
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
            with("The last run failed; the next delivery from here on runs it"),
        ),
        State::Parked => (Tone::Parked, with("Parked: a person decides")),
    };
    let took = record.lease_until.since(Time(record.fence.0));
    let about = match record.state {
        State::Succeeded | State::Failed => format!("after {}", span(took)),
        State::Running | State::Waiting | State::Parked => String::new(),
    };
    Some(Event {
        at: record.lease_until,
        tone,
        what,
        about,
    })
}
