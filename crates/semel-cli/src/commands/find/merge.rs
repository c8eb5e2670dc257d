//! What several gates say of the same work, as one answer.

use crate::table::member;
use semel_gate::label::Label;
use serde_json::{Map, Value, json};

/// One answer of all. Gates of one store say the same of records and letters, and each remembers its own deliveries.
pub(super) fn merged(answers: Vec<Value>) -> Value {
    let mut works: Vec<Value> = Vec::new();
    let (mut deliveries, mut letters, mut gates) = (Vec::new(), Vec::new(), Vec::new());
    for mut answer in answers {
        let gate = answer.get("gate").cloned().unwrap_or_default();
        for mut work in taken(&mut answer, "works") {
            let own = named(taken(&mut work, "deliveries"), &gate);
            let kept = taken(&mut work, "letters");
            let is_same = |it: &Value| it.get("key") == work.get("key");
            if !works.iter().any(is_same) {
                works.push(work.clone());
            }
            if let Some(known) = works.iter_mut().find(|it| is_same(it)) {
                extend(known, "deliveries", own);
                extend(known, "letters", kept);
            }
        }
        deliveries.extend(named(taken(&mut answer, "deliveries"), &gate));
        letters.extend(taken(&mut answer, "letters"));
        gates.push(gate);
    }
    for work in &mut works {
        counted(work);
    }
    letters.dedup();
    json!({"gates": gates, "works": works, "deliveries": deliveries, "letters": letters})
}

pub(super) fn is_empty(found: &Value) -> bool {
    let members = ["works", "deliveries", "letters"];
    members.iter().all(|name| list(found, name).is_empty())
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = value.get(name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn taken(value: &mut Value, name: &str) -> Vec<Value> {
    match value.get_mut(name).map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(_) | None => Vec::new(),
    }
}

/// Deliveries with the gate that remembers them.
fn named(mut deliveries: Vec<Value>, gate: &Value) -> Vec<Value> {
    for delivery in deliveries.iter_mut().filter_map(Value::as_object_mut) {
        delivery.insert("gate".into(), gate.clone());
    }
    deliveries
}

/// Adds what is not there yet, oldest first.
fn extend(work: &mut Value, name: &str, more: Vec<Value>) {
    let mut all = taken(work, name);
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    let at = |item: &Value| item.get("at").and_then(Value::as_str).map(str::to_owned);
    all.sort_by_key(at);
    set(work, name, all.into());
}

/// Adds what people ask first: what it is about, and how often it was delivered and ran.
fn counted(work: &mut Value) {
    let deliveries = list(work, "deliveries");
    let label = work.pointer("/record/label").map(Value::to_string);
    let label = label.and_then(|text| Label::read(text.as_bytes()));
    let label = label.unwrap_or_default();
    let first = |name: &str| deliveries.iter().find_map(|it| it.get(name)?.as_str());
    let or_first = |text: String, name: &str| match text.is_empty() {
        true => first(name).unwrap_or_default().to_owned(),
        false => text,
    };
    let about = or_first(label.about(), "about");
    let route = or_first(label.route, "route");
    let is_end = |it: &Value| it.get("end").and_then(Value::as_bool).unwrap_or(false);
    let is_other = |it: &Value| member(it, "outcome") == "mismatched";
    let own = deliveries.iter().filter(|it| !is_end(it) && !is_other(it));
    let delivered = own.count();
    let of_record = work.pointer("/record/attempts").and_then(Value::as_u64);
    let seen = || {
        deliveries
            .iter()
            .filter_map(|it| it.get("attempt")?.as_u64())
    };
    let ran = of_record.unwrap_or_else(|| seen().max().unwrap_or(0));
    set(work, "about", about.into());
    set(work, "route", route.into());
    set(work, "delivered", delivered.into());
    set(work, "ran", ran.into());
}

fn set(work: &mut Value, name: &str, value: Value) {
    match work {
        Value::Object(members) => drop(members.insert(name.into(), value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            *work = Value::Object(Map::from_iter([(name.to_owned(), value)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(gate: &str, at: &str, attempt: Option<u32>) -> Value {
        json!({
            "gate": gate, "deliveries": [], "letters": [],
            "works": [{
                "key": "v1_a",
                "record": {"state": "succeeded", "attempts": 1, "label": {"route": "charge", "parts": {"order_id": "A-1"}}},
                "letters": [{"id": "l1"}],
                "deliveries": [{"at": at, "attempt": attempt, "end": false}],
            }],
        })
    }

    #[test]
    fn gates_of_one_store_make_one_answer() {
        let found = merged(vec![answer("b", "2", None), answer("a", "1", Some(1))]);
        assert_eq!(found["gates"], json!(["b", "a"]));
        let works = list(&found, "works");
        assert_eq!(works.len(), 1, "{found}");
        let work = &works[0];
        let gates: Vec<_> = list(work, "deliveries")
            .iter()
            .map(|it| &it["gate"])
            .collect();
        assert_eq!(gates, ["a", "b"]);
        assert_eq!(list(work, "letters").len(), 1);
        let says = (
            &work["delivered"],
            &work["ran"],
            &work["about"],
            &work["route"],
        );
        assert_eq!(
            says,
            (
                &json!(2),
                &json!(1),
                &json!("order_id A-1"),
                &json!("charge")
            )
        );
        assert!(!is_empty(&found) && is_empty(&merged(Vec::new())));
    }
}
