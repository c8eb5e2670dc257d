//! The fields of a form: what is left empty was not given.

use super::ask::Failed;
use axum::Form;
use http::StatusCode;
use semel_ui::{Markup, html};
use serde_json::{Map, Value};
use std::collections::HashMap;

pub(super) type Given = Form<HashMap<String, String>>;

/// What was given in a field.
pub(super) fn given<'a>(form: &'a Given, name: &str) -> &'a str {
    form.0.get(name).map_or("", |text| text.trim())
}

/// What was given in it as it is, spaces and all.
pub(super) fn whole<'a>(form: &'a Given, name: &str) -> &'a str {
    form.0.get(name).map_or("", String::as_str)
}

/// Lines like `name: value` as an object.
pub(super) fn pairs(lines: &str) -> Result<Value, Failed> {
    let mut pairs = Map::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let Some((name, value)) = line.split_once(':') else {
            let says = format!(
                "{line:?} has no colon: write one name: value on each line. Nothing was done."
            );
            return Err(Failed::new(StatusCode::BAD_REQUEST, says));
        };
        pairs.insert(name.trim().into(), value.trim().into());
    }
    Ok(pairs.into())
}

/// What a form cannot ask for.
pub(super) fn unknown(act: &str) -> Failed {
    let says = format!("{act:?} is nothing that this screen does: load it anew. Nothing was done.");
    Failed::new(StatusCode::BAD_REQUEST, says)
}

/// One line of text.
pub(super) fn line(label: &str, name: &str, value: &str, required: bool) -> Markup {
    html! {
        label.field {
            span { (label) }
            input type="text" name=(name) value=(value) required[required] autocomplete="off" spellcheck="false";
        }
    }
}

/// Lines of text.
pub(super) fn lines(label: &str, name: &str) -> Markup {
    html! { label.field { span { (label) } textarea name=(name) rows="4" spellcheck="false" {} } }
}

/// One of some words.
pub(super) fn choice(label: &str, name: &str, words: &[&str]) -> Markup {
    html! {
        label.field {
            span { (label) }
            select name=(name) { @for word in words { option value=(word) { (word) } } }
        }
    }
}
