//! Routes: by what each tells work apart, what it promises, its times, how it is doing, and a box to try a request.

use super::Screen;
use super::format::{number, span};
use super::test_box;
use super::traffic::{Traffic, percent};
use crate::gate::{Gate, RouteState};
use crate::operate::Refused;
use crate::rates::{Became, RouteSnapshot};
use crate::settings::{FingerprintRule, Route, Source, Terms};
use axum::extract::Path;
use axum::response::Response;
use semel::key::KeyRule;
use semel_ui::{Column, Markup, Rows, Tone, empty, facts, html, note, table};
use std::time::Duration;

const LIST: [Column<'_>; 7] = [
    Column::text("route"),
    Column::text("delivered by"),
    Column::text("same work when equal"),
    Column::text("promise"),
    Column::number("per second"),
    Column::number("duplicates"),
    Column::number("in doubt or parked (1 h)"),
];

const TERMS: [Column<'_>; 8] = [
    Column::text("delivered by"),
    Column::text("same work when equal"),
    Column::number("lease"),
    Column::number("timeout"),
    Column::number("deadline"),
    Column::number("remembered"),
    Column::number("horizon"),
    Column::number("duplicates wait"),
];

pub(super) async fn show(screen: Screen) -> Response {
    let main = match &screen.state.gate {
        Some(gate) => html! { h1 { "Routes" } (list(&screen, gate)) },
        None => gate_only("Routes"),
    };
    screen.show("Routes", "routes", &main)
}

pub(super) async fn show_one(screen: Screen, Path(name): Path<String>) -> Response {
    let main = found(&screen, &name).map(|(gate, route)| {
        html! {
            (head(&screen, gate, route))
            (about(gate, route))
            (test_box::form(&screen, route, &test_box::Tried::default()))
        }
    });
    screen.answer(&name, "routes", main)
}

/// The route of this name.
pub(super) fn found<'a>(
    screen: &'a Screen,
    name: &str,
) -> Result<(&'a Gate, &'a RouteState), Refused> {
    let gate = screen.state.gate.as_deref();
    let route = gate.and_then(|gate| Some((gate, gate.route_state(name)?.as_ref())));
    route.ok_or_else(|| {
        Refused::absent(
            format!("this gate has no route {name:?}"),
            "the list of routes shows which there are",
        )
    })
}

/// All routes, one line each.
pub(super) fn list(screen: &Screen, gate: &Gate) -> Markup {
    let rates = gate.rates.snapshot();
    let row = |route: &std::sync::Arc<RouteState>| {
        let rates = rates.iter().find(|it| it.route == route.name);
        line(screen, gate, route, rates)
    };
    let rows: Vec<_> = gate.routes.iter().map(row).collect();
    if rows.is_empty() {
        return empty(&html! { "This gate has no routes." });
    }
    Rows::live("now-routes", "").table("Routes", &LIST, &rows)
}

fn line(
    screen: &Screen,
    gate: &Gate,
    route: &RouteState,
    rates: Option<&RouteSnapshot>,
) -> Vec<Markup> {
    let settings = &route.settings;
    let traffic = Traffic::of_routes(rates.map_or(&[], std::slice::from_ref));
    let hour = traffic.hour();
    let href = screen.to(&format!("routes/{}", segment(&settings.name)));
    vec![
        html! { a href=(href) { (settings.name) } },
        html! { (sources(settings)) },
        html! { @for rule in rules(settings) { code { (rule) } " " } },
        promise(gate, settings),
        html! { (format!("{:.1}", traffic.per_second())) },
        html! { (percent(hour.duplicates, hour.sum())) },
        html! { (number(hour.of(Became::InDoubt) + hour.of(Became::Parked))) },
    ]
}

/// What one route is, and what it promises.
pub(super) fn head(screen: &Screen, gate: &Gate, route: &RouteState) -> Markup {
    let settings = &route.settings;
    html! {
        p.lead { a href=(screen.to("routes")) { "Routes" } " / " (settings.name) }
        h1 { (settings.name) " " (promise(gate, settings)) }
        @if let Some(line) = gate.promises.of(&settings.name) { p.lead { (sentences(&line.says)) } }
    }
}

/// What the settings say of a promise in parts, as sentences.
fn sentences(says: &str) -> String {
    let sentence = |part: &str| {
        let mut rest = part.chars();
        let first = rest.next().map(|it| it.to_uppercase().to_string());
        format!("{}{}.", first.unwrap_or_default(), rest.as_str())
    };
    says.split("; ").map(sentence).collect::<Vec<_>>().join(" ")
}

