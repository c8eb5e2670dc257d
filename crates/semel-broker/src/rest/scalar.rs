//! Single JSON values to values of fields.

use crate::{duration, field_mask};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost_reflect::{self as reflect, DynamicMessage, EnumDescriptor, Kind, MessageDescriptor};
use prost_types::{Duration, FieldMask, Timestamp};
use serde_json::Value;

/// Why a value is not taken.
#[derive(Debug)]
pub(crate) enum InvalidValue {
    /// It is of another type.
    Type,
    /// It is an object, and none belongs here.
    Object,
    /// A text that does not say what it should.
    Text(String),
    /// The same, where Google's words name the field once more.
    Form(String),
}

const TIMESTAMP: &str = "google.protobuf.Timestamp";
const DURATION: &str = "google.protobuf.Duration";
const FIELD_MASK: &str = "google.protobuf.FieldMask";

/// The years a timestamp may have: 1 to 9999, in seconds since 1970.
const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Whether JSON writes this message as a text.
pub(crate) fn is_written_as_text(message: &MessageDescriptor) -> bool {
    matches!(message.full_name(), TIMESTAMP | DURATION | FIELD_MASK)
}

/// Reads a value as a field of this kind needs it.
pub(crate) fn read(kind: &Kind, value: &Value) -> Result<reflect::Value, InvalidValue> {
    if value.is_object() && !matches!(kind, Kind::Message(_)) {
        return Err(InvalidValue::Object);
    }
    Ok(match kind {
        Kind::String => reflect::Value::String(text(value)?.into()),
        Kind::Bytes => reflect::Value::Bytes(bytes(value)?.into()),
        Kind::Message(message) => reflect::Value::Message(well_known(message, text(value)?)?),
        Kind::Bool => reflect::Value::Bool(truth(value)?),
        Kind::Enum(choices) => reflect::Value::EnumNumber(choice(choices, value)?),
        Kind::Int32 => reflect::Value::I32(small(value)?),
        Kind::Int64 => reflect::Value::I64(integer(value)?),
        Kind::Double => reflect::Value::F64(double(value)?),
        // None of these is in our .proto files.
        Kind::Float
        | Kind::Uint32
        | Kind::Uint64
        | Kind::Sint32
        | Kind::Sint64
        | Kind::Fixed32
        | Kind::Fixed64
        | Kind::Sfixed32
        | Kind::Sfixed64 => return Err(InvalidValue::Type),
    })
}

fn text(value: &Value) -> Result<&str, InvalidValue> {
    value.as_str().ok_or(InvalidValue::Type)
}

fn truth(value: &Value) -> Result<bool, InvalidValue> {
    match value.as_str() {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(_) => Err(InvalidValue::Type),
        None => value.as_bool().ok_or(InvalidValue::Type),
    }
}

fn integer(value: &Value) -> Result<i64, InvalidValue> {
    if let Some(integer) = value.as_i64() {
        return Ok(integer);
    }
    if let Some(Ok(integer)) = value.as_str().map(str::parse) {
        return Ok(integer);
    }
    // 1e3 and 7.0 are integers, too.
    let float = double(value)?;
    let is_whole = float.fract() == 0.0 && float.abs() < 9.0e15;
    let text = is_whole.then(|| format!("{float}"));
    text.and_then(|it| it.parse().ok())
        .ok_or(InvalidValue::Type)
}

fn double(value: &Value) -> Result<f64, InvalidValue> {
    match value.as_str() {
        Some("NaN") => Ok(f64::NAN),
        Some("Infinity") => Ok(f64::INFINITY),
        Some("-Infinity") => Ok(f64::NEG_INFINITY),
        Some(text) => {
            let number: Option<f64> = text.parse().ok();
            number.filter(|it| it.is_finite()).ok_or(InvalidValue::Type)
        }
        None => value.as_f64().ok_or(InvalidValue::Type),
    }
}

/// By name or by number; a number without a name is kept.
fn choice(choices: &EnumDescriptor, value: &Value) -> Result<i32, InvalidValue> {
    let named = value.as_str().and_then(|it| choices.get_value_by_name(it));
    if let Some(named) = named {
        return Ok(named.number());
    }
    small(value)
}

fn small(value: &Value) -> Result<i32, InvalidValue> {
    i32::try_from(integer(value)?).map_err(|_| InvalidValue::Type)
}

fn bytes(value: &Value) -> Result<Vec<u8>, InvalidValue> {
    let text = text(value)?;
    let is_url_safe = text.bytes().any(|it| matches!(it, b'-' | b'_'));
    let engine = if is_url_safe { URL_SAFE } else { STANDARD };
    let failed = |_| InvalidValue::Text(format!("Base64 decoding failed for {value}"));
    engine.decode(text).map_err(failed)
}

fn well_known(message: &MessageDescriptor, text: &str) -> Result<DynamicMessage, InvalidValue> {
    let mut read = DynamicMessage::new(message.clone());
    let same = match message.full_name() {
        TIMESTAMP => read.transcode_from(&timestamp(text)?),
        DURATION => read.transcode_from(&duration(text)?),
        FIELD_MASK => read.transcode_from(&mask(text)),
        _ => return Err(InvalidValue::Type),
    };
    same.expect("it is of this type");
    Ok(read)
}

fn timestamp(text: &str) -> Result<Timestamp, InvalidValue> {
    let wrong = || InvalidValue::Form(format!("Invalid time format: {text}"));
    let zone = text.get(10..).unwrap_or_default();
    if !zone.ends_with('Z') && !zone.contains(['+', '-']) {
        let why = "Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset.";
        return Err(InvalidValue::Form(why.into()));
    }
    let moment: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
    let nanos = moment.as_nanosecond().rem_euclid(1_000_000_000);
    let seconds = moment.as_nanosecond().div_euclid(1_000_000_000);
    let seconds = i64::try_from(seconds).map_err(|_| wrong())?;
    if !TIMESTAMP_SECONDS.contains(&seconds) {
        return Err(wrong());
    }
    Ok(Timestamp {
        seconds,
        nanos: i32::try_from(nanos).expect("below a second"),
    })
}

fn duration(text: &str) -> Result<Duration, InvalidValue> {
    duration::parse_json(text).map_err(|why| InvalidValue::Form(why.into()))
}

/// Paths in either spelling; they travel with underscores.
fn mask(text: &str) -> FieldMask {
    let paths = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    FieldMask {
        paths: paths.map(field_mask::snake_case).collect(),
    }
}
