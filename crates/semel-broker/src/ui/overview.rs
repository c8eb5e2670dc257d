//! What is there, and what was delivered last.

use super::ask::Failed;
use super::dispatches;
use super::fields::{Given, given, line, unknown};
use super::names::{encoded, location, project, short};
use super::screen::{Screen, counted};
use crate::proto::tasks::queue::State;
use crate::pubsub::{ShownSubscription, ShownTopic};
use crate::tasks::ShownQueue;
use axum::response::Response;
use http::Method;
use semel_ui::{
    Act, Column, Markup, Tile, Tone, breakable, empty, fragment, html, live, span, state, table,
    tiles,
};
use serde_json::{Value, json};

/// How many deliveries are shown.
const LATEST: usize = 20;
/// How often they are looked at anew.
const LATEST_SECONDS: u32 = 2;

/// Everything that has a name.
struct Inventory {
    queues: Vec<ShownQueue>,
    topics: Vec<ShownTopic>,
    subscriptions: Vec<ShownSubscription>,
}

pub(super) async fn show(screen: Screen) -> Response {
    let inventory = Inventory::of(&screen);
    let deliveries = dispatches::latest(&screen, None, LATEST);
    let main = html! {
        h1 { "A local Cloud Tasks and Pub/Sub" }
        p.lead { (inventory.sentence(&screen)) }
        (inventory.tiles(&screen))
        h2 { "Queues" } (queues(&screen, &inventory.queues))
        h2 { "Topics" } (topics(&screen, &inventory.topics))
        h2 { "Subscriptions" } (subscriptions(&screen, &inventory.subscriptions))
        h2 { "Delivered last" }
        (live("latest", &screen.to("latest"), LATEST_SECONDS, &dispatches::rows(&screen, &deliveries)))
        h2 { "Make" }
        (inventory.forms(&screen))
        h2 { "Start afresh" }
        div.card {
            (screen.form(Act::new(screen.to(""), "Take everything away", html! {
                p { "Queues, tasks, topics, subscriptions, messages and the history go; what the start-up file declares is \
                     made again, and the faults are those of the start. The clock stays where it is. This cannot be taken \
                     back." }
            }).hidden("do", "reset").hard().reason()))
        }
    };
    screen.show("Queues and topics", "", &main)
}

/// The part that is looked at anew.
pub(super) async fn latest(screen: Screen) -> Response {
    let deliveries = dispatches::latest(&screen, None, LATEST);
    fragment(&dispatches::rows(&screen, &deliveries))
}

pub(super) async fn act(screen: Screen, form: Given) -> Response {
    let done = match given(&form, "do") {
        "queue" => create_queue(&screen, &form).await,
        "topic" => create_topic(&screen, &form).await,
        "subscription" => create_subscription(&screen, &form).await,
        "reset" => screen.page.ask.post("/_semel/reset", &Value::Null).await,
        other => Err(unknown(other)),
    };
    screen.done(done, "")
}

async fn create_queue(screen: &Screen, form: &Given) -> Result<Value, Failed> {
    let (project, location, name) = (
        given(form, "project"),
        given(form, "location"),
        given(form, "name"),
    );
    let parent = format!("projects/{project}/locations/{location}");
    let path = format!("/v2/{}/queues", encoded(&parent));
    screen
        .page
        .ask
        .post(&path, &json!({ "name": format!("{parent}/queues/{name}") }))
        .await
}

async fn create_topic(screen: &Screen, form: &Given) -> Result<Value, Failed> {
    let name = format!(
        "projects/{}/topics/{}",
        given(form, "project"),
        given(form, "name")
    );
    screen
        .page
        .ask
        .send(Method::PUT, &format!("/v1/{}", encoded(&name)), &json!({}))
        .await
}

async fn create_subscription(screen: &Screen, form: &Given) -> Result<Value, Failed> {
    let topic = given(form, "topic");
    let name = format!(
        "projects/{}/subscriptions/{}",
        project(topic),
        given(form, "name")
    );
    let mut body = json!({ "topic": topic });
    let endpoint = given(form, "push_endpoint");
    if let (false, Some(body)) = (endpoint.is_empty(), body.as_object_mut()) {
        body.insert("pushConfig".into(), json!({ "pushEndpoint": endpoint }));
    }
    screen
        .page
        .ask
        .send(Method::PUT, &format!("/v1/{}", encoded(&name)), &body)
        .await
}

// === impl Inventory ===

impl Inventory {
    fn of(screen: &Screen) -> Self {
        Self {
            queues: screen.page.tasks.shown(),
            topics: screen.page.registry.shown_topics(),
            subscriptions: screen.page.registry.shown_subscriptions(),
        }
    }

    fn tasks(&self) -> usize {
        self.queues.iter().map(|it| it.tasks).sum()
    }

    fn backlog(&self) -> usize {
        self.subscriptions
            .iter()
            .map(|it| it.waiting + it.outstanding)
            .sum()
    }

    fn sentence(&self, screen: &Screen) -> Markup {
        let open = self.tasks() + self.backlog();
        let deliveries = screen.page.context.history.count();
        html! {
            @if open == 0 { "Everything that was accepted has been delivered." }
            @else { strong { (open) } " still to be delivered: " (counted(self.tasks(), "task")) " and "
                (counted(self.backlog(), "message")) "." }
            " " (deliveries) (if deliveries == 1 { " delivery" } else { " deliveries" }) " so far."
        }
    }

