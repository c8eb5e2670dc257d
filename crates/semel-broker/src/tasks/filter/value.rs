//! What a field is compared with.

use super::Relation;
use crate::duration;
use crate::tasks::errors::invalid;
use jiff::Timestamp;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Value};
use std::cmp::Ordering;
use tonic::Status;

const DURATION: &str = "google.protobuf.Duration";
const TIMESTAMP: &str = "google.protobuf.Timestamp";

#[derive(Debug)]
pub(super) enum FilterValue {
    /// `*`: whether it is there.
    Anything,
    Text(String),
    Number(f64),
    /// Of a duration or a moment.
    Nanos(i128),
}

/// Whether a message is compared as one value.
pub(super) fn is_scalar(message: &MessageDescriptor) -> bool {
    matches!(message.full_name(), DURATION | TIMESTAMP)
}

// === impl FilterValue ===

impl FilterValue {
    /// Reads a value as the field needs it; `name` is how the filter calls the field.
    pub(super) fn read(field: &FieldDescriptor, name: &str, text: &str) -> Result<Self, Status> {
        if text == "*" {
            return Ok(Self::Anything);
        }
        let kind = field.kind();
        let wanted = if let Some(values) = kind.as_enum() {
            let value = values.get_value_by_name(&text.to_uppercase());
            value.map(|value| Self::Number(value.number().into()))
        } else if let Some(message) = kind.as_message() {
            match message.full_name() {
                DURATION => duration_nanos(text).map(Self::Nanos),
                TIMESTAMP => moment(text).map(Self::Nanos),
                _ => return Err(nested(name)),
            }
        } else if kind == Kind::String {
            Some(Self::Text(text.to_lowercase()))
        } else {
            text.parse().ok().map(Self::Number)
        };
        let lower = text.to_lowercase();
        wanted.ok_or_else(|| invalid(format!("The value '{lower}' is of incorrect type.")))
    }

    /// Whether a field's value stands so to this one.
    pub(super) fn compare(&self, value: &Value, relation: Relation) -> bool {
        let order = match self {
            Self::Anything => return true,
            Self::Text(text) => {
                let value = value.as_str().unwrap_or_default().to_lowercase();
                if relation == Relation::Has {
                    return value.contains(text);
                }
                Some(value.cmp(text))
            }
            Self::Number(number) => number_of(value).partial_cmp(number),
            Self::Nanos(nanos) => Some(nanos_of(value).cmp(nanos)),
        };
        order.is_some_and(|order| agrees(order, relation))
    }
}

fn nested(name: &str) -> Status {
    invalid(format!(
        "Cannot match a nested type '{name}'. A member field of scalar or enum type must be provided."
    ))
}

fn agrees(order: Ordering, relation: Relation) -> bool {
    match relation {
        Relation::Has | Relation::Equal => order.is_eq(),
        Relation::Unequal => order.is_ne(),
        Relation::Less => order.is_lt(),
        Relation::LessOrEqual => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::GreaterOrEqual => order.is_ge(),
    }
}

fn number_of(value: &Value) -> f64 {
    value
        .as_f64()
        .or(value.as_i32().map(f64::from))
        .or(value.as_enum_number().map(f64::from))
        // A port: exact far beyond any that there is.
        .or(value
            .as_i64()
            .and_then(|it| i32::try_from(it).ok())
            .map(f64::from))
        .unwrap_or_default()
}

fn nanos_of(value: &Value) -> i128 {
    let Some(message) = value.as_message() else {
        return 0;
    };
    let part = |name: &str| {
        let value = message.get_field_by_name(name)?;
        value.as_i64().or(value.as_i32().map(i64::from))
    };
    nanos(part("seconds").unwrap_or(0), part("nanos").unwrap_or(0))
}

fn duration_nanos(text: &str) -> Option<i128> {
    let duration = duration::parse_json(text).ok()?;
    Some(nanos(duration.seconds, duration.nanos.into()))
}

fn moment(text: &str) -> Option<i128> {
    let stamp: Timestamp = text.parse().ok()?;
    Some(stamp.as_nanosecond())
}

fn nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}
