//! What an OpenAPI document says of an operation: where a request goes, and a payload that it would accept.

use serde_json::{Map, Value, json};

/// Operations that change something.
const METHODS: [&str; 3] = ["post", "put", "patch"];
/// References may go round in circles.
const DEPTH_MAX: u32 = 8;

/// A request that can be delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) method: String,
    /// Names in braces are the delivery's id.
    pub(super) path: String,
    pub(super) body: String,
    /// Whether it takes an `Idempotency-Key`.
    pub(super) keyed: bool,
}

/// The operation that is meant, as `POST /orders`; the only one that changes something, unless it is named.
pub(super) fn operation(document: &Value, wanted: Option<&str>) -> Result<Operation, String> {
    let paths = document.get("paths").and_then(Value::as_object);
    let paths = paths.ok_or("it has no `paths`: is it an OpenAPI document?")?;
    let mut found: Vec<(String, &String, &str, &Value)> = Vec::new();
    for (path, item) in paths {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                let name = format!("{} {path}", method.to_uppercase());
                found.push((name, path, method, operation));
            }
        }
    }
    let named = |name: &str| wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name));
    let names = || {
        found
            .iter()
            .map(|(name, ..)| name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut fitting = found.iter().filter(|(name, ..)| named(name));
    let (Some((_, path, method, operation)), None) = (fitting.next(), fitting.next()) else {
        return Err(format!(
            "say which with --operation; there are: {}",
            names()
        ));
    };
    Ok(Operation {
        method: method.to_uppercase(),
        path: with_id(path),
        body: body(document, operation).to_string(),
        keyed: keyed(document, operation),
    })
}

fn keyed(document: &Value, operation: &Value) -> bool {
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let mut parameters = parameters
        .into_iter()
        .flatten()
        .map(|it| resolved(document, it));
    parameters.any(|it| {
        let name = it.get("name").and_then(Value::as_str).unwrap_or_default();
        name.to_lowercase().contains("idempotency-key")
    })
}

/// `/orders/{order}/pay` is about the delivery's own order.
fn with_id(path: &str) -> String {
    let segments = path.split('/').map(|segment| {
        let named = segment.starts_with('{') && segment.ends_with('}');
        if named { "{id}" } else { segment }
    });
    segments.collect::<Vec<_>>().join("/")
}

fn body(document: &Value, operation: &Value) -> Value {
    let request = operation
        .get("requestBody")
        .map(|it| resolved(document, it));
    let content = request
        .and_then(|it| it.get("content"))
        .and_then(Value::as_object);
    let json = content.and_then(|content| {
        let mut kinds = content.iter().filter(|(kind, _)| kind.contains("json"));
        kinds.next().map(|(_, content)| content)
    });
    let Some(json) = json else {
        return json!({"id": "{id}"});
    };
    let examples = json.get("examples").and_then(Value::as_object);
    let example = examples.and_then(|it| it.values().next()?.get("value"));
    let schema = json.get("schema").unwrap_or(&Value::Null);
    let example = json.get("example").or(example).cloned();
    let mut body = example.unwrap_or_else(|| sample(document, schema, DEPTH_MAX));
    name_by_id(document, schema, &mut body);
    body
}

/// Puts `{id}` where it is likeliest to name the work.
fn name_by_id(document: &Value, schema: &Value, body: &mut Value) {
    let Some(members) = body.as_object_mut() else {
        return;
    };
    let properties = resolved(document, schema).get("properties");
    let is_free = |name: &str, value: &Value| {
        let property = properties
            .and_then(|it| it.get(name))
            .unwrap_or(&Value::Null);
        let bound = ["enum", "const", "format", "pattern"]
            .iter()
            .any(|it| property.get(it).is_some());
        value.is_string() && !bound
    };
    let likely = |name: &str| {
        let name = name.to_lowercase();
        ["id", "key", "reference", "number"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let free: Vec<String> = members
        .iter()
        .filter(|(name, value)| is_free(name, value))
        .map(|(name, _)| name.clone())
        .collect();
    let chosen = free.iter().find(|name| likely(name)).or(free.first());
    if let Some(name) = chosen {
        members.insert(name.clone(), json!("{id}"));
    }
}

/// A value that a schema allows.
fn sample(document: &Value, schema: &Value, depth: u32) -> Value {
    let schema = resolved(document, schema);
    let given = ["example", "default", "const"]
        .iter()
        .find_map(|it| schema.get(it));
    let listed = ["enum", "examples"]
        .iter()
        .find_map(|it| schema.get(it)?.get(0));
    if let Some(given) = given.or(listed) {
        return given.clone();
    }
    if depth == 0 {
        return Value::Null;
    }
    let parts = ["allOf", "oneOf", "anyOf"]
        .iter()
        .find_map(|it| schema.get(it)?.as_array());
    if let Some(parts) = parts {
        let all = schema.get("allOf").is_some();
        let parts = parts.iter().take(if all { usize::MAX } else { 1 });
        return merged(parts.map(|part| sample(document, part, depth - 1)));
    }
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    match kind {
        Some("string") => json!(text(schema)),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(
            document,
            schema.get("items").unwrap_or(&Value::Null),
            depth - 1
        )]),
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let members = properties.into_iter().flatten();
            let members = members.map(|(name, it)| (name.clone(), sample(document, it, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

fn text(schema: &Value) -> &'static str {
    match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("email") => "somebody@example.com",
        Some("uuid") => "6fa459ea-ee8a-4ca4-894e-db77e160355e",
        Some("uri") => "https://example.com",
        _ => "text",
    }
}

fn merged(parts: impl Iterator<Item = Value>) -> Value {
    let mut all = Map::new();
    for part in parts {
        let Value::Object(members) = part else {
            return part;
        };
        all.extend(members);
    }
    Value::Object(all)
}

/// What a reference within the document stands for.
fn resolved<'a>(document: &'a Value, mut value: &'a Value) -> &'a Value {
    for _ in 0..DEPTH_MAX {
        let pointer = value.get("$ref").and_then(Value::as_str);
        let Some(found) = pointer.and_then(|it| document.pointer(it.trim_start_matches('#')))
        else {
            break;
        };
        value = found;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        json!({
            "paths": {
                "/orders/{order}/lines": {
                    "get": {},
                    "post": {
                        "parameters": [{"name": "Idempotency-Key", "in": "header"}],
                        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Line"}}}}
                    }
                },
                "/health": {"get": {}}
            },
            "components": {"schemas": {"Line": {
                "type": "object",
                "properties": {
                    "colour": {"type": "string", "enum": ["red", "blue"]},
                    "name": {"type": "string"},
                    "line_id": {"type": "string"},
                    "parent": {"$ref": "#/components/schemas/Line"},
                    "cents": {"type": "integer", "minimum": 5},
                    "tags": {"type": "array", "items": {"type": "string", "format": "date"}}
                }
            }}}
        })
    }

    #[test]
    fn request_is_made_from_the_schema() {
        let found = operation(&document(), None).unwrap();
        assert_eq!(
            (&*found.method, &*found.path, found.keyed),
            ("POST", "/orders/{id}/lines", true)
        );
        let body: Value = serde_json::from_str(&found.body).unwrap();
        assert_eq!(body["line_id"], "{id}");
        assert_eq!(
            (&body["colour"], &body["cents"]),
            (&json!("red"), &json!(5))
        );
        assert_eq!(body["tags"], json!(["2026-01-01"]));
    }

    #[test]
    fn operation_must_be_the_only_one_or_be_named() {
        let mut two = document();
        two["paths"]["/refunds"] = json!({"post": {}});
        let said = operation(&two, None).unwrap_err();
        assert!(
            said.contains("POST /orders/{order}/lines, POST /refunds"),
            "{said}"
        );
        let refund = operation(&two, Some("post /refunds")).unwrap();
        assert_eq!(
            (&*refund.path, refund.keyed, &*refund.body),
            ("/refunds", false, r#"{"id":"{id}"}"#)
        );
        assert!(
            operation(&json!({}), None)
                .unwrap_err()
                .contains("no `paths`")
        );
    }
}
