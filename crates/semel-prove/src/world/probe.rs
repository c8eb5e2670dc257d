//! How effects are seen: a count for each delivery, from each probe.
//!
//! A new kind of probe is a field of `[[effect]]`, a file below this one with a [`ProbeKind`], and a line in the table.

mod sql;
mod http;
mod command;
mod redis;
mod firestore;
mod calls;

use super::World;
use super::connections::Rows;
use super::exchange;
use super::protocol::Protocol;
use crate::BoxFuture;
use crate::error::Error;
use crate::scenario::Effect;
use crate::scenario::endpoint::{Endpoint, check_on};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// In place of a delivery's id: effects that name no delivery at all.
pub(crate) const UNNAMED: &str = "nobody";

/// What a missing id is written as.
const NULLS: [&str; 4] = ["", "NULL", "None", "null"];

/// How often each effect was seen, by delivery.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

/// A way to see effects.
#[derive(Debug)]
struct ProbeKind {
    /// The field of `[[effect]]` that asks for it.
    name: &'static str,
    given: fn(&Effect) -> Option<&String>,
    /// What is asked: `on` may say which one of several.
    on: Option<Protocol>,
    /// What else must be right, given the field's text.
    check: fn(&str, &[Endpoint]) -> Result<(), String>,
    /// Rows of an id, or a text that contains it, and how often.
    rows: for<'w> fn(&'w mut World<'_>, Question<'w>) -> BoxFuture<'w, Result<Rows, String>>,
}

/// What a probe has said.
#[derive(Debug)]
pub(crate) struct Probed {
    last: u64,
    changed: bool,
}

/// What a probe is asked.
#[derive(Clone, Copy, Debug)]
struct Question<'a> {
    /// The field's text.
    text: &'a str,
    on: Option<&'a str>,
    /// Whether the service honours idempotency keys, where the scenario says it.
    honours_key: Option<bool>,
    /// The deliveries that matter.
    ids: &'a [String],
}

const KINDS: [ProbeKind; 6] = [
    sql::SQL,
    http::HTTP,
    command::COMMAND,
    redis::REDIS,
    firestore::FIRESTORE,
    calls::CALLS,
];

/// What is wrong with the way an effect is to be seen.
pub(crate) fn check(effect: &Effect, endpoints: &[Endpoint]) -> Result<(), String> {
    let (kind, text) = kind_of(effect)?;
    check_on(effect.on.as_deref(), kind.on, endpoints)?;
    if effect.honours_key.is_some() && effect.calls.is_none() {
        return Err("`honours_key` is only for calls".to_owned());
    }
    (kind.check)(text, endpoints)
}

fn kind_of(effect: &Effect) -> Result<(ProbeKind, &String), String> {
    let names = KINDS.map(|kind| kind.name).join(", ");
    let mut given = KINDS.into_iter().filter_map(|kind| {
        let text = (kind.given)(effect)?;
        Some((kind, text))
    });
    match (given.next(), given.next()) {
        (Some(only), None) => Ok(only),
        (None, _) | (_, Some(_)) => Err(format!("it needs exactly one of {names}")),
    }
}

// === impl World ===

impl World<'_> {
    /// Looks at every effect of these deliveries.
    pub(crate) async fn count_effects(&mut self, ids: &[String]) -> Result<Counts, Error> {
        let mut counts = Counts::new();
        for effect in &self.scenario.effects {
            let name = &effect.name;
            let seen = self.count_effect(effect, ids).await;
            let seen = seen.map_err(|why| Error::Probe {
                effect: name.clone(),
                why,
            })?;
            let keys = ids.iter().map(|id| (name.clone(), id.clone()));
            counts.extend(keys.zip(seen));
        }
        Ok(counts)
    }

    async fn count_effect(&mut self, effect: &Effect, ids: &[String]) -> Result<Vec<u64>, String> {
        let (kind, text) = kind_of(effect)?;
        let on = effect.on.as_deref();
        let question = Question {
            text,
            on,
            honours_key: effect.honours_key,
            ids,
        };
        let rows = (kind.rows)(self, question).await?;
        self.remember(&effect.name, &rows);
        count(&rows, ids)
    }
}

impl World<'_> {
    /// Whether a probe has only ever said one thing.
    pub(crate) fn is_constant(&self, effect: &str) -> bool {
        self.probed
            .get(effect)
            .is_some_and(|probed| !probed.changed)
    }

    fn remember(&mut self, effect: &str, rows: &Rows) {
        let mut hasher = DefaultHasher::new();
        rows.hash(&mut hasher);
        let now = hasher.finish();
        let first = Probed {
            last: now,
            changed: false,
        };
        let probed = self.probed.entry(effect.to_owned()).or_insert(first);
        probed.changed |= probed.last != now;
        probed.last = now;
    }
}

/// The counts of all rows that name a delivery.
fn count(rows: &Rows, ids: &[String]) -> Result<Vec<u64>, String> {
    let mut counts = vec![0; ids.len()];
    for row in rows {
        let [named, how_often, ..] = row.as_slice() else {
            return Err(format!(
                "a row needs an id and a count; this one is {row:?}"
            ));
        };
        for (id, count) in ids.iter().zip(&mut counts) {
            if names(named, id) {
                *count += number(how_often)?;
            }
        }
    }
    Ok(counts)
}

fn names(named: &str, id: &str) -> bool {
    if id == UNNAMED {
        return NULLS.contains(&named.trim());
    }
    exchange::names(named.as_bytes(), id)
}

/// Also `2.0` and `2.00`, as sums are printed; nothing at all is none.
fn number(text: &str) -> Result<u64, String> {
    let whole = text.trim().split('.').next().unwrap_or_default();
    if whole.is_empty() || whole == "null" {
        return Ok(0);
    }
    whole
        .parse()
        .map_err(|_| format!("`{text}` is not a count"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(rows: &[&[&str]], ids: &[&str]) -> Result<Vec<u64>, String> {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let rows = rows.iter().map(|row| owned(row)).collect();
        let ids: Vec<String> = owned(ids);
        count(&rows, &ids)
    }

    #[test]
    fn rows_are_added_up_by_the_id_they_contain() {
        let seen: &[&[&str]] = &[
            &["order-a1", "1"],
            &["a1", "2.00"],
            &["c3", "9"],
            &["a12", "4"],
        ];
        assert_eq!(counted(seen, &["a1", "b2"]), Ok(vec![3, 0]));
    }

    #[test]
    fn rows_without_an_id_are_nobodys() {
        let seen: &[&[&str]] = &[&["", "2"], &["a1", "1"], &["NULL", "1"]];
        assert_eq!(counted(seen, &["a1", UNNAMED]), Ok(vec![1, 3]));
    }

    #[test]
    fn what_is_not_a_count_is_an_error() {
        for wrong in [&["a1", "many"][..], &["a1"], &["a1", "-1"]] {
            assert!(counted(&[wrong], &["a1"]).is_err(), "{wrong:?}");
        }
        assert_eq!(counted(&[&["a1", ""]], &["a1"]), Ok(vec![0]));
    }
}
