//! The audit: who did what, when and why, and what came of it.

use super::Screen;
use super::format::{clock, count, shortened, whole};
use crate::audit::{AUDIT_ITEMS_MAX, AuditedAct};
use axum::response::Response;
use semel::clock::Time;
use semel_ui::{Column, Markup, Tone, empty, html, note, table};
use std::sync::Arc;

const COLUMNS: [Column<'_>; 6] = [
    Column::text("time (UTC)"),
    Column::text("act"),
    Column::text("on"),
    Column::text("before → after"),
    Column::text("why"),
    Column::text("who"),
];

pub(super) async fn show(screen: Screen) -> Response {
    let (acts, now) = (screen.state.audit.latest(), screen.now());
    let rows: Vec<_> = acts.iter().map(|act| row(&screen, act, now)).collect();
    let main = html! {
        h1 { "Audit" }
        p.lead {
            @if acts.len() < AUDIT_ITEMS_MAX { (count(acts.len() as u64, "act", "acts")) " went through this process. " }
            @else { "The latest " (AUDIT_ITEMS_MAX) " acts that went through this process. " }
            "The log has all of them: lines with the target " code { "audit" } "."
        }
        @if acts.is_empty() {
            (empty(&html! { "Nobody has acted since this process started." }))
        } @else {
            (table("Acts, the latest first", &COLUMNS, &rows))
        }
        (note(Tone::Busy, &html! {
            "Acts on a record are in its history too, whoever did them: open the record. Acts through another gate are in \
             that gate's log."
        }))
    };
    screen.show("Audit", "audit", &main)
}

fn row(screen: &Screen, act: &Arc<AuditedAct>, now: Time) -> Vec<Markup> {
    vec![
        html! { time.mono datetime=(whole(act.at)) { (clock(act.at, now)) } },
        html! {
            (act.act)
            @if act.redrive.is_some_and(|it| it.run_again) { " " small { "run again" } }
        },
        about(screen, act),
        html! {
            (act.before) " → " (act.after)
            @if let Some(promise) = &act.promise { br; small { "promise " (promise) } }
        },
        html! { @if act.who.why.is_empty() { small { "no reason given" } } @else { (act.who.why) } },
        html! { (act.who.by) br; small { "by " (act.who.via.word()) } },
    ]
}

/// The record and the letter that an act was about.
fn about(screen: &Screen, act: &AuditedAct) -> Markup {
    html! {
        @if let Some(key) = act.key {
            @let key = key.to_string();
            a href=(screen.to(&format!("records/{key}"))) { (shortened(&key, 11)) }
        }
        @if let Some(letter) = act.letter {
            @let letter = letter.to_string();
            @if act.key.is_some() { br; }
            "letter " (shortened(&letter, 8))
        }
    }
}
