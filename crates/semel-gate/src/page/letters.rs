//! Letters: grouped by route, reason and cause. Chosen groups or letters are tried out first; from there they are
//! redriven or discarded.

use super::Screen;
use super::act::{Fields, field};
use super::format::{as_of, bytes, count, number, shortened, since};
use crate::bulk::{self, JobKind, PACE_MAX, Selection};
use crate::census::{Known, LetterCensus, LetterGroup};
use crate::operate::Refused;
use axum::extract::{Form, Query};
use axum::response::Response;
use semel::clock::Time;
use semel::letter::{LetterHead, LetterId, Reason};
use semel_ui::{Column, Markup, Tone, empty, html, note, state, table};
use serde::Deserialize;

/// How many letters of a group are listed one by one.
const LIST_ITEMS_MAX: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    group: Option<String>,
}

const GROUPS: [Column<'_>; 7] = [
    Column::text(""),
    Column::text("route"),
    Column::text("reason"),
    Column::text("cause"),
    Column::number("letters"),
    Column::number("size"),
    Column::text("oldest"),
];

const LETTERS: [Column<'_>; 5] = [
    Column::text(""),
    Column::text("letter"),
    Column::text("record"),
    Column::text("kept"),
    Column::number("size"),
];

pub(super) async fn show(screen: Screen, Query(chosen): Query<Chosen>) -> Response {
    let known = screen.state.census.look_first().await;
    let main = match (&known.letters, &chosen.group) {
        (Some(letters), Some(group)) => one_group(&screen, letters, group).await,
        (Some(letters), None) => Ok(groups(&screen, letters, &known)),
        (None, _) => Ok(html! { h1 { "Letters" } (super::screen::being_counted(&known)) }),
    };
    screen.answer("Letters", "letters", main)
}

fn groups(screen: &Screen, letters: &LetterCensus, known: &Known) -> Markup {
    let now = screen.now();
    let rows: Vec<_> = letters
        .groups
        .iter()
        .map(|group| group_row(screen, group, now))
        .collect();
    html! {
        h1 { "Letters" }
        p.lead {
            "Deliveries that were acknowledged without success. Nothing is lost: each is kept whole until it is redriven or \
             discarded. " strong { (number(letters.total as u64)) } @if letters.more { " or more" } ", "
            (as_of(letters.at, now)) "."
        }
        @if let Some(trouble) = known.trouble() { (super::screen::trouble(trouble)) }
        @if rows.is_empty() {
            (empty(&html! { "No letters: every delivery that was acknowledged has succeeded." }))
        } @else {
            form method="post" action=(screen.to("letters/try")) {
                (table("Letters by route, reason and cause", &GROUPS, &rows))
                (try_bar(screen, "group"))
            }
        }
        (jobs(screen))
    }
}

fn group_row(screen: &Screen, group: &LetterGroup, now: Time) -> Vec<Markup> {
    let href = screen.to(&format!("letters?group={}", group.id));
    let label = format!(
        "choose {} {}: {}",
        group.route,
        group.reason.word(),
        group.cause
    );
    vec![
        html! { input type="checkbox" name="group" value=(group.id) aria-label=(label); },
        html! { (group.route) },
        html! { (state(tone(group.reason), group.reason.word())) },
        html! {
            a href=(href) { @if group.cause.is_empty() { "no cause was noted" } @else { (group.cause) } }
            @if group.redriven > 0 { br; small { (number(group.redriven as u64)) " were redriven before" } }
        },
        html! { (number(group.count as u64)) },
        html! { (bytes(group.bytes)) },
        since(group.oldest, now),
    ]
}

async fn one_group(screen: &Screen, letters: &LetterCensus, id: &str) -> Result<Markup, Refused> {
    let now = screen.now();
    let heads = screen.state.census.letters_of(|it| it == id).await?;
    let group = letters.groups.iter().find(|group| group.id == id);
    let rows: Vec<_> = heads
        .iter()
        .take(LIST_ITEMS_MAX)
        .map(|head| letter_row(screen, head, now))
        .collect();
    Ok(html! {
        p.lead { a href=(screen.to("letters")) { "Letters" } " / one group" }
        @match group {
            Some(group) => {
                h1 { (group.route) " · " (group.reason.word()) }
                p.lead { (group.cause) }
            }
            None => { h1 { "A group of letters" } }
        }
        @if rows.is_empty() {
            (empty(&html! { "All letters of this group are closed by now." }))
        } @else {
            form method="post" action=(screen.to("letters/try")) {
                p.lead { label { input type="checkbox" data-all="letter"; " all of these" } }
                (table("Letters of this group, the oldest first", &LETTERS, &rows))
                @if heads.len() > LIST_ITEMS_MAX {
                    p.lead { "The oldest " (LIST_ITEMS_MAX) " of " (number(heads.len() as u64)) ". The whole group is chosen \
                        in the list of groups." }
                }
                (try_bar(screen, "letter"))
            }
        }
    })
}

