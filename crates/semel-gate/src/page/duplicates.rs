//! Duplicates: how many come, from whom, and how late they are against how long the gate remembers.

use super::Screen;
use super::format::{number, span};
use super::routes::gate_only;
use super::traffic::percent;
use crate::gate::Gate;
use crate::rates::{Counts, Late, RouteSnapshot};
use crate::settings::Route;
use axum::response::Response;
use semel_ui::{Column, Markup, Tone, empty, html, note, table};
use std::time::Duration;

const SENDERS: [Column<'_>; 6] = [
    Column::text("route"),
    Column::text("delivered by"),
    Column::number("deliveries"),
    Column::number("duplicates"),
    Column::number("share"),
    Column::text("remembered for"),
];

pub(super) async fn show(screen: Screen) -> Response {
    let main = match &screen.state.gate {
        Some(gate) => of_gate(gate),
        None => gate_only("Duplicates"),
    };
    screen.show("Duplicates", "duplicates", &main)
}

fn of_gate(gate: &Gate) -> Markup {
    let rates = gate.rates.snapshot();
    let none = Counts::default();
    let total = rates.iter().fold(none, |sum, it| sum.plus(&it.total));
    let (deliveries, duplicates) = (total.sum(), total.duplicates);
    let rows: Vec<_> = rates
        .iter()
        .flat_map(|route| senders(gate, route))
        .collect();
    html! {
        h1 { "Duplicates" }
        p.lead {
            strong { (number(duplicates)) } " of " strong { (number(deliveries)) } " deliveries since this gate started "
            (span(gate.rates.age())) " ago were duplicates (" (percent(duplicates, deliveries)) "): they ran nothing, because \
            their work was settled, running or not due. " strong { (number(total.not_repeated())) } " of them came after it \
            had succeeded: effects that were not repeated."
        }
        h2 { "By route and sender" }
        @if rows.is_empty() {
            (empty(&html! { "Nothing was delivered yet." }))
        } @else {
            (table("Duplicates by route and sender", &SENDERS, &rows))
        }
        h2 { "How late they come" }
        (lateness(gate, &rates))
        (note(Tone::Busy, &html! {
            "A duplicate that comes later than its work is remembered runs again: retention must be longer than the latest \
             one. " b { "Ran again" } " counts those whose first delivery this gate has seen; one whose first delivery came \
             to another gate, or before this one started, looks like new work here. How late is known of such work, and where \
             the sender says when it was published."
        }))
    }
}

fn senders(gate: &Gate, rates: &RouteSnapshot) -> Vec<Vec<Markup>> {
    let settings = gate.route_state(&rates.route).map(|it| &it.settings);
    let row = |(source, counts): (&crate::settings::Source, &crate::rates::SourceCounts)| {
        let kept = settings.map(|route| route.terms(*source).retention);
        vec![
            html! { (rates.route) },
            html! { (source) },
            html! { (number(counts.deliveries)) },
            or_none(counts.duplicates),
            html! { @if counts.duplicates == 0 { "–" } @else { (percent(counts.duplicates, counts.deliveries)) } },
            html! { @if let Some(kept) = kept { (span(kept)) } },
        ]
    };
    rates.by_source.iter().map(row).collect()
}

fn lateness(gate: &Gate, rates: &[RouteSnapshot]) -> Markup {
    let mut columns = vec![Column::text("route")];
    columns.extend(Late::ALL.map(|late| Column::number(late.word())));
    columns.push(Column::number("ran again"));
    columns.push(Column::text("against retention"));
    let is_late = |it: &&RouteSnapshot| it.total.duplicates > 0 || it.forgotten > 0;
    let late: Vec<_> = rates.iter().filter(is_late).collect();
    if late.is_empty() {
        return empty(&html! { "No duplicate came yet." });
    }
    let row = |rates: &&RouteSnapshot| {
        let mut cells = vec![html! { (rates.route) }];
        cells.extend(rates.late.all().map(|(_, count)| or_none(count)));
        cells.push(or_none(rates.forgotten));
        let settings = gate.route_state(&rates.route).map(|it| &it.settings);
        cells.push(settings.map_or_else(|| html! {}, |route| against(route, rates)));
        cells
    };
    let rows: Vec<_> = late.iter().map(row).collect();
    table("How late duplicates come, by route", &columns, &rows)
}

/// A number among many, most of which are nothing.
fn or_none(count: u64) -> Markup {
    html! { @if count == 0 { "–" } @else { (number(count)) } }
}

/// Whether the latest duplicates came when their work was still remembered.
fn against(route: &Route, rates: &RouteSnapshot) -> Markup {
    let kept = route
        .sources
        .iter()
        .map(|source| route.terms(*source).retention);
    let kept = kept.min().unwrap_or_default();
    let latest = rates.late.all().filter(|(_, count)| *count > 0);
    let latest = latest.filter_map(|(late, _)| at_least(late)).max();
    let (tone, word) = match latest {
        _ if rates.forgotten > 0 => (Tone::Failed, "too short"),
        Some(latest) if latest >= kept => (Tone::Doubt, "too short"),
        Some(_) => (Tone::Ran, "long enough so far"),
        None => (Tone::Busy, "unknown"),
    };
    html! { (semel_ui::state(tone, word)) " " small { "remembered for " (span(kept)) } }
}

/// How late such a duplicate is at the least.
const fn at_least(late: Late) -> Option<Duration> {
    let seconds = match late {
        Late::Second => 0,
        Late::Minute => 1,
        Late::TenMinutes => 60,
        Late::Hour => 600,
        Late::SixHours => 3_600,
        Late::Day => 21_600,
        Late::More => 86_400,
        Late::Unknown => return None,
    };
    Some(Duration::from_secs(seconds))
}