    fn tiles(&self, screen: &Screen) -> Markup {
        let faults = screen.page.context.faults.list().len();
        let ahead = span(screen.page.context.clock.ahead());
        let fault_tile =
            Tile::new(faults.to_string(), "faults switched on").href(screen.to("faults"));
        tiles(
            "Now",
            &[
                Tile::new(self.tasks().to_string(), "tasks")
                    .about(format!("in {}", counted(self.queues.len(), "queue"))),
                Tile::new(self.backlog().to_string(), "messages").about(format!(
                    "in {}",
                    counted(self.subscriptions.len(), "subscription")
                )),
                if faults == 0 {
                    fault_tile
                } else {
                    fault_tile.warn()
                },
                Tile::new(ahead, "clock ahead").href(screen.to("clock")),
            ],
        )
    }

    /// What new things are most likely called.
    fn defaults(&self) -> (&str, &str) {
        let queue = self.queues.first().map(|it| it.queue.name.as_str());
        let topic = self.topics.first().map(|it| it.name.as_str());
        let of_project = queue.or(topic).map_or("demo", project);
        (of_project, queue.map_or("europe-west1", location))
    }

    fn forms(&self, screen: &Screen) -> Markup {
        let (project, location) = self.defaults();
        let act = |word: &str, title: &str, button: &str, consequence: &str, fields: Markup| {
            let act = Act::new(screen.to(""), button, html! { p { (consequence) } });
            html! { div.card { h3 { (title) } (screen.form(act.hidden("do", word).with(fields))) } }
        };
        html! {
            div.grid {
                (act("queue", "A queue", "Create the queue", "It sends its tasks to handlers at once.", html! {
                    (line("Project", "project", project, true)) (line("Location", "location", location, true))
                    (line("Name", "name", "", true))
                }))
                (act("topic", "A topic", "Create the topic", "Without subscriptions it keeps nothing.", html! {
                    (line("Project", "project", project, true)) (line("Name", "name", "", true))
                }))
                (act("subscription", "A subscription", "Create the subscription", "It gets what is published from now on.", html! {
                    (line("Topic, in full", "topic", self.topics.first().map_or("", |it| &it.name), true))
                    (line("Name", "name", "", true))
                    (line("Push to (a URL; it is pulled from if empty)", "push_endpoint", "", false))
                }))
            }
        }
    }
}

fn link(screen: &Screen, kind: &str, name: &str) -> Markup {
    let way = screen.to(&format!("{kind}/{}", encoded(name)));
    html! { a href=(way) { (short(name)) } " " small.mono { (breakable(name)) } }
}

fn queues(screen: &Screen, queues: &[ShownQueue]) -> Markup {
    if queues.is_empty() {
        return empty(&html! { "There is no queue. Make one below, or with Google's own client." });
    }
    let rows: Vec<_> = queues
        .iter()
        .map(|it| {
            vec![
                link(screen, "queues", &it.queue.name),
                queue_state(it.queue.state),
                html! { (it.tasks) },
                html! { (it.in_flight) },
            ]
        })
        .collect();
    let columns = ["queue", "state"].map(Column::text);
    let columns: Vec<_> = columns
        .into_iter()
        .chain(["tasks", "in flight"].map(Column::number))
        .collect();
    table("Queues", &columns, &rows)
}

pub(super) fn queue_state(number: i32) -> Markup {
    match State::try_from(number) {
        Ok(State::Running) => state(Tone::Ran, "running"),
        Ok(State::Paused) => state(Tone::Parked, "paused"),
        Ok(State::Disabled) => state(Tone::Failed, "disabled"),
        Ok(State::Unspecified) | Err(_) => state(Tone::Busy, "unknown"),
    }
}

fn topics(screen: &Screen, topics: &[ShownTopic]) -> Markup {
    if topics.is_empty() {
        return empty(&html! { "There is no topic. Make one below, or with Google's own client." });
    }
    let rows: Vec<_> = topics
        .iter()
        .map(|it| {
            vec![
                link(screen, "topics", &it.name),
                html! { (it.subscriptions.len()) },
            ]
        })
        .collect();
    table(
        "Topics",
        &[Column::text("topic"), Column::number("subscriptions")],
        &rows,
    )
}

pub(super) fn subscriptions(screen: &Screen, subscriptions: &[ShownSubscription]) -> Markup {
    if subscriptions.is_empty() {
        return empty(&html! { "There is no subscription: what is published goes nowhere." });
    }
    let rows: Vec<_> = subscriptions
        .iter()
        .map(|it| {
            vec![
                link(screen, "subscriptions", &it.name),
                html! { (short(&it.topic)) },
                html! { @if it.push_endpoint.is_empty() { "pulled" } @else { "pushed to " code { (it.push_endpoint) } } },
                html! { (it.waiting) },
                html! { (it.outstanding) },
            ]
        })
        .collect();
    let columns = ["subscription", "topic", "delivery"].map(Column::text);
    let numbers = ["waiting", "outstanding"].map(Column::number);
    let columns: Vec<_> = columns.into_iter().chain(numbers).collect();
    table("Subscriptions", &columns, &rows)
}
