//! Runs in doubt that the handler is asked about: what that promises, and what the handler must guarantee for it.

use super::{Finding, Verdict};
use crate::config::values::written;
use semel_gate::settings::{Probe, Route, Terms};

/// All findings about a route that probes.
pub(super) fn check(route: &Route) -> Vec<Finding> {
    let Some(probe) = &route.probe else {
        return Vec::new();
    };
    let mut found = vec![
        Finding::route(route, None, Verdict::Note, asked(probe)),
        promise(route, probe),
    ];
    for source in route.sources.iter().copied() {
        let (verdict, says) = waits(route.terms(source), probe);
        found.push(Finding::route(route, Some(source), verdict, says));
    }
    found
}

fn asked(probe: &Probe) -> String {
    let Probe { method, path, .. } = probe;
    format!(
        "in_doubt = \"probe\": {method} {path} must answer 200 only if the effect happened, with the answer to record, and 404 \
         only if it did not and never will under a lower Semel-Fence, both read where effects are committed; anything else \
         parks the work, unless it can be asked again later (no answer, 429, 502 to 504)"
    )
}

fn promise(route: &Route, probe: &Probe) -> Finding {
    let (verdict, says) = if probe.fences {
        (
            Verdict::Note,
            "probe_fences = true: exactly one effect, as long as the handler refuses runs with a lower Semel-Fence than it has \
             seen, a probe's included, and the store loses nothing",
        )
    } else {
        (
            Verdict::Warning,
            "without probe_fences = true the promise is at least one effect: a run that was paused for long can still act \
             after the handler was asked about it; let the handler refuse lower fences, and say so",
        )
    };
    Finding::route(route, None, verdict, says.into())
}

/// Nobody asks while the run may still act, and its record must be there until then.
fn waits(terms: &Terms, probe: &Probe) -> (Verdict, String) {
    let sum = terms.lease.saturating_add(terms.timeout);
    let wait = sum.saturating_add(probe.after);
    let (asked, retention) = (written(wait), written(terms.retention));
    if wait <= terms.retention {
        let says = format!(
            "a run in doubt is asked about {asked} after it began (lease + timeout + {}): shorten timeout to what the work \
             takes",
            written(probe.after)
        );
        return (Verdict::Note, says);
    }
    let says = format!(
        "a run in doubt is asked about {asked} after it began, and retention {retention} forgets it before: lengthen retention \
         or shorten timeout"
    );
    (Verdict::Broken, says)
}
