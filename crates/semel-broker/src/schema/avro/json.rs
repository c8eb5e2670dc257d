//! Avro's JSON encoding: a value of a union is an object with the name of its type, but for null.

use super::{AvroSchema, DEPTH_MAX, Field, Type, TypeId};
use serde_json::{Map, Value};

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a message: all of it is there.
    Message,
    /// In a definition, as a default: of a union's first type, and its fields may have defaults themselves.
    Default,
}

pub(in super::super) fn check(schema: &AvroSchema, data: &[u8]) -> Result<(), String> {
    let value = serde_json::from_slice(data).map_err(|error| error.to_string())?;
    check_value(schema, Place::Message, schema.root, &value, 0)
}

/// Whether a value can be the default of a field of this type.
pub(super) fn check_default(schema: &AvroSchema, id: TypeId, value: &Value) -> Result<(), String> {
    check_value(schema, Place::Default, id, value, 0)
}

fn check_value(
    schema: &AvroSchema,
    place: Place,
    id: TypeId,
    value: &Value,
    depth: usize,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("it is nested deeper than {DEPTH_MAX}"));
    }
    let kind = schema.kind(id);
    let inner = |id, value: &Value| check_value(schema, place, id, value, depth + 1);
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
            return check_record(place, &name.full, fields, object, inner);
        }
        (Type::Union(branches), value) if place == Place::Default => {
            return match branches.first() {
                Some(first) => inner(*first, value),
                None => Err("a union of nothing has no default".into()),
            };
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

/// A default is for readers: whoever writes, writes every field. What the record does not have is passed over, as
/// Google's emulator does.
fn check_record(
    place: Place,
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
            None if field.has_default && place == Place::Default => {}
            None => return Err(format!("{name}.{} is missing", field.name)),
        }
    }
    Ok(())
}

/// One letter stands for one byte.
fn is_byte(letter: char) -> bool {
    u32::from(letter) <= 0xff
}
