//! What is to go wrong, to be switched on and off.

use super::ask::Failed;
use super::fields::{Given, choice, given, line, unknown};
use super::screen::Screen;
use crate::faults::Kind;
use axum::response::Response;
use http::Method;
use semel_ui::{Act, Column, Markup, Tone, empty, html, note, table};
use serde_json::{Value, json};

pub(super) async fn show(screen: Screen) -> Response {
    let faults: Vec<String> = screen
        .page
        .context
        .faults
        .list()
        .iter()
        .map(ToString::to_string)
        .collect();
    let main = html! {
        h1 { "Faults" }
        p.lead {
            @if faults.is_empty() { "The broker behaves: what it accepted is delivered, and delivered again only after a failure." }
            @else { "The broker misbehaves as the real one may. A handler that is idempotent does not mind." }
        }
        h2 { "Switched on" } (rows(&screen, &faults))
        h2 { "Switch on" }
        div.grid {
            (add_form(&screen))
            (note(Tone::Busy, &html! {
                p { "The same seed and the same tasks make the same choices: seed " b { (screen.page.context.faults.seed()) } "." }
                p { b { "duplicate" } ": once more after a success. " b { "duplicate-at-once" } ": twice at the same time. "
                    b { "delay" } ": later. " b { "reorder" } ": overtaken by the next. "
                    b { "lose-answer" } ": the answer is ignored. " b { "cut" } ": the connection breaks. "
                    b { "overlap" } ": taken for late, and sent again while the first still runs." }
            }))
        }
    };
    screen.show("Faults", "faults", &main)
}

pub(super) async fn act(screen: Screen, form: Given) -> Response {
    let done = match given(&form, "do") {
        "add" => add(&screen, &form).await,
        "remove" => remove(&screen, given(&form, "fault")).await,
        "clear" => {
            screen
                .page
                .ask
                .send(Method::DELETE, "/_semel/faults", &Value::Null)
                .await
        }
        other => Err(unknown(other)),
    };
    screen.done(done, "faults")
}

/// As it is written on the command line: `KIND=RATE[:ARGUMENT][@RESOURCE]`.
async fn add(screen: &Screen, form: &Given) -> Result<Value, Failed> {
    let mut fault = format!("{}={}", given(form, "kind"), given(form, "rate"));
    for (sign, name) in [(':', "argument"), ('@', "resource")] {
        let text = given(form, name);
        if !text.is_empty() {
            fault.push(sign);
            fault += text;
        }
    }
    screen
        .page
        .ask
        .post("/_semel/faults", &json!({ "faults": [fault] }))
        .await
}

async fn remove(screen: &Screen, fault: &str) -> Result<Value, Failed> {
    let mut faults: Vec<String> = screen
        .page
        .context
        .faults
        .list()
        .iter()
        .map(ToString::to_string)
        .collect();
    if let Some(place) = faults.iter().position(|it| it == fault) {
        faults.remove(place);
    }
    screen
        .page
        .ask
        .send(Method::PUT, "/_semel/faults", &json!({ "faults": faults }))
        .await
}

fn rows(screen: &Screen, faults: &[String]) -> Markup {
    if faults.is_empty() {
        return empty(&html! { "Nothing goes wrong on purpose." });
    }
    let off = |fault: &String| {
        let act = Act::new(screen.to("faults"), format!("Switch off {fault}"), html! {}).plain();
        screen.form(act.hidden("do", "remove").hidden("fault", fault))
    };
    let rows: Vec<_> = faults
        .iter()
        .map(|it| vec![html! { code { (it) } }, off(it)])
        .collect();
    let all = Act::new(screen.to("faults"), "Switch all off", html! {}).plain();
    html! {
        (table("Faults", &[Column::text("fault"), Column::text("act")], &rows))
        (screen.form(all.hidden("do", "clear")))
    }
}

fn add_form(screen: &Screen) -> Markup {
    let fields = html! {
        (choice("What goes wrong", "kind", &Kind::ALL.map(Kind::name)))
        (line("How often, from 0 to 1", "rate", "0.1", true))
        (line("Argument: 500ms for delay and overlap, bytes for cut", "argument", "", false))
        (line("Where: a queue or subscription (everywhere if empty)", "resource", "", false))
    };
    let consequence =
        html! { p { "From the next delivery on, for everybody who uses this broker." } };
    let act = Act::new(screen.to("faults"), "Switch on", consequence);
    html! { div.card { (screen.form(act.hidden("do", "add").with(fields))) } }
}
