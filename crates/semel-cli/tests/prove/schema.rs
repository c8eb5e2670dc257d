//! Compares JSON with docs/prove-report.schema.json: the part of JSON Schema that the file uses, and nothing more.

use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/prove-report.schema.json");

/// What is wrong with a report, if anything is. A member that the schema does not describe is wrong, too: readers may
/// ignore it, but the page must know it.
pub(super) fn complaints(report: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut complaints = Vec::new();
    check(&schema, &schema, report, "report", &mut complaints);
    complaints
}

fn check(root: &Value, schema: &Value, value: &Value, path: &str, complaints: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().unwrap() {
        let good = match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                check(
                    root,
                    root.pointer(pointer).unwrap(),
                    value,
                    path,
                    complaints,
                );
                true
            }
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "type" => types(rule).iter().any(|name| is(name, value)),
            "anyOf" => rule
                .as_array()
                .unwrap()
                .iter()
                .any(|one| fits(root, one, value)),
            "required" => {
                let names = rule.as_array().unwrap().iter();
                names
                    .clone()
                    .all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{path}[{at}]"), complaints);
                }
                true
            }
            "properties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    let path = format!("{path}.{name}");
                    match rule.get(name) {
                        Some(rule) => check(root, rule, member, &path, complaints),
                        None => complaints.push(format!("{path} is not described")),
                    }
                }
                true
            }
            other => panic!("{other} is not known here"),
        };
        if !good {
            complaints.push(format!("{path}: {value} against {keyword} {rule}"));
        }
    }
}

fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let mut complaints = Vec::new();
    check(root, schema, value, "", &mut complaints);
    complaints.is_empty()
}

fn types(rule: &Value) -> Vec<&str> {
    match rule.as_array() {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => rule.as_str().into_iter().collect(),
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is not a type"),
    }
}

#[test]
fn wrong_reports_are_told() {
    let good = serde_json::json!({"schema": "semel-prove-report-1", "conclusion": "held", "scenario": "s",
        "promise": "exactly once", "accepted": [], "profile": "quick", "seed": 1, "attacks": [], "ended_early": null,
        "unprobed": [], "unseen": ["x"], "took_ms": 1.5});
    assert_eq!(complaints(&good), Vec::<String>::new());
    for (name, value) in [
        ("conclusion", "maybe"),
        ("took_ms", "1"),
        ("unseen", "x"),
        ("colour", "red"),
    ] {
        let mut wrong = good.clone();
        wrong[name] = value.into();
        assert_eq!(complaints(&wrong).len(), 1, "{name}");
    }
    let mut wrong = good;
    wrong.as_object_mut().unwrap().remove("seed");
    assert_eq!(complaints(&wrong).len(), 1);
}
