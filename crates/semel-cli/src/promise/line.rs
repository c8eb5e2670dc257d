//! One plain line for each route: what a crash does to its effects, and what would make them exactly one.

use super::store::StoreFacts;
use super::table::{Assumed, Covers, Grounds, Shown, assumed, grounds, leads_to, shown};
use semel::protocol::InDoubt;
use semel::work::Completes;
use semel_gate::PromiseLine;
use semel_gate::settings::{DownstreamKeys, Lands, Promise, Route};
use std::collections::BTreeMap;

/// The effect of a crash, the promise that is proved, the stronger one that is only assumed, and the way to exactly once.
pub(crate) fn line(
    route: &Route,
    store: &StoreFacts,
    shown: &Shown,
    assumed: Option<&Assumed>,
) -> String {
    let mut line = after_a_crash(route).to_owned();
    line.push_str(&proved(route, store, shown, assumed.is_some()));
    line.push_str(&assumed.map(not_proved).unwrap_or_default());
    line.push_str(&remedy(route));
    line
}

/// The proved promise, with the declarations, assumptions and limits that it stands on.
fn proved(route: &Route, store: &StoreFacts, shown: &Shown, is_assumed: bool) -> String {
    let grounds = stands_on(&grounds(route, store, shown));
    match shown {
        Shown::Proved(promise, covers) => {
            let mut proved = format!("; proved: {promise}{}", of(*covers));
            proved.push_str(&grounds);
            if keeps_letters(route) && *promise != Promise::AtMostOnce {
                proved.push_str(", until the letters' quota is full");
            }
            proved
        }
        Shown::Unread(_, _, what) => {
            format!(
                "; proved only once the gate has read {}{grounds}",
                what.join(", and ")
            )
        }
        // The assumption says the same, and more.
        Shown::Unproved(_) if is_assumed => String::new(),
        Shown::Unproved(why) => format!("; no promise: {}", why.join("; ")),
    }
}

fn stands_on(grounds: &Grounds) -> String {
    let Grounds { declared, supposed } = grounds;
    let clauses = [
        (", as declared that ", declared),
        (", assuming that ", supposed),
    ];
    let clauses = clauses.into_iter().filter(|(_, says)| !says.is_empty());
    clauses
        .map(|(begin, says)| format!("{begin}{}", says.join(", that ")))
        .collect()
}

fn not_proved(assumed: &Assumed) -> String {
    format!(
        "; assumed, not proved: {}{}, as long as {}",
        assumed.promise,
        of(assumed.covers),
        assumed.assumptions.join(", and ")
    )
}

/// Returns whether unfinished work of a route can become a letter.
fn keeps_letters(route: &Route) -> bool {
    route.keeps_records() && route.sources.iter().any(|source| source.is_broker())
}

/// The lines of all routes, for the page.
pub(crate) fn lines(routes: &[Route], store: &StoreFacts) -> BTreeMap<String, PromiseLine> {
    let line_of = |route: &Route| {
        let shown = shown(route, store);
        let proved = match &shown {
            Shown::Proved(promise, _) => Some(*promise),
            Shown::Unread(..) | Shown::Unproved(_) => None,
        };
        let says = line(route, store, &shown, assumed(route, store).as_ref());
        (route.name.clone(), PromiseLine { proved, says })
    };
    routes.iter().map(line_of).collect()
}

/// The same for whoever has no store yet.
pub(crate) fn crash_line(route: &Route) -> String {
    format!("{}{}", after_a_crash(route), remedy(route))
}

fn after_a_crash(route: &Route) -> &'static str {
    if !route.keeps_records() {
        if is_only_landed(route) {
            return "nothing is remembered: every delivery lands, repeats included, and is acknowledged once it is durable";
        }
        return "nothing is remembered: every delivery runs the handler, after a crash and without one, and its effect \
                happens as often as it is delivered";
    }
    match (route.completes, route.downstream, route.in_doubt) {
        (Completes::Handler, _, _) => {
            "after a crash of the handler or the gate, the handler's transaction and its record are both there or both \
             not, and in the latter case it runs again"
        }
        (Completes::Run, _, InDoubt::Park) => {
            "after a crash of the handler or the gate, or a failure whose effect is in doubt, the work is parked: a \
             person finds out whether it took effect"
        }
        (Completes::Run, _, InDoubt::Probe) => {
            "after a crash of the handler or the gate, the handler is asked whether the work took effect before it runs \
             again"
        }
        (Completes::Run, Some(downstream), InDoubt::Retry) => match downstream.keys {
            DownstreamKeys::Key => {
                "after a crash of the handler or the gate the work runs again with the same key, and the downstream \
                 drops what it knows"
            }
            DownstreamKeys::Steps => {
                "after a crash of the handler or the gate the work runs again with the same step keys, and the \
                 downstream drops what it knows"
            }
        },
        (Completes::Run, None, InDoubt::Retry) => {
            "after a crash of the handler or the gate the work runs again, and its effect can happen twice"
        }
    }
}

/// Whether no handler is called.
fn is_only_landed(route: &Route) -> bool {
    let rule = route.land.as_ref();
    rule.is_some_and(|rule| rule.lands == Lands::Delivery)
}

/// What would make it exactly once, unless it says so already.
fn remedy(route: &Route) -> String {
    let fences = route.probe.as_ref().is_some_and(|probe| probe.fences);
    match (route.completes, route.downstream) {
        _ if !route.keeps_records() => "; exactly once is never promised without a record".into(),
        (Completes::Run, None) if !fences => {
            format!("; for exactly once, {}", leads_to(Promise::ExactlyOnce))
        }
        (Completes::Handler, _) | (Completes::Run, Some(_) | None) => String::new(),
    }
}

const fn of(covers: Covers) -> &'static str {
    match covers {
        Covers::Everything => "",
        Covers::Transaction => ", of what that transaction writes",
        Covers::Downstream => ", of what is done downstream",
    }
}
