//! Records as lists show them. The census knows only that they were there: each is looked at again, so that what is shown
//! is true now, and says what it is about.

use super::Screen;
use super::format::shortened;
use crate::census::SeenRecord;
use crate::label::Label;
use crate::operate::Refused;
use semel::Key;
use semel::protocol::Record;
use semel::store::StoreExt;
use semel_ui::{Markup, html};
use std::time::Duration;

/// How many records a list shows: each costs a look.
pub(super) const ROWS_MAX: usize = 50;

/// What fewer calls of a handler took is not what they usually take.
const USUAL_CALLS_MIN: u64 = 20;

/// How much is shown of a label that no gate wrote.
const OTHER_LABEL_CHARS_MAX: usize = 60;

/// A record, looked at just now.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) record: Record,
    label: Label,
}

/// Looks at the first of these that are still as they should be.
///
/// # Errors
/// Those of the store.
pub(super) async fn look(
    screen: &Screen,
    seen: &[SeenRecord],
    is_still: impl Fn(&Record) -> bool,
) -> Result<Vec<Row>, Refused> {
    let mut rows = Vec::new();
    for seen in seen.iter().take(ROWS_MAX) {
        if let Some(record) = screen.state.store().look(&seen.key).await?
            && is_still(&record)
        {
            rows.push(Row::new(seen.key, record));
        }
    }
    Ok(rows)
}

// === impl Row ===

impl Row {
    pub(super) fn new(key: Key, record: Record) -> Self {
        let label = Label::read(&record.label).unwrap_or_default();
        Self { key, record, label }
    }

    /// What it is about, leading to the record.
    pub(super) fn about(&self, screen: &Screen) -> Markup {
        let key = self.key.to_string();
        let href = screen.to(&format!("records/{key}"));
        let about = about(&self.record);
        html! { a href=(href) { @if about.is_empty() { (shortened(&key, 15)) } @else { (about) } } }
    }

    pub(super) fn route(&self) -> &str {
        &self.label.route
    }

    /// Who delivered it first, by the names that it has itself.
    pub(super) fn sender(&self) -> String {
        first_sender(&self.label)
    }

    /// How long 99 of 100 runs of its route take at the most, once there were enough to say so.
    pub(super) fn usual(&self, screen: &Screen) -> Option<Duration> {
        let gate = screen.state.gate.as_ref()?;
        let rates = gate.rates.snapshot();
        let route = rates.iter().find(|it| &*it.route == self.route())?;
        let is_enough = route.handler_calls >= USUAL_CALLS_MIN;
        route.handler_p99.filter(|_| is_enough)
    }
}

/// Who delivered first, as a label says: `cloud-tasks · orders · 8842`.
pub(super) fn first_sender(label: &Label) -> String {
    let words = [&label.source, &label.from, &label.id];
    let said: Vec<_> = words
        .into_iter()
        .map(String::as_str)
        .filter(|it| !it.is_empty())
        .collect();
    if said.is_empty() {
        "–".into()
    } else {
        said.join(" · ")
    }
}

/// What a record is about, in a short line; of a label that no gate wrote, its beginning.
pub(super) fn about(record: &Record) -> String {
    match Label::read(&record.label) {
        Some(label) => label.about(),
        None => {
            let text = String::from_utf8_lossy(&record.label);
            text.chars().take(OTHER_LABEL_CHARS_MAX).collect()
        }
    }
}