fn letter_row(screen: &Screen, head: &LetterHead, now: Time) -> Vec<Markup> {
    let id = head.id.to_string();
    vec![
        html! { input type="checkbox" name="letter" value=(id) aria-label={ "choose letter " (id) }; },
        html! {
            a href=(screen.to(&format!("letters/{id}"))) { (shortened(&id, 12)) }
            @if head.redriven { " " small { "redriven before" } }
        },
        html! {
            @if let Some(key) = head.key {
                @let key = key.to_string();
                a href=(screen.to(&format!("records/{key}"))) { (shortened(&key, 15)) }
            } @else { "it has no key" }
        },
        since(head.created_at, now),
        html! { (bytes(head.bytes)) },
    ]
}

/// Only those who may act get the button; without a gate nothing can be redriven.
fn try_bar(screen: &Screen, what: &str) -> Markup {
    html! {
        @if !screen.visitor.may_act() {
            p.may-not { "You may look, not act." }
        } @else {
            (screen.visitor.csrf_field())
            div.bar {
                button.act { "Try out: what would happen?" }
                span { "Nothing is changed by that. From there the chosen " (what) "s are redriven or discarded." }
            }
        }
    }
}

fn jobs(screen: &Screen) -> Markup {
    let jobs = screen.state.jobs.all();
    let now = screen.now();
    html! {
        @if !jobs.is_empty() {
            h2 { "Acts on many letters" }
            ul {
                @for job in &jobs {
                    @let progress = job.progress();
                    li {
                        a href=(screen.to(&format!("letters/jobs/{}", job.id))) {
                            (job.kind.word()) " of " (job.about)
                        }
                        ", " (since(job.begun, now)) ": " (number(progress.done as u64)) " done"
                        @if progress.end.is_none() { ", going on" }
                    }
                }
            }
        }
    }
}

// === Trying out ===

pub(super) async fn try_out(screen: Screen, Form(fields): Fields) -> Response {
    match begin(&screen, &fields) {
        Ok(path) => screen.lead_to(&path),
        Err(why) => screen.refuse("letters", &why),
    }
}

fn begin(screen: &Screen, fields: &[(String, String)]) -> Result<String, Refused> {
    let chosen = |name: &str| -> Vec<String> {
        let all = fields.iter().filter(|(it, _)| it == name);
        all.map(|(_, value)| value.clone()).collect()
    };
    let (groups, letters) = (chosen("group"), chosen("letter"));
    let (selection, about) = if groups.is_empty() {
        let letters: Option<Vec<_>> = letters.iter().map(|text| letter_id(text)).collect();
        let letters = letters.filter(|it| !it.is_empty()).ok_or_else(|| {
            Refused::mistaken("nothing was chosen", "tick a group or some letters first")
        })?;
        let about = count(letters.len() as u64, "letter", "letters");
        (Selection::Letters(letters), about)
    } else {
        let about = count(groups.len() as u64, "group", "groups");
        (Selection::Groups(groups), about)
    };
    let why = field(fields, "reason");
    let (jobs, desk) = (&screen.state.jobs, screen.desk(why));
    let job = bulk::begin(jobs, desk, JobKind::DryRun, selection, about, PACE_MAX);
    Ok(format!("letters/jobs/{}", job?.id))
}

pub(super) fn letter_id(text: &str) -> Option<LetterId> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(LetterId(bytes))
}

/// The colour of a reason.
pub(super) const fn tone(reason: Reason) -> Tone {
    match reason {
        Reason::Parked => Tone::Parked,
        Reason::Failed | Reason::Invalid => Tone::Failed,
        Reason::Mismatched => Tone::Doubt,
        Reason::Running => Tone::Busy,
        Reason::Exhausted => Tone::Waiting,
    }
}

/// What is said where nothing can be redriven.
pub(super) fn without_a_gate(screen: &Screen) -> Markup {
    html! {
        @if screen.state.gate.is_none() {
            (note(Tone::Busy, &html! {
                "This page looks at a store without a gate. A redrive runs the handler, and only a gate does that: open the \
                 page of a running gate."
            }))
        }
    }
}
