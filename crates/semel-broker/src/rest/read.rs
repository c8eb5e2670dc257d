//! JSON to messages as they travel. All mistakes are gathered, in the words of Google's front end.

use super::error::{ErrorResponse, Violation};
use super::scalar::{self, InvalidValue};
use bytes::Bytes;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};
use std::fmt;

/// A request's message in the making.
#[derive(Debug)]
pub(crate) struct MessageReader {
    wire: Vec<u8>,
    violations: Vec<Violation>,
}

/// Where in the message we are, from the inside out.
#[derive(Clone, Copy)]
struct FieldPath<'a> {
    within: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(&'a str, usize),
}

const ROOT: FieldPath<'static> = FieldPath {
    within: None,
    step: Step::Root,
};

// === impl MessageReader ===

impl MessageReader {
    /// For a body of so many bytes.
    pub(crate) fn new(body_bytes: usize) -> Self {
        Self {
            wire: Vec::with_capacity(body_bytes + 128),
            violations: Vec::new(),
        }
    }

    /// Reads a body that is the message.
    pub(crate) fn body(
        &mut self,
        request: &MessageDescriptor,
        body: &[u8],
    ) -> Result<(), ErrorResponse> {
        if let Some(object) = self.object(body)? {
            let mut wire = std::mem::take(&mut self.wire);
            self.message(&object, request, ROOT, &mut wire);
            self.wire = wire;
        }
        Ok(())
    }

    /// Reads a body that is one field of the message.
    pub(crate) fn body_of(
        &mut self,
        field: &FieldDescriptor,
        body: &[u8],
    ) -> Result<(), ErrorResponse> {
        if let Some(object) = self.object(body)? {
            let mut wire = std::mem::take(&mut self.wire);
            self.value(field, &Value::Object(object), ROOT, &mut wire);
            self.wire = wire;
        }
        Ok(())
    }

    /// Reads a parameter of the query, `pageSize` or `queue.rateLimits.maxBurstSize`.
    pub(crate) fn parameter(&mut self, request: &MessageDescriptor, name: &str, value: &str) {
        let mut fields = Vec::new();
        let mut message = Some(request.clone());
        for part in name.split('.') {
            let Some(field) = message.as_ref().and_then(|it| named(it, part)) else {
                return self.unknown(
                    name,
                    ROOT,
                    &format!("Cannot bind query parameter. Field '{name}' could not be found in request message."),
                );
            };
            message = field.kind().as_message().cloned();
            fields.push(field);
        }
        self.write_at(&fields, value, ROOT);
    }

    /// Puts the value of a path's variable where these fields lead.
    pub(crate) fn variable(&mut self, fields: &[FieldDescriptor], value: &str) {
        self.write_at(fields, value, ROOT);
    }

    /// The message, if there was no mistake.
    pub(crate) fn finish(self) -> Result<Bytes, ErrorResponse> {
        if self.violations.is_empty() {
            Ok(self.wire.into())
        } else {
            Err(ErrorResponse::violations(self.violations))
        }
    }

    /// Writes a text where fields lead, each but the last a message.
    fn write_at(&mut self, fields: &[FieldDescriptor], text: &str, path: FieldPath<'_>) {
        let mut wire = std::mem::take(&mut self.wire);
        self.nested(fields, text, path, &mut wire);
        self.wire = wire;
    }

    fn nested(
        &mut self,
        fields: &[FieldDescriptor],
        text: &str,
        path: FieldPath<'_>,
        wire: &mut Vec<u8>,
    ) {
        match fields {
            [] => {}
            [last] => {
                let value = Value::String(text.into());
                if last.is_list() {
                    self.single(last, &value, path.field(last.name()), wire);
                } else {
                    self.value(last, &value, path, wire);
                }
            }
            [first, rest @ ..] => {
                let mut inner = Vec::new();
                self.nested(rest, text, path.field(first.name()), &mut inner);
                length_delimited(first.number(), &inner, wire);
            }
        }
    }

