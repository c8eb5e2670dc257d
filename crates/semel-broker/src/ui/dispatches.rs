//! Deliveries, and what came of them.

use super::names::{encoded, short};
use super::screen::{Screen, moment};
use crate::history::{Dispatch, DispatchResult, HistoryFilter};
use semel_ui::{Column, Markup, Moment, Rows, Tone, html, span, state, timeline};
use std::time::Duration;

/// The last deliveries of a resource, or of all.
pub(super) fn latest(screen: &Screen, resource: Option<&str>, limit: usize) -> Vec<Dispatch> {
    screen.page.context.history.latest(&HistoryFilter {
        resource: resource.map(Into::into),
        limit,
        ..HistoryFilter::default()
    })
}

/// As a table, newest first.
pub(super) fn rows(screen: &Screen, dispatches: &[Dispatch]) -> Markup {
    let columns = [
        Column::text("time"),
        Column::text("from"),
        Column::text("task or message"),
        Column::number("attempt"),
        Column::text("became"),
        Column::text("to"),
        Column::number("took"),
    ];
    let rows: Vec<_> = dispatches.iter().map(|it| row(screen, it)).collect();
    Rows::live("latest-rows", "Nothing was delivered yet.").table("Deliveries", &columns, &rows)
}

/// What happened to one task, oldest first.
pub(super) fn story(dispatches: &[Dispatch]) -> Markup {
    let moments: Vec<_> = dispatches
        .iter()
        .rev()
        .map(|it| {
            let (tone, became) = became(it);
            let (day, whole) = moment(it.at_us);
            let what =
                html! { "Attempt " (it.attempt) " to " code { (it.target) } ": " b { (became) } };
            Moment::new(day, tone, what).whole(whole).about(besides(it))
        })
        .collect();
    timeline(&moments)
}

fn row(screen: &Screen, dispatch: &Dispatch) -> Vec<Markup> {
    let (tone, became) = became(dispatch);
    let (day, whole) = moment(dispatch.at_us);
    let resource = &dispatch.resource;
    let (kind, id) = if resource.contains("/queues/") {
        let task = format!(
            "tasks/{}",
            encoded(&format!("{resource}/tasks/{}", dispatch.id))
        );
        (
            "queues",
            html! { a href=(screen.to(&task)) { (dispatch.id) } },
        )
    } else {
        ("subscriptions", html! { (dispatch.id) })
    };
    let from = screen.to(&format!("{kind}/{}", encoded(resource)));
    vec![
        html! { time.mono datetime=(whole) title=(whole) { (day) } },
        html! { a href=(from) { (short(resource)) } },
        html! { span.mono { (id) } },
        html! { (dispatch.attempt) },
        html! {
            (state(tone, &became))
            @for word in why(dispatch) { " " small.why { (word) } }
        },
        html! { span.mono { (dispatch.target) } },
        html! { (took(dispatch)) },
    ]
}

fn besides(dispatch: &Dispatch) -> String {
    let took = dispatch.took_us.map(|_| format!("took {}", took(dispatch)));
    let words: Vec<String> = why(dispatch).into_iter().chain(took).collect();
    words.join(" · ")
}

/// What the broker did on purpose, and what the system says.
fn why(dispatch: &Dispatch) -> Vec<String> {
    let mut words: Vec<String> = dispatch
        .faults
        .iter()
        .map(|it| format!("fault: {it}"))
        .collect();
    if let DispatchResult::Unreachable { why } = &dispatch.result {
        words.push(why.clone());
    }
    words
}

fn took(dispatch: &Dispatch) -> String {
    let took = dispatch.took_us.map(Duration::from_micros);
    took.map_or_else(|| "–".into(), span)
}

/// Its colour and its words.
fn became(dispatch: &Dispatch) -> (Tone, String) {
    match &dispatch.result {
        DispatchResult::Running => (Tone::Busy, "running".into()),
        DispatchResult::Answered {
            status,
            success: true,
        } => (Tone::Ran, format!("{status}")),
        DispatchResult::Answered {
            status,
            success: false,
        } => (Tone::Failed, format!("{status}, not a success")),
        DispatchResult::AnswerLost { status } => (Tone::Doubt, format!("{status}, answer lost")),
        DispatchResult::TimedOut => (Tone::Failed, "timed out".into()),
        DispatchResult::Unreachable { .. } => (Tone::Failed, "unreachable".into()),
        DispatchResult::Cut => (Tone::Doubt, "cut off".into()),
        DispatchResult::Acknowledged => (Tone::Ran, "acknowledged".into()),
        DispatchResult::Refused => (Tone::Waiting, "refused".into()),
    }
}
