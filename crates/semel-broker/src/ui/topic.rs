//! One topic: who subscribes, and a form to publish.

use super::ask::Failed;
use super::fields::{Given, given, line, lines, pairs, unknown, whole};
use super::names::{encoded, short};
use super::overview::subscriptions;
use super::screen::{Screen, counted};
use axum::extract::Path;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use semel_ui::{Act, Markup, copyable, facts, html};
use serde_json::{Value, json};

pub(super) async fn show(screen: Screen, Path(name): Path<String>) -> Response {
    let topics = screen.page.registry.shown_topics();
    let Some(topic) = topics.into_iter().find(|it| it.name == name) else {
        return screen.failed(
            &Failed::new(StatusCode::NOT_FOUND, "There is no such topic."),
            "",
        );
    };
    let mut own = screen.page.registry.shown_subscriptions();
    own.retain(|it| topic.subscriptions.contains(&it.name));
    let main = html! {
        p.lead { a href=(screen.to("")) { "Queues and topics" } " / " (name) }
        h1 { "Topic " (short(&name)) }
        p.lead { "What is published goes to " strong { (counted(own.len(), "subscription")) } "." }
        div.card { (facts(&[("name", copyable(&name))])) }
        h2 { "Subscriptions" } (subscriptions(&screen, &own))
        h2 { "Act" }
        div.grid { (publish_form(&screen, &name)) (delete_form(&screen, &name)) }
    };
    screen.show(short(&name), "", &main)
}

pub(super) async fn act(screen: Screen, Path(name): Path<String>, form: Given) -> Response {
    let here = format!("topics/{}", encoded(&name));
    match given(&form, "do") {
        "publish" => {
            let done = publish(&screen, &name, &form).await;
            screen.done(done, &here)
        }
        "delete" => {
            let path = format!("/v1/{}", encoded(&name));
            let done = screen
                .page
                .ask
                .send(Method::DELETE, &path, &Value::Null)
                .await;
            screen.done(done, "")
        }
        other => screen.failed(&unknown(other), &here),
    }
}

async fn publish(screen: &Screen, topic: &str, form: &Given) -> Result<Value, Failed> {
    let message = json!({
        "data": STANDARD.encode(whole(form, "data")),
        "attributes": pairs(given(form, "attributes"))?,
        "orderingKey": given(form, "ordering_key"),
    });
    let path = format!("/v1/{}:publish", encoded(topic));
    screen
        .page
        .ask
        .post(&path, &json!({ "messages": [message] }))
        .await
}

fn publish_form(screen: &Screen, topic: &str) -> Markup {
    let fields = html! {
        (lines("Data", "data"))
        (lines("Attributes, one name: value on each line", "attributes"))
        (line("Ordering key", "ordering_key", "", false))
    };
    let consequence =
        html! { p { "Every subscription gets a copy, unless its filter says otherwise." } };
    let act = Act::new(
        screen.to(&format!("topics/{}", encoded(topic))),
        "Publish",
        consequence,
    );
    html! { div.card { (screen.form(act.hidden("do", "publish").with(fields))) } }
}

fn delete_form(screen: &Screen, topic: &str) -> Markup {
    let consequence =
        html! { p { "Its subscriptions stay, with what they have, and get nothing new." } };
    let act = Act::new(
        screen.to(&format!("topics/{}", encoded(topic))),
        "Delete",
        consequence,
    );
    html! { div.card { (screen.form(act.hidden("do", "delete").hard().reason())) } }
}
