//! The span of a sender's deliveries, and what a promise needs of it: an outcome must be remembered as long as its work may be
//! delivered again.

use super::StoreFacts;
use super::table::Holds;
use crate::config::{changed_by_copy, is_named_by_task, longest_horizon, volatile_part, written};
use semel_gate::settings::{Downstream, OnExhausted, Redelivery, Route, Source, Terms, Webhook};
use std::time::Duration;

/// The memory that *exactly once* and *at most once* need, for each source of a route.
pub(super) fn remembered(route: &Route, facts: &StoreFacts) -> Vec<Holds> {
    let sources = route.sources.iter().copied();
    let each = sources.map(|source| {
        let mut holds = outcomes(route, source, facts);
        holds.extend([repeats(route, source), copies(route, source)]);
        holds
    });
    each.flatten().collect()
}

/// An outcome is remembered as long as its sender may deliver again.
fn outcomes(route: &Route, source: Source, facts: &StoreFacts) -> Vec<Holds> {
    let terms = route.terms(source);
    let retention = written(terms.retention);
    match terms.horizon {
        Some(horizon) if terms.retention >= horizon => ends(route, source, horizon, facts),
        Some(horizon) => {
            let horizon = written(horizon);
            vec![Holds::Assumed {
                change: format!(
                    "retention {retention} < horizon {horizon} of {source}: lengthen retention"
                ),
                assumed: format!(
                    "no delivery of {source} comes later than retention {retention} (it may deliver for {horizon})"
                ),
            }]
        }
        None => vec![Holds::Assumed {
            change: format!(
                "how long a sender of {source} may repeat a request is not known{}: set horizon, not longer than retention \
                 {retention}",
                beyond(source, terms)
            ),
            assumed: format!(
                "no request of {source} is repeated later than retention {retention} (no horizon is declared)"
            ),
        }],
    }
}

/// The reason why the schedule of a webhook does not say it.
fn beyond(source: Source, terms: &Terms) -> String {
    match (source, terms.sender_attempts.most) {
        (Source::Webhook(_), Some(most)) => {
            format!(" (sender_attempts {most} is more than its documented schedule has)")
        }
        (
            Source::Api
            | Source::CloudTasks
            | Source::PubSub
            | Source::CloudEvents
            | Source::Webhook(_),
            _,
        ) => String::new(),
    }
}

/// The reasons why a sender delivers no longer than its horizon.
fn ends(route: &Route, source: Source, horizon: Duration, facts: &StoreFacts) -> Vec<Holds> {
    let longest = longest_horizon(source, route.terms(source));
    let no_later = || {
        let can = longest.filter(|longest| horizon < *longest);
        let can = can.map(|longest| format!(" (it can deliver for {})", written(longest)));
        Holds::Declared(format!(
            "no delivery of {source} comes later than horizon {}{}",
            written(horizon),
            can.unwrap_or_default()
        ))
    };
    let no_longer = |why: &str| {
        let time = written(horizon);
        Holds::Supposed(format!("{source} delivers for {time} at most ({why})"))
    };
    let is_default = longest == Some(horizon);
    match source {
        Source::PubSub if facts.never_sought.contains(&route.name) => vec![
            Holds::Declared(format!("no seek goes back in the subscription of {source}")),
            no_longer("the default retention of its subscription"),
        ],
        // Both are limits of the service.
        Source::CloudTasks | Source::PubSub if longest <= Some(horizon) => Vec::new(),
        Source::CloudEvents if is_default => vec![no_longer("as Eventarc does")],
        Source::Webhook(Webhook::Standard) if is_default => {
            vec![no_longer("the example schedule of its specification")]
        }
        Source::Webhook(_) if is_default => vec![no_longer("its documented schedule")],
        Source::Api
        | Source::CloudTasks
        | Source::PubSub
        | Source::CloudEvents
        | Source::Webhook(_) => vec![no_later()],
    }
}

/// A repeat under another key is other work, and runs again.
fn repeats(route: &Route, source: Source) -> Holds {
    volatile_part(route, source).map_or(Holds::Yes, |(part, why)| {
        Holds::no(format!(
            "{part}: {why}, so a repeat of {source} may be other work, and would run again: name what a repeat shares (key = \
             \"/order_id\", caller = \"jwt:sub\")"
        ))
    })
}

