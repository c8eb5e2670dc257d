//! One task: what it is, and every attempt with its answer, also after it is gone.

use super::dispatches;
use super::fields::{Given, given, unknown};
use super::names::{encoded, queue_of, short};
use super::screen::{Screen, counted};
use crate::history::{Dispatch, DispatchResult, HistoryFilter};
use axum::extract::Path;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use semel_ui::{Act, Markup, Tone, copyable, copyable_text, empty, facts, html, state};
use serde_json::{Value, json};

/// How many attempts are shown.
const SHOWN: usize = 200;

/// Headers whose values are credentials.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-serverless-authorization",
];

pub(super) async fn show(screen: Screen, Path(name): Path<String>) -> Response {
    let path = format!("/v2/{}?responseView=FULL", encoded(&name));
    let found = screen.page.ask.get(&path).await;
    let attempts = screen.page.context.history.latest(&HistoryFilter {
        resource: Some(queue_of(&name).into()),
        id: Some(short(&name).into()),
        limit: SHOWN,
        ..HistoryFilter::default()
    });
    let task = match found {
        Ok(task) => Some(task),
        Err(failed) if failed.status == StatusCode::NOT_FOUND && !attempts.is_empty() => None,
        Err(failed) => return screen.failed(&failed, ""),
    };
    let queue = queue_of(&name);
    let way = screen.to(&format!("queues/{}", encoded(queue)));
    let main = html! {
        p.lead { a href=(screen.to("")) { "Queues and topics" } " / " a href=(way) { (short(queue)) } }
        h1 { "Task " (short(&name)) " "
            (stands(task.is_some(), &attempts))
        }
        p.lead { (sentence(task.is_some(), &attempts)) }
        div.two {
            section {
                h2 { "What happened" }
                @if attempts.is_empty() { (empty(&html! { "It was not sent yet." })) }
                @else { (dispatches::story(&attempts)) }
            }
            section {
                h2 { "Facts" }
                div.card { (facts(&[("name", copyable(&name))])) }
                @if let Some(task) = &task { (request(task)) (acts(&screen, &name)) }
            }
        }
    };
    screen.show(short(&name), "", &main)
}

pub(super) async fn act(screen: Screen, Path(name): Path<String>, form: Given) -> Response {
    let (here, path) = (
        format!("tasks/{}", encoded(&name)),
        format!("/v2/{}", encoded(&name)),
    );
    let ask = &screen.page.ask;
    match given(&form, "do") {
        "run" => {
            let done = ask.post(&format!("{path}:run"), &json!({})).await;
            screen.done(done, &here)
        }
        "delete" => {
            let done = ask.send(Method::DELETE, &path, &Value::Null).await;
            screen.done(done, &format!("queues/{}", encoded(queue_of(&name))))
        }
        other => screen.failed(&unknown(other), &here),
    }
}

/// Whether its last attempt succeeded.
fn succeeded(attempts: &[Dispatch]) -> bool {
    let last = attempts.first().map(|it| &it.result);
    matches!(last, Some(DispatchResult::Answered { success: true, .. }))
}

fn stands(waits: bool, attempts: &[Dispatch]) -> Markup {
    match (waits, succeeded(attempts)) {
        (true, _) => state(Tone::Waiting, "to be sent"),
        (false, true) => state(Tone::Ran, "succeeded"),
        (false, false) => state(Tone::Failed, "gone without success"),
    }
}

fn sentence(waits: bool, attempts: &[Dispatch]) -> Markup {
    let after = match (waits, succeeded(attempts)) {
        (true, _) => "; it is sent again until its handler succeeds.",
        (false, true) => "; the last one succeeded, and the task is gone.",
        (false, false) => "; it used up its attempts or was deleted, and is gone.",
    };
    html! { "Sent " strong { (counted(attempts.len(), "time")) } (after) }
}

/// What its handler gets.
fn request(task: &Value) -> Markup {
    let kinds = ["httpRequest", "appEngineHttpRequest"];
    let Some(request) = kinds.iter().find_map(|kind| task.get(kind)) else {
        return html! {};
    };
    let text = |name: &str| {
        request
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut whole = format!(
        "{} {}{}\n",
        text("httpMethod"),
        text("url"),
        text("relativeUri")
    );
    for (name, value) in request
        .get("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        whole += &format!("{name}: {}\n", shown(name, value));
    }
    let body = STANDARD.decode(text("body")).unwrap_or_default();
    match String::from_utf8(body) {
        Ok(body) => whole += &format!("\n{body}"),
        Err(_) => whole += &format!("\n(base64) {}", text("body")),
    }
    html! { h2 { "What its handler gets" } (copyable_text("The request", &whole)) }
}

/// The value of a header; not one that proves who somebody is.
fn shown<'a>(name: &str, value: &'a Value) -> &'a str {
    let is_secret = SECRET_HEADERS
        .iter()
        .any(|it| it.eq_ignore_ascii_case(name));
    if is_secret {
        return "(set, not shown)";
    }
    value.as_str().unwrap_or_default()
}

fn acts(screen: &Screen, name: &str) -> Markup {
    let act = |word: &str, button: &str, consequence: &str| {
        let action = screen.to(&format!("tasks/{}", encoded(name)));
        Act::new(action, button, html! { p { (consequence) } })
            .plain()
            .hidden("do", word)
    };
    html! {
        h2 { "Act" }
        div.card {
            (screen.form(act("run", "Send it now", "It is sent at once, whatever it waits for, also if the queue is paused.")))
            (screen.form(act("delete", "Delete", "It is not sent again. Its name cannot be used again for an hour.")
                .hard().reason()))
        }
    }
}
