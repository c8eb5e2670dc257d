//! Letters: grouped by route, reason and cause. Chosen groups or letters are tried out first; from there they are
//! redriven or discarded.

use super::act::{Fields, field};
use super::format::{as_of, bytes, count, number, shortened, since};
use super::overview::sender;
use super::rows::{about, first_sender};
use super::{Screen, routes};
use crate::bulk::{self, JobKind, PACE_MAX, Selection};
use crate::census::{Known, LetterCensus, LetterGroup};
use crate::label::{Label, cut};
use crate::letters::status;
use crate::operate::Refused;
use axum::extract::{Form, Query};
use axum::response::Response;
use semel::clock::Time;
use semel::letter::{LetterHead, LetterId, Reason};
use semel::store::StoreExt;
use semel_ui::{Column, Markup, Tone, empty, html, note, state, table};
use serde::Deserialize;

/// How many letters of a group are listed one by one.
const LIST_ITEMS_MAX: usize = 100;

/// How many chosen groups are named, and how much of their causes.
const GROUPS_NAMED_MAX: usize = 3;
const CAUSE_NAMED_BYTES_MAX: usize = 80;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    group: Option<String>,
    /// Whether something was to be tried out, and nothing was ticked.
    #[serde(default)]
    none: u8,
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

const LETTERS: [Column<'_>; 6] = [
    Column::text(""),
    Column::text("about"),
    Column::text("sender"),
    Column::text("letter"),
    Column::text("kept"),
    Column::number("size"),
];

pub(super) async fn show(screen: Screen, Query(chosen): Query<Chosen>) -> Response {
    let known = screen.state.census.look_first().await;
    let main = match (&known.letters, &chosen.group) {
        (Some(letters), Some(group)) => one_group(&screen, letters, group, &chosen).await,
        (Some(letters), None) => Ok(groups(&screen, letters, &known, &chosen)),
        (None, _) => Ok(html! { h1 { "Letters" } (super::screen::being_counted(&known)) }),
    };
    screen.answer("Letters", "letters", main)
}

