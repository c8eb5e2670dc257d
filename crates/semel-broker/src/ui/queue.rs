//! One queue: its tasks, what became of the last ones, and what can be done with it.

use super::ask::Failed;
use super::dispatches;
use super::fields::{Given, choice, given, line, lines, pairs, unknown, whole};
use super::names::{encoded, short};
use super::overview::queue_state;
use super::screen::Screen;
use crate::clock::Time;
use crate::duration;
use crate::proto::tasks::queue::State;
use crate::tasks::ShownQueue;
use axum::extract::Path;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use jiff::Timestamp;
use semel_ui::{Act, Column, Markup, copyable, empty, facts, html, table};
use serde_json::{Map, Value, json};

/// How many tasks and deliveries are shown.
const SHOWN: usize = 50;

const METHODS: [&str; 6] = ["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"];

pub(super) async fn show(screen: Screen, Path(name): Path<String>) -> Response {
    let asked = format!("/v2/{}/tasks?pageSize={SHOWN}", encoded(&name));
    let tasks = match screen.page.ask.get(&asked).await {
        Ok(page) => page,
        Err(failed) => return screen.failed(&failed, ""),
    };
    let queue = screen
        .page
        .tasks
        .shown()
        .into_iter()
        .find(|it| it.queue.name == name);
    let Some(queue) = queue else {
        return screen.failed(
            &Failed::new(StatusCode::NOT_FOUND, "There is no such queue."),
            "",
        );
    };
    let deliveries = dispatches::latest(&screen, Some(&name), SHOWN);
    let main = html! {
        p.lead { a href=(screen.to("")) { "Queues and topics" } " / " (name) }
        h1 { "Queue " (short(&name)) " " (queue_state(queue.queue.state)) }
        p.lead { strong { (queue.tasks) } " to be sent, " strong { (queue.in_flight) } " on their way." }
        div.card { (about(&queue)) }
        h2 { "Tasks" } (task_rows(&screen, &tasks))
        h2 { "Delivered last" } (dispatches::rows(&screen, &deliveries))
        h2 { "Act" }
        div.grid { (create_form(&screen, &name)) (acts(&screen, &name, queue.queue.state)) }
    };
    screen.show(short(&name), "", &main)
}

pub(super) async fn act(screen: Screen, Path(name): Path<String>, form: Given) -> Response {
    let here = format!("queues/{}", encoded(&name));
    let path = format!("/v2/{}", encoded(&name));
    let ask = &screen.page.ask;
    match given(&form, "do") {
        "create" => {
            let task = create(&screen, &name, &form).await;
            screen.done(task, &here)
        }
        "delete" => {
            let done = ask.send(Method::DELETE, &path, &Value::Null).await;
            screen.done(done, "")
        }
        word @ ("pause" | "resume" | "purge") => {
            let done = ask.post(&format!("{path}:{word}"), &json!({})).await;
            screen.done(done, &here)
        }
        other => screen.failed(&unknown(other), &here),
    }
}

async fn create(screen: &Screen, queue: &str, form: &Given) -> Result<Value, Failed> {
    let mut task = Map::new();
    let name = given(form, "name");
    if !name.is_empty() {
        task.insert("name".into(), format!("{queue}/tasks/{name}").into());
    }
    let after = given(form, "after");
    if !after.is_empty() {
        task.insert("scheduleTime".into(), later(screen, after)?.into());
    }
    let request = json!({
        "url": given(form, "url"),
        "httpMethod": given(form, "method"),
        "headers": pairs(given(form, "headers"))?,
        "body": STANDARD.encode(whole(form, "body")),
    });
    task.insert("httpRequest".into(), request);
    let path = format!("/v2/{}/tasks", encoded(queue));
    screen.page.ask.post(&path, &json!({ "task": task })).await
}

/// A moment by the broker's clock, as JSON has it.
fn later(screen: &Screen, after: &str) -> Result<String, Failed> {
    let says =
        || format!("{after:?} is not a duration: write 500ms, 2s, 5m, 1h or 7d. Nothing was done.");
    let mistaken = || Failed::new(StatusCode::BAD_REQUEST, says());
    let after = duration::parse_whole(after).ok_or_else(mistaken)?;
    let Time(micros) = screen.page.context.clock.now().plus(after);
    let moment = Timestamp::from_microsecond(micros).map_err(|_| mistaken())?;
    Ok(format!("{moment:.6}"))
}

