//! In doubt and parked: where a person has to find out what happened, and decide.

use super::Screen;
use super::format::{as_of, count, number, since};
use super::rows::{self, ROWS_MAX, Row};
use super::screen::tone;
use crate::census::RecordCensus;
use crate::operate::Refused;
use axum::response::Response;
use semel::Outcome;
use semel::clock::Time;
use semel::protocol::{Record, State};
use semel_ui::{Column, Markup, Tone, empty, html, note, state, table};

const COLUMNS: [Column<'_>; 7] = [
    Column::text("about"),
    Column::text("route"),
    Column::text("state"),
    Column::text("since"),
    Column::text("what is known"),
    Column::number("runs"),
    Column::text("first sent by"),
];

pub(super) async fn show(screen: Screen) -> Response {
    let known = screen.state.census.look_first().await;
    let main = match &known.records {
        Some(records) => counted(&screen, records).await,
        None => Ok(html! {
            h1 { "In doubt and parked" }
            (super::screen::being_counted(&known))
        }),
    };
    screen.answer("In doubt", "doubt", main)
}

async fn counted(screen: &Screen, records: &RecordCensus) -> Result<Markup, Refused> {
    let now = screen.now();
    let parked = rows::look(screen, records.parked.all(), |it| it.state == State::Parked).await?;
    let doubtful = |it: &Record| it.in_doubt && it.state.ending().is_none();
    let doubtful = rows::look(screen, records.doubtful.all(), doubtful).await?;
    Ok(html! {
        h1 { "In doubt and parked" }
        p.lead {
            strong { (count(records.of(State::Parked), "record waits", "records wait")) } " for a person ("
            (number(records.parked_in_doubt())) " of them in doubt), "
            strong { (number(records.doubtful_count())) } " more "
            (if records.doubtful_count() == 1 { "is" } else { "are" }) " in doubt and will be decided by the route's own \
            rule. Counted " (as_of(records.at, now)) "."
        }
        h2 { "Parked: a person decides" }
        @if parked.is_empty() {
            (empty(&html! { "Nothing is parked." }))
        } @else {
            (note(Tone::Parked, &html! {
                "Open a record to decide: " b { "done" } ", " b { "not done" } " or " b { "run again" } ". Find out first, \
                 in the handler's own database or at whoever it calls: nobody here knows."
            }))
            (list(screen, "Parked records, the oldest first", &parked, now))
            (more(records.of(State::Parked)))
        }
        h2 { "In doubt, and not parked" }
        @if doubtful.is_empty() {
            (empty(&html! { "Nothing else is in doubt." }))
        } @else {
            (list(screen, "Records in doubt, the oldest first", &doubtful, now))
            (more(records.doubtful_count()))
        }
    })
}

fn list(screen: &Screen, caption: &str, rows: &[Row], now: Time) -> Markup {
    let cells = |row: &Row| {
        let record = &row.record;
        vec![
            row.about(screen),
            html! { @if row.route().is_empty() { "–" } @else { (row.route()) } },
            html! {
                (state(tone(record.state), record.state.word()))
                @if record.in_doubt { " " (state(Tone::Doubt, "in doubt")) }
            },
            since(record.lease_until.min(now), now),
            what_is_known(record),
            html! { (record.attempts) },
            html! { span.mono.names { (row.sender()) } },
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    table(caption, &COLUMNS, &rows)
}

/// What the last run left behind, in words.
pub(super) fn what_is_known(record: &Record) -> Markup {
    let doubts = record.doubts;
    html! {
        @match record.result.as_ref().map(Outcome::decode) {
            Some(Ok(outcome)) => { "the last run answered " (outcome.status) },
            Some(Err(_)) => { "what the last run left cannot be read" },
            None => { "the last run left no answer: its gate was lost, or the handler did not answer in time" },
        }
        @if doubts > 0 { br; small { (count(doubts.into(), "run", "runs")) " ended in doubt" } }
    }
}

fn more(total: u64) -> Markup {
    html! {
        @if total > ROWS_MAX as u64 {
            p.lead { "The oldest " (ROWS_MAX) " are shown; decide them, or use " code { "semel records list" } " for all." }
        }
    }
}
