//! What happened, in one sentence: how often it was delivered, how often it ran, and whether it took effect.

use crate::page::format::{count, span};
use crate::recent::RecentDelivery;
use semel::clock::Time;
use semel::protocol::{Record, State};
use semel_ui::{Markup, html};
use std::sync::Arc;

/// "Delivered 3 times at this gate, run twice, took effect once." Runs and effect are the record's, so of all gates.
pub(super) fn sentence(
    record: Option<&Record>,
    deliveries: &[Arc<RecentDelivery>],
    now: Time,
) -> Markup {
    let Some(record) = record else {
        return html! {
            "Its record is gone: it has expired or was forgotten. "
            @if !deliveries.is_empty() {
                "This gate remembers " strong { (count(delivered(deliveries), "delivery", "deliveries")) } " of it. "
            }
            "A further one would run."
        };
    };
    html! {
        (told(deliveries))
        (if deliveries.is_empty() { "Run " } else { ", run " }) strong { (times(record.attempts.into())) }
        (effect(record, now))
    }
}

/// Deliveries to this gate, as far as it remembers: other gates may know of more.
fn told(deliveries: &[Arc<RecentDelivery>]) -> Markup {
    html! {
        @if !deliveries.is_empty() {
            "Delivered " strong { (times(delivered(deliveries))) }
            " at this gate" @if is_partial(deliveries) { " as far as it remembers" }
        }
    }
}

/// The end of a run that outlasted its sender is not a delivery of its own; a mismatch is a delivery of other work.
fn delivered(deliveries: &[Arc<RecentDelivery>]) -> u64 {
    let own = deliveries
        .iter()
        .filter(|it| !it.is_end && it.outcome != "mismatched");
    own.count() as u64
}

/// Whether the first one that is remembered was not the first: it ran nothing, or ran as a later attempt.
fn is_partial(deliveries: &[Arc<RecentDelivery>]) -> bool {
    let first = deliveries.first();
    first.is_some_and(|it| it.attempt != Some(1))
}

fn effect(record: &Record, now: Time) -> Markup {
    // The last run's own doubt is over: its outcome is known, if only because somebody said so.
    let lost = u64::from(record.doubts.min(record.attempts.saturating_sub(1)));
    match record.state {
        State::Succeeded if lost == 0 => html! { ", took effect " strong { "once" } "." },
        State::Succeeded => html! {
            ", took effect " strong { "once" } " for certain; "
            (count(lost, "run before it was", "runs before it were")) " lost or in doubt, and may have taken effect too unless \
            the route's promise rules that out."
        },
        State::Failed => html! { ", and " strong { "failed for good" } ": it did not succeed." },
        State::Parked if record.in_doubt => html! {
            ": whether it took effect is " strong { "not known" } ", and a person decides."
        },
        State::Parked => html! { ", " strong { "did not succeed" } ", and waits for a person." },
        State::Waiting if record.in_doubt => html! {
            ": whether it took effect is " strong { "not known" } ". A further delivery or a redrive runs it again."
        },
        State::Waiting => {
            html! { ", and has " strong { "not taken effect" } " yet: a further delivery or a redrive runs it." }
        }
        State::Running if record.lease_until <= now => html! {
            ": the last run was " strong { "lost" } ", its lease lapsed " (span(now.since(record.lease_until))) " ago."
        },
        State::Running => html! {
            ": " strong { "running" } " since " (span(now.since(Time(record.fence.0)))) "."
        },
    }
}

/// once, twice, 3 times.
fn times(value: u64) -> String {
    match value {
        0 => "not at all".into(),
        1 => "once".into(),
        2 => "twice".into(),
        more => format!("{more} times"),
    }
}
