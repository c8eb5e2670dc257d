//! A job: what a dry run found, how far an act on many letters is, and what comes next.

use super::Screen;
use super::act::{Fields, field, reason};
use super::format::{count, number, shortened, span};
use super::letters::without_a_gate;
use crate::bulk::{self, Job, JobEnd, JobKind, NoJob, PACE_DEFAULT, PACE_MAX, Progress, Selection};
use crate::operate::Refused;
use crate::redrive::Foreseen;
use axum::extract::{Form, Path, Query};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use semel::letter::LetterId;
use semel_ui::{Act, Markup, Tone, fragment, html, live, note, part, state};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How often the progress is fetched.
const PROGRESS_SECONDS: u32 = 1;

/// A short job is over before its page is shown.
const SHORT_JOB: Duration = Duration::from_millis(300);

/// A part of the page, for whoever watches. It has the page's own path, so that its addresses mean the same.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    #[serde(default)]
    live: bool,
}

pub(super) async fn show(
    screen: Screen,
    Path(id): Path<u64>,
    Query(asked): Query<Part>,
) -> Response {
    if asked.live {
        return progress(&screen, id);
    }
    let Some(job) = screen.state.jobs.get(id) else {
        return screen.refuse("letters", &gone());
    };
    let waited = tokio::time::timeout(SHORT_JOB, ended(&job)).await;
    drop(waited);
    let inside = inside(&screen, &job);
    let main = html! {
        p.lead { a href=(screen.to("letters")) { "Letters" } " / " (job.kind.word()) }
        h1 { (title(&job)) }
        @if job.is_going() {
            @let inside = part("progress-says", &inside);
            (live("progress", &screen.to(&format!("letters/jobs/{id}?live=true")), PROGRESS_SECONDS, &inside))
            div.card { (stops(&screen, id).form(&screen.visitor)) }
        } @else {
            (inside)
        }
    };
    screen.show(&title(&job), "letters", &main)
}

/// The inside alone, for the page that watches. Once the job has ended the page is loaded anew: forms come with it.
fn progress(screen: &Screen, id: u64) -> Response {
    let Some(job) = screen.state.jobs.get(id) else {
        return (StatusCode::NOT_FOUND, [("hx-refresh", "true")]).into_response();
    };
    let mut response = fragment(&part("progress-says", &inside(screen, &job)));
    if !job.is_going() {
        let reload = http::HeaderValue::from_static("true");
        response.headers_mut().insert("hx-refresh", reload);
    }
    response
}

async fn ended(job: &Job) {
    while job.is_going() {
        sleep(Duration::from_millis(5)).await;
    }
}

fn title(job: &Job) -> String {
    match job.kind {
        JobKind::DryRun => format!("Dry run of {}", job.about),
        JobKind::Redrive { .. } => format!("Redrive of {}", job.about),
        JobKind::Discard => format!("Discard of {}", job.about),
    }
}

fn inside(screen: &Screen, job: &Arc<Job>) -> Markup {
    let progress = job.progress();
    html! {
        (how_far(job, &progress))
        (counts(screen, job, &progress))
        @if !progress.notes.is_empty() {
            h2 { "Letters that stay" }
            ul {
                @for (letter, why) in &progress.notes {
                    @let letter = letter.to_string();
                    li { a href=(screen.to(&format!("letters/{letter}"))) { (shortened(&letter, 12)) } ": " (why) }
                }
            }
        }
        @if job.kind == JobKind::DryRun && progress.end == Some(JobEnd::Done) {
            (next_acts(screen, job, &progress))
        }
    }
}

fn how_far(job: &Job, progress: &Progress) -> Markup {
    let Some(letters) = &progress.letters else {
        return html! { p.lead { "Gathering the letters…" } };
    };
    let total = letters.len();
    html! {
        p.lead {
            strong { (number(progress.done as u64)) } " of " strong { (number(total as u64)) } " letters. "
            @match &progress.end {
                Some(JobEnd::Done) => (state(Tone::Ran, "done")),
                Some(JobEnd::Stopped) => (state(Tone::Waiting, "stopped")),
                Some(JobEnd::Broken(_)) => (state(Tone::Failed, "broken off")),
                None => (state(Tone::Busy, "going on")),
            }
            @if job.kind != JobKind::DryRun { ", " (job.per_second) " per second, by " (job.who.by) ": " (job.who.why) }
        }
        @if let Some(JobEnd::Broken(why)) = &progress.end { (note(Tone::Failed, &html! { (why) })) }
        @if progress.end.is_none() {
            progress value=(progress.done) max=(total) aria-label="Letters done" {}
            p.lead {
                "It goes on when this page is closed, not when the process ends. Without JavaScript, reload to see more."
            }
        }
    }
}

/// Outside what is live: whoever is about to say why must not be interrupted.
fn stops(screen: &Screen, id: u64) -> Act {
    let consequence = html! { p { "Letters in hand are finished, the others stay as they are." } };
    Act::new(
        screen.to(&format!("letters/jobs/{id}/stop")),
        "Stop",
        consequence,
    )
    .reason()
    .plain()
}

fn counts(screen: &Screen, job: &Job, progress: &Progress) -> Markup {
    html! {
        @if !progress.counts.is_empty() {
            (note(if job.kind == JobKind::DryRun { Tone::Doubt } else { Tone::Ran }, &html! {
                @for (word, many) in &progress.counts {
                    p { b { (number(*many as u64)) } " " (word) "." }
                    @if let Some(named) = progress.named.get(word) { (named_letters(screen, named, *many)) }
                }
            }))
        }
    }
}

