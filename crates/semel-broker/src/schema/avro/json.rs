//! Avro's JSON encoding: a value of a union is an object with the name of its type, but for null.

use super::{AvroSchema, DEPTH_MAX, Field, Type, TypeId};
use serde_json::{Map, Value};

pub(in super::super) fn check(schema: &AvroSchema, data: &[u8]) -> Result<(), String> {
    let value = serde_json::from_slice(data).map_err(|error| error.to_string())?;
    check_value(schema, schema.root, &value, 0)
}

fn check_value(schema: &AvroSchema, id: TypeId, value: &Value, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("it is nested deeper than {DEPTH_MAX}"));
    }
    let kind = schema.kind(id);
    let inner = |id, value: &Value| check_value(schema, id, value, depth + 1);
    let is_good = match (kind, value) {
        (Type::Null, value) => value.is_null(),
        (Type::Boolean, value) => value.is_boolean(),
        (Type::Int, value) => value.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
        (Type::Long, value) => value.as_i64().is_some(),
        (Type::Float | Type::Double, value) => value.is_number(),
        (Type::String, value) => value.is_string(),
        (Type::Bytes, Value::String(text)) => text.chars().all(is_byte),
        (Type::Fixed { bytes, .. }, Value::String(text)) => {
            text.chars().all(is_byte) && text.chars().count() == *bytes
        }
        (Type::Enum { symbols, .. }, Value::String(text)) => symbols.contains(text),
        (Type::Array(items), Value::Array(values)) => {
            return values.iter().try_for_each(|value| inner(*items, value));
        }
        (Type::Map(items), Value::Object(values)) => {
            return values.values().try_for_each(|value| inner(*items, value));
        }
        (Type::Record { name, fields }, Value::Object(object)) => {
            return check_record(name, fields, object, inner);
        }
        (Type::Union(branches), Value::Null) => {
            let mut branches = branches.iter();
            branches.any(|it| matches!(schema.kind(*it), Type::Null))
        }
        (Type::Union(branches), Value::Object(object)) if object.len() == 1 => {
            let (name, value) = object.iter().next().expect("it has one member");
            let mut branches = branches.iter();
            match branches.find(|it| schema.kind(**it).name() == name) {
                Some(branch) => return inner(*branch, value),
                None => false,
            }
        }
        (
            Type::Bytes
            | Type::Fixed { .. }
            | Type::Enum { .. }
            | Type::Array(_)
            | Type::Map(_)
            | Type::Record { .. }
            | Type::Union(_),
            _,
        ) => false,
    };
    match is_good {
        true => Ok(()),
        false => Err(format!("a value of type {} is expected", kind.name())),
    }
}

fn check_record(
    name: &str,
    fields: &[Field],
    object: &Map<String, Value>,
    inner: impl Fn(TypeId, &Value) -> Result<(), String>,
) -> Result<(), String> {
    for field in fields {
        match object.get(&field.name) {
            Some(value) => {
                let checked = inner(field.kind, value);
                checked.map_err(|why| format!("{}: {why}", field.name))?;
            }
            None if field.has_default => {}
            None => return Err(format!("{name}.{} is missing", field.name)),
        }
    }
    let is_known = |name: &&String| fields.iter().any(|field| field.name == **name);
    match object.keys().find(|name| !is_known(name)) {
        Some(unknown) => Err(format!("{name} has no field {unknown}")),
        None => Ok(()),
    }
}

/// One letter stands for one byte.
fn is_byte(letter: char) -> bool {
    u32::from(letter) <= 0xff
}
