//! Running and stuck: how old each run is, against its lease and what its route usually takes.

use super::Screen;
use super::format::{as_of, count, number, since, span};
use super::rows::{self, ROWS_MAX, Row};
use crate::census::RecordCensus;
use crate::operate::Refused;
use axum::response::Response;
use semel::clock::Time;
use semel::protocol::State;
use semel_ui::{Column, Markup, Tone, empty, html, state, table};
use std::time::Duration;

const RUNNING: [Column<'_>; 6] = [
    Column::text("about"),
    Column::text("route"),
    Column::text("how it stands"),
    Column::number("running for"),
    Column::number("usual (p99)"),
    Column::number("run"),
];

const WAITING: [Column<'_>; 5] = [
    Column::text("about"),
    Column::text("route"),
    Column::text("what is known"),
    Column::text("next run"),
    Column::number("runs"),
];

pub(super) async fn show(screen: Screen) -> Response {
    let known = screen.state.census.look_first().await;
    let main = match &known.records {
        Some(records) => counted(&screen, records).await,
        None => Ok(html! { h1 { "Running" } (super::screen::being_counted(&known)) }),
    };
    screen.answer("Running", "running", main)
}

async fn counted(screen: &Screen, records: &RecordCensus) -> Result<Markup, Refused> {
    let now = screen.now();
    let running = |it: &semel::protocol::Record| it.state == State::Running;
    let mut running = rows::look(screen, records.running.all(), running).await?;
    // Those that nobody holds any more come first.
    running.sort_by_key(|row| (row.record.lease_until > now, row.record.fence));
    let waiting = |it: &semel::protocol::Record| it.state == State::Waiting;
    let waiting = rows::look(screen, records.waiting.all(), waiting).await?;
    let lapsed = running.iter().filter(|row| row.record.lease_until <= now);
    let lapsed = lapsed.count() as u64;
    Ok(html! {
        h1 { "Running" }
        p.lead {
            strong { (number(records.of(State::Running))) } " running, "
            strong { (number(records.of(State::Waiting))) } " waiting to be tried again. Counted "
            (as_of(records.at, now)) "."
        }
        @if lapsed > 0 {
            (semel_ui::note(Tone::Doubt, &html! {
                (count(lapsed, "run has", "runs have")) " lost the lease: nobody renews it. The next delivery takes over, by \
                 the route's rule for runs in doubt."
            }))
        }
        @if running.is_empty() {
            (empty(&html! { "Nothing is running." }))
        } @else {
            (running_table(screen, &running, now))
            (more(records.of(State::Running)))
        }
        h2 { "Waiting to be tried again" }
        @if waiting.is_empty() {
            (empty(&html! { "Nothing waits." }))
        } @else {
            (waiting_table(screen, &waiting, now))
            (more(records.of(State::Waiting)))
        }
    })
}

fn running_table(screen: &Screen, rows: &[Row], now: Time) -> Markup {
    let cells = |row: &Row| {
        let age = now.since(Time(row.record.fence.0));
        let usual = row.usual(screen);
        vec![
            row.about(screen),
            html! { (row.route()) },
            standing(row.record.lease_until, age, usual, now),
            html! { (span(age)) },
            html! { @if let Some(usual) = usual { (span(usual)) } @else { "–" } },
            html! { (row.record.attempts) },
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    table("Running, those without a lease first", &RUNNING, &rows)
}

fn standing(lease_until: Time, age: Duration, usual: Option<Duration>, now: Time) -> Markup {
    if lease_until <= now {
        let lapsed = span(now.since(lease_until));
        return html! { (state(Tone::Doubt, "stuck")) " " small { "its lease lapsed " (lapsed) " ago" } };
    }
    let left = span(lease_until.since(now));
    let slow = usual.is_some_and(|usual| age > usual);
    html! {
        @if slow { (state(Tone::Waiting, "slow")) } @else { (state(Tone::Busy, "running")) }
        " " small { "lease renewed, " (left) " left" }
    }
}

fn waiting_table(screen: &Screen, rows: &[Row], now: Time) -> Markup {
    let cells = |row: &Row| {
        let due = row.record.lease_until;
        vec![
            row.about(screen),
            html! { (row.route()) },
            super::doubt::what_is_known(&row.record),
            html! {
                @if due > now { "not before " (span(due.since(now))) " from now" }
                @else { "with the next delivery; due " (since(due, now)) }
            },
            html! { (row.record.attempts) },
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    table("Waiting, the oldest first", &WAITING, &rows)
}

fn more(total: u64) -> Markup {
    html! {
        @if total > ROWS_MAX as u64 {
            p.lead { "The oldest " (ROWS_MAX) " are shown of " (number(total)) "." }
        }
    }
}
