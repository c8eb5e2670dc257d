//! Deliveries that no store tells of: what a promise assumes about those that are taken for repeats, and about those that are
//! refused before anything keeps them.

use super::table::Holds;
use crate::config::{SenderLimit, body_bytes_max_of, letters_bytes_min};
use semel::key::Part;
use semel_gate::path::PathPattern;
use semel_gate::settings::{FingerprintRule, KeyMissing, Route, Source, Webhook};

/// The conditions of every row: no other work is taken for a repeat, and none runs unprotected.
pub(super) fn always(route: &Route) -> [Holds; 2] {
    [
        compared(route),
        Holds::unless(route.key_missing == KeyMissing::Pass, || {
            "key_missing = \"pass\" lets requests through unprotected: set it to \"refuse\"".into()
        }),
    ]
}

fn compared(route: &Route) -> Holds {
    let is_stripe = route.sources == [Source::Webhook(Webhook::Stripe)];
    match route.fingerprint {
        FingerprintRule::Off if is_stripe && is_by_event_id(route) => {
            Holds::Supposed("an event id of stripe names the content of its event".into())
        }
        // Each delivery counts how many more are to come, so its payload cannot be compared.
        FingerprintRule::Off if is_stripe => Holds::no(
            "fingerprint = \"off\" takes another event under a known key for a repeat: let the key have the event id, which \
             names the content (key = \"stripe\")",
        ),
        FingerprintRule::Off => Holds::no(
            "fingerprint = \"off\" takes other work under a known key for a repeat: set it to \"full\"",
        ),
        FingerprintRule::Payload if may_differ(route) => Holds::no(
            "fingerprint = \"payload\" compares neither path nor query, which may differ here and are in no key, so other work \
             is taken for a repeat: set it to \"full\"",
        ),
        FingerprintRule::Payload | FingerprintRule::Full | FingerprintRule::With(_) => Holds::Yes,
    }
}

fn is_by_event_id(route: &Route) -> bool {
    let key = &route.terms(Source::Webhook(Webhook::Stripe)).key;
    key.parts().contains(&Part::Pointer("/id".into()))
}

/// Returns whether the path or the query may differ between deliveries. The query of a push is configured once.
fn may_differ(route: &Route) -> bool {
    let is_exact = matches!(route.path, PathPattern::Exact(_));
    let has_queries = |source: &Source| match source {
        Source::Api | Source::CloudTasks => true,
        Source::PubSub | Source::CloudEvents | Source::Webhook(_) => false,
    };
    !is_exact || route.sources.iter().any(has_queries)
}

/// The conditions under which work is not dropped before it runs: its body is taken, and its letter has room.
pub(super) fn kept(route: &Route) -> Vec<Holds> {
    let sources = route.sources.iter().copied();
    let mut holds: Vec<_> = sources
        .filter_map(|source| largest_body(route, source))
        .collect();
    let takes_brokers = route.sources.iter().any(|source| source.is_broker());
    if takes_brokers && route.keeps_records() {
        holds.push(one_letter(route));
    }
    holds
}

fn largest_body(route: &Route, source: Source) -> Option<Holds> {
    let SenderLimit { most, why, .. } = body_bytes_max_of(source)?;
    let one = route.body_bytes_max;
    (one < most).then(|| Holds::Assumed {
        change: format!(
            "a body of {source} that is larger than body_bytes_max {one} is refused, and no letter is kept of it: raise \
             body_bytes_max to {most}"
        ),
        assumed: format!(
            "no body of {source} is larger than body_bytes_max {one} (it may send {why})"
        ),
    })
}

fn one_letter(route: &Route) -> Holds {
    let (all, needed) = (route.letters.bytes_max, letters_bytes_min(route));
    Holds::unless(all < needed, || {
        format!(
            "letters_bytes_max {all} may not hold one letter of the largest body: raise letters_bytes_max to {needed}, or lower \
             body_bytes_max"
        )
    })
}

/// The declaration that an answer means that nothing happened, after which the work runs again.
pub(super) fn undone(route: &Route) -> Option<Holds> {
    let statuses = route.undone_statuses.iter();
    let statuses: Vec<_> = statuses
        .map(|range| match (range.start(), range.end()) {
            (one, last) if one == last => one.to_string(),
            (first, last) => format!("{first}-{last}"),
        })
        .collect();
    let says = || {
        let statuses = statuses.join(", ");
        Holds::Declared(format!(
            "nothing happened where the handler answers {statuses} (undone)"
        ))
    };
    (route.doubts_failures() && !statuses.is_empty()).then(says)
}