/// Letters of which a dry run found the same, each with what it is about.
fn named_letters(screen: &Screen, named: &[(LetterId, String)], many: usize) -> Markup {
    html! {
        ul {
            @for (letter, about) in named {
                @let letter = letter.to_string();
                li {
                    a href=(screen.to(&format!("letters/{letter}"))) { (shortened(&letter, 12)) }
                    @if !about.is_empty() { ": " (about) }
                }
            }
            @if many > named.len() { li { "and " (number((many - named.len()) as u64)) " more" } }
        }
    }
}

/// What can be done after a dry run.
fn next_acts(screen: &Screen, job: &Job, progress: &Progress) -> Markup {
    let of = |foreseen: Foreseen| progress.counts.get(foreseen.says()).copied().unwrap_or(0) as u64;
    let (runs, unknown) = (of(Foreseen::Runs), of(Foreseen::NeedsRunAgain));
    let path = |verb: &str| screen.to(&format!("letters/jobs/{}/{verb}", job.id));
    let takes = Duration::from_secs(runs.div_ceil(u64::from(PACE_DEFAULT)));
    let redrive = Act::new(
        path("redrive"),
        "Redrive these",
        html! {
            p { b { (count(runs, "letter runs", "letters run")) } " through the normal flow; each is closed when its run has \
                succeeded. Those that have succeeded since are only closed. At " (PACE_DEFAULT) " per second this takes "
                (span(takes)) ", or as long as the handler takes." }
        },
    );
    let redrive = redrive.reason().with(html! {
        label.field {
            span { "Letters per second" }
            input type="number" name="per_second" value=(PACE_DEFAULT) min="1" max=(PACE_MAX) required;
        }
        @if unknown > 0 {
            label.field {
                input type="checkbox" name="run_again" value="yes";
                " Run again also the " (number(unknown)) " of which nobody knows whether they took effect: those that did \
                 take effect " b { "a second time" } "."
            }
        }
    });
    let discard = Act::new(
        path("discard"),
        "Discard these",
        html! {
            p { "These deliveries are " b { "gone for good" } ": none of them runs. Their records stay as they are." }
        },
    );
    html! {
        h2 { "Next" }
        (without_a_gate(screen))
        div.grid {
            @if screen.state.gate.is_some() { div.card { (redrive.form(&screen.visitor)) } }
            div.card { (discard.reason().hard().form(&screen.visitor)) }
        }
    }
}

// === Doing ===

pub(super) async fn redrive(screen: Screen, Path(id): Path<u64>, Form(fields): Fields) -> Response {
    let run_again = field(&fields, "run_again") == "yes";
    follow(&screen, id, &fields, JobKind::Redrive { run_again })
}

pub(super) async fn discard(screen: Screen, Path(id): Path<u64>, Form(fields): Fields) -> Response {
    follow(&screen, id, &fields, JobKind::Discard)
}

pub(super) async fn stop(screen: Screen, Path(id): Path<u64>, Form(fields): Fields) -> Response {
    let stopped = || {
        let job = screen.state.jobs.get(id).ok_or_else(gone)?;
        job.stop(&screen.operator(reason(&fields)?));
        Ok::<_, Refused>(())
    };
    match stopped() {
        Ok(()) => screen.lead_to(&format!("letters/jobs/{id}")),
        Err(why) => screen.refuse("letters", &why),
    }
}

fn follow(screen: &Screen, id: u64, fields: &[(String, String)], kind: JobKind) -> Response {
    match begin(screen, id, fields, kind) {
        Ok(next) => screen.lead_to(&format!("letters/jobs/{next}")),
        Err(why) => screen.refuse("letters", &why),
    }
}

/// Begins an act on the letters of a dry run.
fn begin(
    screen: &Screen,
    id: u64,
    fields: &[(String, String)],
    kind: JobKind,
) -> Result<u64, Refused> {
    let why = reason(fields)?;
    let tried = screen.state.jobs.get(id).ok_or_else(gone)?;
    let progress = tried.progress();
    let (JobKind::DryRun, Some(letters), Some(JobEnd::Done)) =
        (tried.kind, progress.letters, progress.end)
    else {
        let what = "try out first what would happen; nothing was done";
        return Err(Refused::conflict(
            "this is not a dry run that has ended",
            what,
        ));
    };
    let per_second = match field(fields, "per_second") {
        "" => PACE_DEFAULT,
        text => text.parse().map_err(|_| {
            let what = format!("say a whole number from 1 to {PACE_MAX}; nothing was done");
            Refused::mistaken(format!("{text:?} is not a pace"), what)
        })?,
    };
    let selection = Selection::Letters(letters.to_vec());
    let (jobs, desk) = (&screen.state.jobs, screen.desk(why));
    let about = count(letters.len() as u64, "letter", "letters");
    let about = match tried.about == about {
        true => about,
        false => format!("{about} of {}", tried.about),
    };
    Ok(bulk::begin(jobs, desk, kind, selection, about, per_second)?.id)
}

fn gone() -> Refused {
    Refused::absent(
        "this act is not remembered any more",
        "the log has its audit lines; what is there now is in the list of letters",
    )
}

impl From<NoJob> for Refused {
    fn from(no_job: NoJob) -> Self {
        match no_job {
            NoJob::TooMany => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many acts on letters go on",
                "wait for one of them to end, or stop one; nothing was done",
            ),
        }
    }
}