fn about(shown: &ShownQueue) -> Markup {
    let queue = &shown.queue;
    let limits = queue.rate_limits.unwrap_or_default();
    let retry = queue.retry_config.unwrap_or_default();
    let attempts = match retry.max_attempts {
        -1 => "without limit".into(),
        attempts => attempts.to_string(),
    };
    facts(&[
        ("name", copyable(&queue.name)),
        (
            "at most per second",
            html! { (limits.max_dispatches_per_second) },
        ),
        (
            "at most at once",
            html! { (limits.max_concurrent_dispatches) },
        ),
        ("attempts", html! { (attempts) }),
    ])
}

fn task_rows(screen: &Screen, page: &Value) -> Markup {
    let tasks = page
        .get("tasks")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    if tasks.is_empty() {
        return empty(
            &html! { "No task waits. What succeeded is gone: see what was delivered last." },
        );
    }
    let text = |task: &Value, pointer: &str| match task.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let rows: Vec<_> = tasks
        .iter()
        .map(|task| {
            let name = text(task, "/name");
            let way = screen.to(&format!("tasks/{}", encoded(&name)));
            vec![
                html! { a.mono href=(way) { (short(&name)) } },
                html! { span.mono { (text(task, "/httpRequest/url")) (text(task, "/appEngineHttpRequest/relativeUri")) } },
                html! { time.mono { (text(task, "/scheduleTime")) } },
                html! { (text(task, "/dispatchCount")) },
                html! { (last_answer(&text(task, "/lastAttempt/responseStatus/message"))) },
            ]
        })
        .collect();
    let columns = [
        Column::text("task"),
        Column::text("to"),
        Column::text("not before"),
        Column::number("sent"),
        Column::text("last answer"),
    ];
    table("Tasks", &columns, &rows)
}

/// What came back last, from the words that Cloud Tasks has for it: `UNKNOWN(2): HTTP status code 0`.
fn last_answer(message: &str) -> &str {
    match message.rsplit_once("HTTP status code ") {
        Some((_, "0")) => "none came",
        Some((_, code)) => code,
        None => message,
    }
}

fn create_form(screen: &Screen, queue: &str) -> Markup {
    let action = screen.to(&format!("queues/{}", encoded(queue)));
    let fields = html! {
        (line("URL of the handler", "url", "", true))
        (choice("Method", "method", &METHODS))
        (lines("Headers, one name: value on each line", "headers"))
        (lines("Body", "body"))
        (line("Task id (one is made up if empty)", "name", "", false))
        (line("Not before (30s, 5m, 1h from now; at once if empty)", "after", "", false))
    };
    let act = Act::new(
        action,
        "Create the task",
        html! { p { "The broker sends it to its handler until that succeeds." } },
    );
    html! { div.card { (screen.form(act.hidden("do", "create").with(fields))) } }
}

fn acts(screen: &Screen, queue: &str, stands: i32) -> Markup {
    let act = |word: &str, button: &str, consequence: &str| {
        let action = screen.to(&format!("queues/{}", encoded(queue)));
        Act::new(action, button, html! { p { (consequence) } })
            .plain()
            .hidden("do", word)
    };
    html! {
        div.card {
            @if stands == State::Running as i32 { (screen.form(act("pause", "Pause", "Nothing more is sent until it is resumed; tasks are still taken."))) }
            @else { (screen.form(act("resume", "Resume", "What is due is sent at once."))) }
            (screen.form(act("purge", "Purge", "All its tasks are deleted, sent or not.").hard().reason()))
            (screen.form(act("delete", "Delete", "The queue goes with its tasks.").hard().reason()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_is_its_status() {
        for (message, said) in [
            ("UNKNOWN(2): HTTP status code 0", "none came"),
            ("UNAVAILABLE(14): HTTP status code 503", "503"),
            ("", ""),
        ] {
            assert_eq!(last_answer(message), said);
        }
    }
}