    fn object(&mut self, body: &[u8]) -> Result<Option<Map<String, Value>>, ErrorResponse> {
        if body.trim_ascii().is_empty() {
            return Ok(None);
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(object)) => Ok(Some(object)),
            Ok(_) => {
                self.unknown("", ROOT, "Root element must be a message.");
                Ok(None)
            }
            Err(error) => Err(ErrorResponse::malformed(body, &error)),
        }
    }

    fn message(
        &mut self,
        object: &Map<String, Value>,
        message: &MessageDescriptor,
        path: FieldPath<'_>,
        wire: &mut Vec<u8>,
    ) {
        let mut chosen: Vec<String> = Vec::new();
        for (name, value) in object {
            let Some(field) = named(message, name) else {
                self.unknown(name, path, "Cannot find field.");
                continue;
            };
            if value.is_null() {
                continue;
            }
            let choice = field.containing_oneof().filter(|it| !it.is_synthetic());
            if let Some(choice) = choice {
                if chosen.iter().any(|it| it == choice.name()) {
                    let taken = format!(
                        "oneof field '{}' is already set. Cannot set '{name}'",
                        choice.name()
                    );
                    self.invalid(path, "oneof", &taken);
                    continue;
                }
                chosen.push(choice.name().to_owned());
            }
            self.value(&field, value, path, wire);
        }
    }

    /// A field's value: a list, a map, or a single one.
    fn value(
        &mut self,
        field: &FieldDescriptor,
        value: &Value,
        path: FieldPath<'_>,
        wire: &mut Vec<u8>,
    ) {
        if field.is_map() {
            self.map(field, value, path, wire);
        } else if field.is_list() {
            let Value::Array(items) = value else {
                return self.wrong_type(field, value, path.field(field.name()));
            };
            for (index, item) in items.iter().enumerate() {
                self.single(field, item, path.item(field.name(), index), wire);
            }
        } else if value.is_array() {
            let name = field.name();
            self.unknown(
                name,
                path,
                "Proto field is not repeating, cannot start list.",
            );
        } else {
            self.single(field, value, path.field(field.name()), wire);
        }
    }

    fn map(
        &mut self,
        field: &FieldDescriptor,
        value: &Value,
        path: FieldPath<'_>,
        wire: &mut Vec<u8>,
    ) {
        let here = path.field(field.name());
        let (Value::Object(object), Kind::Message(pair)) = (value, field.kind()) else {
            return self.wrong_type(field, value, here);
        };
        let (key, item) = (pair.map_entry_key_field(), pair.map_entry_value_field());
        for (index, (name, value)) in object.iter().enumerate() {
            let mut inner = Vec::new();
            let path = path.item(field.name(), index);
            self.single(
                &key,
                &Value::String(name.clone()),
                path.field("key"),
                &mut inner,
            );
            self.single(&item, value, path.field("value"), &mut inner);
            length_delimited(field.number(), &inner, wire);
        }
    }

    fn single(
        &mut self,
        field: &FieldDescriptor,
        value: &Value,
        path: FieldPath<'_>,
        wire: &mut Vec<u8>,
    ) {
        let (number, kind) = (field.number(), field.kind());
        if let (Kind::Message(message), Value::Object(object)) = (&kind, value)
            && !scalar::is_written_as_text(message)
        {
            let mut inner = Vec::new();
            self.message(object, message, path, &mut inner);
            return length_delimited(number, &inner, wire);
        }
        match scalar::write(number, &kind, value, wire) {
            Ok(()) => {}
            Err(InvalidValue::Type) => self.wrong_type(field, value, path),
            Err(InvalidValue::Object) => {
                let within = path.within.copied().unwrap_or(ROOT);
                self.unknown(
                    field.name(),
                    within,
                    "Starting an object on a scalar field.",
                );
            }
            Err(InvalidValue::Text(why)) => self.invalid(path, &type_name(&kind), &why),
            Err(InvalidValue::Form(why)) => {
                let why = format!("Field '{}', {why}", field.json_name());
                self.invalid(path, &type_name(&kind), &why);
            }
        }
    }

    fn wrong_type(&mut self, field: &FieldDescriptor, value: &Value, path: FieldPath<'_>) {
        self.invalid(path, &type_name(&field.kind()), &value.to_string());
    }

    fn invalid(&mut self, path: FieldPath<'_>, kind: &str, what: &str) {
        let path = path.to_string();
        self.violations.push(Violation {
            description: format!("Invalid value at '{path}' ({kind}), {what}"),
            field: path,
        });
    }

    fn unknown(&mut self, name: &str, path: FieldPath<'_>, why: &str) {
        let field = path.to_string();
        let at = if field.is_empty() {
            String::new()
        } else {
            format!(" at '{field}'")
        };
        self.violations.push(Violation {
            field,
            description: format!(
                "Invalid JSON payload received. Unknown name \"{name}\"{at}: {why}"
            ),
        });
    }
}

// === impl FieldPath ===

impl<'a> FieldPath<'a> {
    fn field<'b>(&'b self, name: &'b str) -> FieldPath<'b> {
        FieldPath {
            within: Some(self),
            step: Step::Field(name),
        }
    }

    fn item<'b>(&'b self, name: &'b str, index: usize) -> FieldPath<'b> {
        FieldPath {
            within: Some(self),
            step: Step::Item(name, index),
        }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(within) = self.within {
            within.fmt(f)?;
            if !matches!(within.step, Step::Root) {
                f.write_str(".")?;
            }
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => f.write_str(name),
            Step::Item(name, index) => write!(f, "{name}[{index}]"),
        }
    }
}

/// A field by either of its names.
fn named(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let field = message.get_field_by_json_name(name);
    field.or_else(|| message.get_field_by_name(name))
}

fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Double => "TYPE_DOUBLE".into(),
        Kind::Float => "TYPE_FLOAT".into(),
        Kind::Int32 => "TYPE_INT32".into(),
        Kind::Int64 => "TYPE_INT64".into(),
        Kind::Uint32 => "TYPE_UINT32".into(),
        Kind::Uint64 => "TYPE_UINT64".into(),
        Kind::Sint32 => "TYPE_SINT32".into(),
        Kind::Sint64 => "TYPE_SINT64".into(),
        Kind::Fixed32 => "TYPE_FIXED32".into(),
        Kind::Fixed64 => "TYPE_FIXED64".into(),
        Kind::Sfixed32 => "TYPE_SFIXED32".into(),
        Kind::Sfixed64 => "TYPE_SFIXED64".into(),
        Kind::Bool => "TYPE_BOOL".into(),
        Kind::String => "TYPE_STRING".into(),
        Kind::Bytes => "TYPE_BYTES".into(),
        Kind::Message(message) => format!("type.googleapis.com/{}", message.full_name()),
        Kind::Enum(choices) => format!("type.googleapis.com/{}", choices.full_name()),
    }
}

fn length_delimited(number: u32, inner: &[u8], wire: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, wire);
    encode_varint(inner.len() as u64, wire);
    wire.extend_from_slice(inner);
}
