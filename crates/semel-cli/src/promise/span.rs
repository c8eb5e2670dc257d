//! The span of a sender's deliveries, and what a promise needs of it: an outcome must be remembered as long as its work may be
//! delivered again.

use super::table::Holds;
use crate::config::{is_named_by_task, longest_horizon, needs_memory, written};
use semel_gate::settings::{Downstream, Promise, Route, Source};

/// The memory that *exactly once* and *at most once* need, for each source of a route.
pub(super) fn remembered(route: &Route) -> Vec<Holds> {
    let sources = route.sources.iter();
    sources
        .flat_map(|source| [outcomes(route, *source), names(route, *source)])
        .collect()
}

/// An outcome is remembered as long as its sender may deliver again.
fn outcomes(route: &Route, source: Source) -> Holds {
    let terms = route.terms(source);
    let retention = written(terms.retention);
    match terms.horizon {
        Some(horizon) if terms.retention >= horizon => Holds::Yes,
        Some(horizon) => {
            let horizon = written(horizon);
            Holds::Assumed {
                change: format!(
                    "retention {retention} < horizon {horizon} of {source}: lengthen retention"
                ),
                assumed: format!(
                    "no delivery of {source} comes later than retention {retention} (it may deliver for {horizon})"
                ),
            }
        }
        None => Holds::Assumed {
            change: format!(
                "how long a sender of {source} may repeat a request is not known: set horizon, not longer than retention \
                 {retention}"
            ),
            assumed: format!(
                "no request of {source} is repeated later than retention {retention} (no horizon is declared)"
            ),
        },
    }
}

/// Other work under a task's old name would be answered as a duplicate, and would not run.
fn names(route: &Route, source: Source) -> Holds {
    if route.task_names_unique || !is_named_by_task(source, route.terms(source)) {
        return Holds::Yes;
    }
    Holds::Assumed {
        change: "the key is the name of the task, and callers that choose names may use one again for other work: write \
                 task_names = \"never reused\" if they never do, or key it by what it is about (key = \"/order_id\")"
            .into(),
        assumed: "no caller uses the name of a task again".into(),
    }
}

/// A repeat is dropped downstream as long as one may come: `retention` after the last delivery, which came within
/// the `horizon`.
pub(super) fn windows(route: &Route, downstream: Downstream) -> Vec<Holds> {
    let windows = route.sources.iter().filter_map(|source| {
        let terms = route.terms(*source);
        let needed = terms.retention.saturating_add(terms.horizon?);
        (downstream.window < needed).then(|| {
            Holds::no(format!(
                "downstream_window {} < retention + horizon {} of {source}: lengthen it, if the downstream remembers for \
                 that long",
                written(downstream.window),
                written(needed)
            ))
        })
    });
    windows.collect()
}

/// The declarations that a proof of this promise rests on: a span that is shorter than its sender's own.
pub(super) fn declared(route: &Route, promise: Promise) -> Vec<String> {
    let sources = route.sources.iter().filter(|_| needs_memory(promise));
    let shorter = sources.filter_map(|source| {
        let terms = route.terms(*source);
        let (horizon, longest) = (terms.horizon?, longest_horizon(*source, terms)?);
        (horizon < longest).then(|| {
            format!(
                "no delivery of {source} comes later than horizon {} (it can deliver for {})",
                written(horizon),
                written(longest)
            )
        })
    });
    shorter.collect()
}