/// The rest of it.
pub(super) fn about(gate: &Gate, route: &RouteState) -> Markup {
    let settings = &route.settings;
    let rates = gate.rates.snapshot();
    let rates = rates.iter().find(|it| it.route == route.name);
    html! {
        h2 { "Rule and times" }
        div.card { (facts(&rule_facts(settings, rates))) }
        h2 { "By sender" }
        (terms(settings))
        h2 { "Deliveries per second" }
        @if let Some(rates) = rates {
            @let label = format!("Deliveries per second to {} in the last hour", settings.name);
            (Traffic::of_routes(std::slice::from_ref(rates)).chart(&label))
        }
    }
}

fn rule_facts(settings: &Route, rates: Option<&RouteSnapshot>) -> Vec<(&'static str, Markup)> {
    let p99 = rates.and_then(|it| it.handler_p99);
    vec![
        ("path", html! { code { (settings.path) } }),
        ("handler", html! { code { (settings.upstream.base) } }),
        (
            "a repeat is compared by",
            html! { (compared(&settings.fingerprint)) },
        ),
        ("in doubt", html! { (in_doubt(settings)) }),
        ("runs at once", html! { (settings.concurrency) }),
        (
            "handler, p99",
            html! { @if let Some(p99) = p99 { (span(p99)) } @else { "not called yet" } },
        ),
        (
            "bodies",
            html! { (if settings.show_bodies { "shown on this page" } else { "not shown on this page" }) },
        ),
        (
            "what labels say",
            html! {
                @if settings.private.is_some() { "digests only (private)" }
                @else if settings.keep_payload { "the parts of the key, and the payload" }
                @else { "the parts of the key" }
            },
        ),
    ]
}

fn compared(rule: &FingerprintRule) -> String {
    match rule {
        FingerprintRule::Full => "method, path, type, attributes and payload".into(),
        FingerprintRule::With(names) => {
            format!(
                "method, path, type, attributes, payload and {}",
                names.join(", ")
            )
        }
        FingerprintRule::Payload => "the payload alone".into(),
        FingerprintRule::Off => "nothing: every repeat is honest".into(),
    }
}

fn in_doubt(settings: &Route) -> &'static str {
    use semel::protocol::InDoubt;
    match settings.in_doubt {
        InDoubt::Retry => "runs again",
        InDoubt::Park => "waits for a person",
        InDoubt::Probe => "the handler is asked first",
    }
}

fn terms(settings: &Route) -> Markup {
    let row = |source: &Source| {
        let terms: &Terms = settings.terms(*source);
        let or_none = |it: Option<Duration>| it.map_or_else(|| "–".to_owned(), span);
        vec![
            html! { (source) },
            html! { code { (rule(&terms.key)) } },
            html! { (span(terms.lease)) },
            html! { (span(terms.timeout)) },
            html! { (or_none(terms.deadline)) },
            html! { (span(terms.retention)) },
            html! { (or_none(terms.horizon)) },
            html! { (span(terms.wait)) },
        ]
    };
    let rows: Vec<_> = settings.sources.iter().map(row).collect();
    table("Terms by sender", &TERMS, &rows)
}

/// What is proved of its effects.
pub(super) fn promise(gate: &Gate, settings: &Route) -> Markup {
    let line = gate.promises.of(&settings.name);
    match line.as_ref().and_then(|it| it.proved) {
        Some(promise) => {
            let strong = promise == crate::settings::Promise::ExactlyOnce;
            html! { span class=(if strong { "promise strong" } else { "promise" }) { (promise) } }
        }
        None if line.is_some() => html! { span.promise { "no promise" } },
        None => html! { small { "not proved here" } },
    }
}

fn sources(settings: &Route) -> String {
    let words: Vec<_> = settings.sources.iter().map(|it| it.word()).collect();
    words.join(", ")
}

/// The key rules, each once.
fn rules(settings: &Route) -> Vec<String> {
    let mut rules: Vec<_> = settings
        .sources
        .iter()
        .map(|source| rule(&settings.terms(*source).key))
        .collect();
    rules.dedup();
    rules
}

pub(super) fn rule(rule: &KeyRule) -> String {
    let parts: Vec<_> = rule.parts().iter().map(ToString::to_string).collect();
    parts.join(" ")
}

/// A name as a segment of a path.
pub(super) fn segment(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let written = name.bytes().map(|byte| {
        if plain(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    written.collect()
}

/// What is said where there is no gate.
pub(super) fn gate_only(title: &str) -> Markup {
    html! {
        h1 { (title) }
        (note(Tone::Busy, &html! {
            "This page looks at a store without a gate, and this screen shows what a gate remembers. Open the page of a \
             running gate: its admin address, " code { "/ui" } "."
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_said_in_sentences() {
        let says = "after a crash it runs again; proved: at-least-once";
        assert_eq!(
            sentences(says),
            "After a crash it runs again. Proved: at-least-once."
        );
    }
}