/// The condition that no new work has the key of a known task: it would be answered as a duplicate, and would not run.
pub(super) fn names(route: &Route) -> Vec<Holds> {
    let is_named = |source: &Source| is_named_by_task(*source, route.terms(*source));
    if !route.sources.iter().any(is_named) {
        return Vec::new();
    }
    let assumed = "no caller uses the name of a task again".into();
    if route.task_names_unique {
        return vec![Holds::Declared(assumed)];
    }
    vec![Holds::Assumed {
        change: "the key is the name of the task, and callers that choose names may use one again for other work, which would \
                 not run: write task_names = \"never reused\" if they never do, or key it by what it is about (key = \
                 \"/order_id\")"
            .into(),
        assumed,
    }]
}

/// The copy of a message in a dead-letter topic may be delivered to this route, too, where the span counts it.
fn copies(route: &Route, source: Source) -> Holds {
    let terms = route.terms(source);
    let attempts = terms.sender_attempts;
    match (changed_by_copy(source, terms), attempts.most) {
        (Some(part), Some(_)) => Holds::no(format!(
            "the key has {part}, and the copy of a message in the dead-letter topic has another one, so its work would run \
             again: key it by what it is about (key = \"/order_id\")"
        )),
        _ if source == Source::PubSub
            && !attempts.declared
            && route.on_exhausted == OnExhausted::Nack =>
        {
            Holds::no(
                "on_exhausted = \"nack\" leaves messages to a dead-letter topic, whose deliveries count: write \
                 sender_attempts, the subscription's max_delivery_attempts",
            )
        }
        _ if matches!(source, Source::PubSub | Source::CloudEvents) && !attempts.declared => {
            Holds::Supposed(format!(
                "the subscription of {source} has no dead-letter topic"
            ))
        }
        (Some(_) | None, _) => Holds::Yes,
    }
}

/// The deliveries that unfinished work relies on until it becomes a letter.
pub(super) fn delivered(route: &Route) -> Vec<Holds> {
    let sources = route.sources.iter().copied();
    sources
        .filter_map(|source| delivers(route, source))
        .collect()
}

fn delivers(route: &Route, source: Source) -> Option<Holds> {
    let terms = route.terms(source);
    let delivers_for = |why: &str| {
        let time = written(terms.delivers_for?);
        let says = format!("{source} delivers unfinished work for {time} at least{why}");
        Some(Holds::Supposed(says))
    };
    match (source, terms.redelivery(source)) {
        // The letter is there before the run.
        (_, Redelivery::Once | Redelivery::Uncounted) | (Source::Api | Source::Webhook(_), _) => {
            None
        }
        (Source::CloudTasks, Redelivery::Counted(most)) => {
            let says = format!("{source} delivers a task {most} times (a queue's default)");
            Some(Holds::Supposed(says)).filter(|_| !terms.sender_attempts.declared)
        }
        (Source::CloudTasks, Redelivery::Unlimited) => {
            delivers_for(" (a task lives for 31d, and is scheduled 30d ahead at most)")
        }
        // Each delivery says which attempt it is, and the last one becomes a letter.
        (Source::PubSub, Redelivery::Counted(_)) => None,
        (Source::PubSub, Redelivery::Unlimited) => {
            delivers_for(" (the default retention of a subscription is 7d)")
        }
        (Source::CloudEvents, Redelivery::Counted(_) | Redelivery::Unlimited) => {
            delivers_for(" (Eventarc delivers for 24h)")
        }
    }
}

/// A repeat is dropped downstream as long as one may come: `retention` after the last delivery, which came within
/// the `horizon`. Without one, no request is assumed to be repeated later than `retention`.
pub(super) fn windows(route: &Route, downstream: Downstream) -> Vec<Holds> {
    let too_short = route.sources.iter().filter_map(|source| {
        let terms = route.terms(*source);
        let horizon = terms.horizon.unwrap_or(terms.retention);
        let needed = terms.retention.saturating_add(horizon);
        (downstream.window < needed).then(|| {
            Holds::no(format!(
                "downstream_window {} < retention + horizon {} of {source}: lengthen it, if the downstream remembers for \
                 that long",
                written(downstream.window),
                written(needed)
            ))
        })
    });
    let drops = Holds::Declared(format!(
        "the downstream drops repeats for {}",
        written(downstream.window)
    ));
    too_short.chain([drops]).collect()
}
