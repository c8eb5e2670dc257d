//! One subscription: its backlog, and what became of what was delivered.

use super::ask::Failed;
use super::dispatches;
use super::fields::{Given, given, line, unknown};
use super::names::{encoded, short};
use super::screen::{Screen, moment};
use crate::pubsub::ShownSubscription;
use axum::extract::Path;
use axum::response::Response;
use http::{Method, StatusCode};
use semel_ui::{Act, Markup, copyable, facts, html};
use serde_json::{Value, json};

/// How many deliveries are shown.
const SHOWN: usize = 50;

pub(super) async fn show(screen: Screen, Path(name): Path<String>) -> Response {
    let all = screen.page.registry.shown_subscriptions();
    let Some(own) = all.into_iter().find(|it| it.name == name) else {
        return screen.failed(
            &Failed::new(StatusCode::NOT_FOUND, "There is no such subscription."),
            "",
        );
    };
    let settings = screen
        .page
        .ask
        .get(&format!("/v1/{}", encoded(&name)))
        .await;
    let settings = settings.unwrap_or_default();
    let deliveries = dispatches::latest(&screen, Some(&name), SHOWN);
    let main = html! {
        p.lead { a href=(screen.to("")) { "Queues and topics" } " / " (name) }
        h1 { "Subscription " (short(&name)) }
        p.lead {
            strong { (own.waiting) } " wait, " strong { (own.outstanding) } " are on their way and not acknowledged."
        }
        div.card { (about(&screen, &own, &settings)) }
        h2 { "Delivered last" } (dispatches::rows(&screen, &deliveries))
        h2 { "Act" } (acts(&screen, &own))
    };
    screen.show(short(&name), "", &main)
}

pub(super) async fn act(screen: Screen, Path(name): Path<String>, form: Given) -> Response {
    let (here, path) = (
        format!("subscriptions/{}", encoded(&name)),
        format!("/v1/{}", encoded(&name)),
    );
    let ask = &screen.page.ask;
    match given(&form, "do") {
        "push" => {
            let body = json!({ "pushConfig": { "pushEndpoint": given(&form, "push_endpoint") } });
            let done = ask.post(&format!("{path}:modifyPushConfig"), &body).await;
            screen.done(done, &here)
        }
        "drop" => {
            let (_, now) = moment(screen.page.context.clock.now().0);
            let done = ask
                .post(&format!("{path}:seek"), &json!({ "time": now }))
                .await;
            screen.done(done, &here)
        }
        "delete" => {
            let done = ask.send(Method::DELETE, &path, &Value::Null).await;
            screen.done(done, "")
        }
        other => screen.failed(&unknown(other), &here),
    }
}

fn about(screen: &Screen, own: &ShownSubscription, settings: &Value) -> Markup {
    let text = |pointer: &str| match settings.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "–".into(),
    };
    let topic = screen.to(&format!("topics/{}", encoded(&own.topic)));
    let push = if own.push_endpoint.is_empty() {
        "pulled from"
    } else {
        own.push_endpoint.as_str()
    };
    facts(&[
        ("name", copyable(&own.name)),
        ("topic", html! { a href=(topic) { (short(&own.topic)) } }),
        ("delivered to", html! { code { (push) } }),
        (
            "seconds to acknowledge",
            html! { (text("/ackDeadlineSeconds")) },
        ),
        ("filter", html! { code { (text("/filter")) } }),
        (
            "dead letters go to",
            html! { code { (text("/deadLetterPolicy/deadLetterTopic")) } },
        ),
    ])
}

fn acts(screen: &Screen, own: &ShownSubscription) -> Markup {
    let act = |word: &str, button: &str, consequence: &str| {
        let action = screen.to(&format!("subscriptions/{}", encoded(&own.name)));
        Act::new(action, button, html! { p { (consequence) } }).hidden("do", word)
    };
    let endpoint = line("Push to", "push_endpoint", &own.push_endpoint, false);
    html! {
        div.grid {
            div.card {
                (screen.form(act("push", "Change", "It is pushed there from now on; pulled from, if empty.")
                    .with(endpoint)))
            }
            div.card {
                (screen.form(act("drop", "Drop the backlog", "What was published until now counts as acknowledged.")
                    .hard().reason()))
                (screen.form(act("delete", "Delete", "The subscription goes with its backlog.").hard().reason()))
            }
        }
    }
}
