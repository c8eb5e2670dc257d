//! Mismatches: the same key, other work. Which part differs is told by digests; the payloads are compared field by field
//! only where the route keeps them.

use super::Screen;
use super::format::{clock, count, shortened, whole};
use super::overview::{about, sender};
use super::routes::gate_only;
use crate::label::{Digests, Label, cut};
use crate::operate::Refused;
use crate::recent::RecentDelivery;
use axum::response::Response;
use semel::store::StoreExt;
use semel_ui::{Column, Markup, Tone, empty, html, note, state, table};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// How many are shown: each costs a look at its record.
const ROWS_MAX: usize = 50;

/// How many fields are compared on the page, and how much of each value is shown: a delivery may be large.
const FIELDS_MAX: usize = 200;
const VALUE_BYTES_MAX: usize = 1024;

const COLUMNS: [Column<'_>; 5] = [
    Column::text("time (UTC)"),
    Column::text("route"),
    Column::text("about"),
    Column::text("what differs"),
    Column::text("sender"),
];

const FIELDS: [Column<'_>; 3] = [
    Column::text("field"),
    Column::text("in the record"),
    Column::text("in this delivery"),
];

pub(super) async fn show(screen: Screen) -> Response {
    let main = match &screen.state.gate {
        Some(gate) => listed(&screen, &gate.recent.mismatches()).await,
        None => Ok(gate_only("Mismatches")),
    };
    screen.answer("Mismatches", "mismatches", main)
}

async fn listed(
    screen: &Screen,
    found: &[std::sync::Arc<RecentDelivery>],
) -> Result<Markup, Refused> {
    let now = screen.now();
    let mut rows = Vec::new();
    for delivery in found.iter().take(ROWS_MAX) {
        let at = delivery.time();
        rows.push(vec![
            html! { time.mono datetime=(whole(at)) { (clock(at, now)) } },
            html! { (delivery.route) },
            about(screen, delivery),
            differs(screen, delivery).await?,
            html! {
                span.mono { (sender(delivery)) }
                @if let Some(letter) = delivery.letter {
                    @let letter = letter.to_string();
                    br; a href=(screen.to(&format!("letters/{letter}#compared"))) { "compare, in letter " (shortened(&letter, 8)) }
                }
            },
        ]);
    }
    Ok(html! {
        h1 { "Mismatches" }
        p.lead {
            "This gate remembers " strong { (count(found.len() as u64, "delivery", "deliveries")) }
            " whose key is known with other work. None of them ran. Those of brokers are kept as letters."
        }
        @if rows.is_empty() {
            (empty(&html! { "None: every repeat was an honest one." }))
        } @else {
            (table("Mismatches, the newest first", &COLUMNS, &rows))
            (note(Tone::Doubt, &html! {
                "A mismatch is either two pieces of work under one name (then the key rule is too narrow), or one piece of \
                 work whose sender changes something between deliveries (then say what to ignore: "
                code { "fingerprint" } ", " code { "fingerprint_ignores" } ")."
            }))
        }
    })
}

/// The members of two JSON objects that differ, each as it was written; none where one of them is no object.
pub(super) fn fields(was: &str, is: &str) -> Option<Markup> {
    type Members<'a> = BTreeMap<String, &'a RawValue>;
    let (was, is): (Members<'_>, Members<'_>) = (
        serde_json::from_str(was).ok()?,
        serde_json::from_str(is).ok()?,
    );
    let names: BTreeSet<_> = was.keys().chain(is.keys()).collect();
    let written = |members: &Members<'_>, name: &str| {
        let value = members.get(name);
        value.map_or("missing", |value| value.get()).to_owned()
    };
    let differs = |name: &&String| written(&was, name) != written(&is, name);
    let differing: Vec<_> = names.into_iter().filter(differs).collect();
    let row = |name: &&String| {
        let values = [(*name).clone(), written(&was, name), written(&is, name)];
        let cell = |value: String| html! { code { (cut(&value, VALUE_BYTES_MAX)) } };
        values.map(cell).to_vec()
    };
    let rows: Vec<_> = differing.iter().take(FIELDS_MAX).map(row).collect();
    Some(html! {
        (table("Field by field", &FIELDS, &rows))
        @if differing.len() > FIELDS_MAX {
            p.lead { "And " (count((differing.len() - FIELDS_MAX) as u64, "more field", "more fields")) "." }
        }
    })
}

/// Which parts differ from what the record was made of.
async fn differs(screen: &Screen, delivery: &RecentDelivery) -> Result<Markup, Refused> {
    let Some(key) = delivery.key else {
        return Ok(html! { "–" });
    };
    let Some(record) = screen.state.store().look(&key).await? else {
        return Ok(html! { small { "its record is gone by now" } });
    };
    let Some(label) = Label::read(&record.label) else {
        return Ok(html! { small { "the record says nothing of what it was made of" } });
    };
    Ok(parts(&label.digests, &delivery.digests))
}

fn parts(recorded: &Digests, delivered: &Digests) -> Markup {
    let pairs = Digests::WORDS
        .into_iter()
        .zip(recorded.all().into_iter().zip(delivered.all()));
    let differing: Vec<_> = pairs.filter(|(_, (was, is))| was != is).collect();
    html! {
        @if differing.is_empty() {
            small { "the parts are the same: what is compared was changed in the settings since" }
        }
        @for (word, (was, is)) in differing {
            div {
                (state(Tone::Refused, word)) " "
                small {
                    code { @if let Some(was) = was { (was) } @else { "none" } } " → "
                    code { @if let Some(is) = is { (is) } @else { "none" } }
                }
            }
        }
    }
}
