//! Lists that the broker's own interface gives, shown as they are: whatever members their objects have.

use super::ask::Failed;
use super::names::{encoded, project};
use super::screen::Screen;
use axum::response::Response;
use http::StatusCode;
use semel_ui::{Column, Markup, empty, html, table};
use serde_json::Value;
use std::collections::BTreeSet;

/// How many columns are shown, and how many rows.
const COLUMNS_MAX: usize = 8;
const ROWS_MAX: usize = 200;

/// Schemas of every project that has something.
pub(super) async fn schemas(screen: Screen) -> Response {
    let topics = screen.page.registry.shown_topics();
    let projects: BTreeSet<String> = topics.iter().map(|it| project(&it.name).into()).collect();
    let mut found = Ok(Vec::new());
    for project in projects {
        let path = format!("/v1/projects/{}/schemas", encoded(&project));
        let page = screen.page.ask.get(&path).await;
        found = found.and_then(|mut all: Vec<Value>| {
            all.extend(list(&page?));
            Ok(all)
        });
    }
    let main = html! {
        h1 { "Schemas" }
        p.lead { "What the messages of a topic must look like. Those of projects that have a topic are shown." }
        (shown("Schemas", &found, "There is no schema."))
    };
    screen.show("Schemas", "schemas", &main)
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
        (shown("Refusals", &found, "Nothing was refused."))
    };
    screen.show("Refusals", "refusals", &main)
}

/// The first list in an answer.
fn list(page: &Value) -> Vec<Value> {
    let members = page.as_object().into_iter().flat_map(|it| it.values());
    let mut lists = members.chain([page]).filter_map(Value::as_array);
    lists.next().cloned().unwrap_or_default()
}

fn shown(caption: &str, found: &Result<Vec<Value>, Failed>, nothing: &str) -> Markup {
    let rows = match found {
        Ok(rows) if rows.is_empty() => return empty(&html! { (nothing) }),
        Ok(rows) => rows,
        Err(failed) if failed.status == StatusCode::NOT_FOUND => {
            return empty(&html! { "This broker does not offer them." });
        }
        Err(failed) => return empty(&html! { (failed.says) }),
    };
    let names: BTreeSet<&String> = rows
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|it| it.keys())
        .collect();
    let names: Vec<&String> = names.into_iter().take(COLUMNS_MAX).collect();
    let cell = |value: Option<&Value>| match value {
        Some(Value::String(text)) => html! { (text) },
        Some(other) => html! { code { (other) } },
        None => html! { "–" },
    };
    let columns: Vec<_> = names.iter().map(|name| Column::text(name)).collect();
    let rows: Vec<Vec<Markup>> = rows
        .iter()
        .take(ROWS_MAX)
        .map(|row| {
            names
                .iter()
                .map(|name| cell(row.get(name.as_str())))
                .collect()
        })
        .collect();
    table(caption, &columns, &rows)
}
