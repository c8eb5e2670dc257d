//! Lists that the broker's own interface gives: schemas, and what was refused.

use super::ask::Failed;
use super::screen::{Screen, moment};
use axum::response::Response;
use http::StatusCode;
use semel_ui::{Column, Markup, empty, html, table};
use serde_json::{Value, json};

/// What is shown of each item: a member, and what it is called here.
type Shown = [(&'static str, &'static str)];

const OF_A_SCHEMA: &Shown = &[
    ("name", "schema"),
    ("type", "written in"),
    ("revisions", "revisions"),
    ("revision", "latest"),
    ("last_us", "made at"),
    ("topics", "topics"),
    ("definition", "definition"),
];
const OF_A_REFUSAL: &Shown = &[
    ("last_us", "last at"),
    ("method", "method"),
    ("name", "what"),
    ("message", "what the client heard"),
    ("count", "times"),
];

/// Every schema, of all projects.
pub(super) async fn schemas(screen: Screen) -> Response {
    let found = screen.page.ask.get("/_semel/schemas").await;
    let found = found.map(|page| list(&page).iter().map(of_a_schema).collect());
    let main = html! {
        h1 { "Schemas" }
        p.lead { "What the messages of a topic must look like." }
        (shown("Schemas", OF_A_SCHEMA, &found, "There is no schema."))
    };
    screen.show("Schemas", "schemas", &main)
}

fn of_a_schema(schema: &Value) -> Value {
    let items = |member: &str| schema[member].as_array().cloned().unwrap_or_default();
    let revisions = items("revisions");
    let latest = revisions.last().cloned().unwrap_or_default();
    let topics = items("topics");
    let topics: Vec<_> = topics.iter().filter_map(Value::as_str).collect();
    json!({
        "name": schema.get("name"),
        "type": schema.get("type"),
        "revisions": revisions.len(),
        "revision": latest.get("id"),
        "last_us": latest.get("created_us"),
        "topics": topics.join(", "),
        "definition": latest.get("definition"),
    })
}

/// What clients asked for and this broker does not do.
pub(super) async fn refusals(screen: Screen) -> Response {
    let found = screen
        .page
        .ask
        .get("/_semel/refusals")
        .await
        .map(|page| list(&page));
    let main = html! {
        h1 { "Refusals" }
        p.lead { "What clients asked for and this broker does not serve: nothing of it was done, and each heard why." }
        (shown("Refusals", OF_A_REFUSAL, &found, "Nothing was refused."))
    };
    screen.show("Refusals", "refusals", &main)
}

/// The first list in an answer.
fn list(page: &Value) -> Vec<Value> {
    let members = page.as_object().into_iter().flat_map(|it| it.values());
    let mut lists = members.chain([page]).filter_map(Value::as_array);
    lists.next().cloned().unwrap_or_default()
}

fn shown(
    caption: &str,
    members: &Shown,
    found: &Result<Vec<Value>, Failed>,
    nothing: &str,
) -> Markup {
    let rows = match found {
        Ok(rows) if rows.is_empty() => return empty(&html! { (nothing) }),
        Ok(rows) => rows,
        Err(failed) if failed.status == StatusCode::NOT_FOUND => {
            return empty(&html! { "This broker does not offer them." });
        }
        Err(failed) => return empty(&html! { (failed.says) }),
    };
    let columns: Vec<_> = members
        .iter()
        .map(|(_, title)| Column::text(title))
        .collect();
    let cells = |row: &Value| {
        members
            .iter()
            .map(|(member, _)| cell(member, row.get(member)))
            .collect()
    };
    let rows: Vec<Vec<Markup>> = rows.iter().map(cells).collect();
    table(caption, &columns, &rows)
}

fn cell(member: &str, value: Option<&Value>) -> Markup {
    match (member, value) {
        ("last_us", Some(micros)) => {
            let (day, whole) = moment(micros.as_i64().unwrap_or_default());
            html! { time.mono datetime=(whole) title=(whole) { (day) } }
        }
        (_, Some(Value::String(text))) if text.is_empty() => html! { "–" },
        ("definition", Some(Value::String(text))) => {
            html! { details { summary { "show" } pre { (text) } } }
        }
        (_, Some(Value::String(text))) => html! { (text) },
        (_, Some(other)) => html! { (other) },
        (_, None) => html! { "–" },
    }
}