fn groups(screen: &Screen, letters: &LetterCensus, known: &Known, chosen: &Chosen) -> Markup {
    let now = screen.now();
    let rows: Vec<_> = letters
        .groups
        .iter()
        .map(|group| group_row(screen, group, now))
        .collect();
    html! {
        h1 { "Letters" }
        p.lead {
            "Deliveries whose work has not succeeded, and whose senders may not deliver them again. Nothing is lost: each is \
             kept whole until its work has succeeded, or an operator discards it. "
            strong { (number(letters.total as u64)) } @if letters.more { " or more" }
            @if let Some(needing) = needing(letters.for_operator()) { ", of which " strong { (needing) } }
            ", " (as_of(letters.at, now)) "."
        }
        @if let Some(trouble) = known.trouble() { (super::screen::trouble(trouble)) }
        @if rows.is_empty() {
            (empty(&html! { "No letters: every delivery that was acknowledged has succeeded." }))
        } @else {
            form method="post" action=(screen.to("letters/try")) {
                (choose_all("group", chosen))
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
            @if let (Reason::Unfinished, Some(needing)) = (group.reason, needing(group.for_operator as u64)) {
                br; small { (needing) }
            }
        },
        html! { (number(group.count as u64)) },
        html! { (bytes(group.bytes)) },
        since(group.oldest, now),
    ]
}

/// Above what can be ticked: the box that ticks all, and that nothing was ticked when it was sent.
fn choose_all(name: &str, chosen: &Chosen) -> Markup {
    html! {
        @if chosen.none > 0 {
            div role="alert" {
                (note(Tone::Failed, &html! { "Nothing was chosen: tick what you want to try out. Nothing was done." }))
            }
        }
        p.lead hidden { label { input type="checkbox" data-all=(name); " all of these" } }
    }
}

async fn one_group(
    screen: &Screen,
    letters: &LetterCensus,
    id: &str,
    chosen: &Chosen,
) -> Result<Markup, Refused> {
    let now = screen.now();
    let heads = screen.state.census.letters_of(|it| it == id).await?;
    let group = letters.groups.iter().find(|group| group.id == id);
    let mut rows = Vec::new();
    for head in heads.iter().take(LIST_ITEMS_MAX) {
        rows.push(letter_row(screen, head, now).await?);
    }
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
                (choose_all("letter", chosen))
                input type="hidden" name="of" value=(id);
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

async fn letter_row(screen: &Screen, head: &LetterHead, now: Time) -> Result<Vec<Markup>, Refused> {
    let id = head.id.to_string();
    let (about, sender) = kept(screen, head).await?;
    let latest = status::latest_run(screen.state.letters.as_ref(), head).await?;
    Ok(vec![
        html! { input type="checkbox" name="letter" value=(id) aria-label={ "choose letter " (id) }; },
        html! {
            @if let Some(key) = head.key {
                @let key = key.to_string();
                a href=(screen.to(&format!("records/{key}"))) {
                    @if about.is_empty() { (shortened(&key, 15)) } @else { (about) }
                }
            } @else { small { "it has no key" } }
            br; small { (latest) }
        },
        html! { span.mono { (sender) } },
        html! {
            a href=(screen.to(&format!("letters/{id}"))) { (shortened(&id, 8)) }
            @if head.redriven { " " small { "redriven before" } }
            @if head.reason == Reason::Unfinished && head.is_for_operator() { " " small { "needs an operator" } }
        },
        since(head.created_at, now),
        html! { (bytes(head.bytes)) },
    ])
}

/// What a letter is about, and who sent it: as its delivery is remembered, or as the record of its key says of the first.
async fn kept(screen: &Screen, head: &LetterHead) -> Result<(String, String), Refused> {
    let gate = screen.state.gate.as_ref();
    if let Some(delivery) = gate.and_then(|gate| gate.recent.of_letter(&head.id)) {
        return Ok((delivery.about(), sender(&delivery)));
    }
    let record = match head.key {
        Some(key) => screen.state.store().look(&key).await?,
        None => None,
    };
    let label = record.as_ref().and_then(|it| Label::read(&it.label));
    let label = label.unwrap_or_default();
    let from = first_sender(&label);
    Ok((record.as_ref().map(about).unwrap_or_default(), from))
}

/// Only those who may act get the button; without a gate nothing can be redriven.
fn try_bar(screen: &Screen, what: &str) -> Markup {
    let has_gate = screen.state.gate.is_some();
    html! {
        @if !screen.visitor.may_act() {
            p.may-not { "You may look, not act." }
        } @else {
            (screen.visitor.csrf_field())
            div.bar {
                button class=[has_gate.then_some("act")] { "Try out: what would happen?" }
                span {
                    "Nothing is changed by that. From there the chosen " (what) "s are "
                    @if has_gate { "redriven or discarded." }
                    @else { "discarded; to redrive them, open the page of a running gate." }
                }
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
    if groups.is_empty() && letters.is_empty() {
        return Ok(match field(fields, "of") {
            "" => "letters?none=1".into(),
            group => format!("letters?group={}&none=1", routes::segment(group)),
        });
    }
    let (selection, about) = if groups.is_empty() {
        let letters: Option<Vec<_>> = letters.iter().map(|text| letter_id(text)).collect();
        let letters = letters.ok_or_else(|| {
            Refused::mistaken(
                "this is no letter",
                "go back, and tick some of those that are shown",
            )
        })?;
        let about = count(letters.len() as u64, "letter", "letters");
        (Selection::Letters(letters), about)
    } else {
        let about = named(screen, &groups);
        (Selection::Groups(groups), about)
    };
    let why = field(fields, "reason");
    let (jobs, desk) = (&screen.state.jobs, screen.desk(why));
    let job = bulk::begin(jobs, desk, JobKind::DryRun, selection, about, PACE_MAX);
    Ok(format!("letters/jobs/{}", job?.id))
}

/// Groups by what they have in common: the first of them.
fn named(screen: &Screen, groups: &[String]) -> String {
    let known = screen.state.census.look().letters.unwrap_or_default();
    let known = known.groups.iter().filter(|it| groups.contains(&it.id));
    let name = |it: &LetterGroup| {
        let cause = cut(&it.cause, CAUSE_NAMED_BYTES_MAX);
        format!("{} · {}: {cause}", it.route, it.reason.word())
    };
    let mut names: Vec<_> = known.take(GROUPS_NAMED_MAX).map(name).collect();
    let more = groups.len() - names.len();
    if more > 0 {
        names.push(count(more as u64, "more group", "more groups"));
    }
    names.join(", ")
}

pub(super) fn letter_id(text: &str) -> Option<LetterId> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(LetterId(bytes))
}

/// The number of letters that need an operator, in words; `None` for none.
pub(super) fn needing(letters: u64) -> Option<String> {
    let verb = if letters == 1 { "needs" } else { "need" };
    (letters > 0).then(|| format!("{} {verb} an operator", number(letters)))
}

/// The colour of a reason.
pub(super) const fn tone(reason: Reason) -> Tone {
    match reason {
        Reason::Parked => Tone::Parked,
        Reason::Failed => Tone::Failed,
        Reason::Invalid | Reason::Mismatched => Tone::Refused,
        Reason::Unfinished => Tone::Waiting,
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
