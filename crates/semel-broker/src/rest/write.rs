//! Messages as they travel to JSON: fields in the order of their numbers, and only those that are set.

use crate::proto::POOL;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost::{DecodeError, Message};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use prost_types::{Any, Duration, FieldMask, Timestamp};
use std::fmt::Display;
use std::io::Write;

/// How JSON is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// With line breaks, and two spaces per level.
    pub(crate) pretty: bool,
    pub(crate) enums_as_numbers: bool,
}

#[derive(Debug)]
struct JsonWriter {
    out: Vec<u8>,
    style: Style,
    depth: usize,
}

/// A value as it travels.
#[derive(Clone, Copy, Debug)]
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

type WriteResult = Result<(), MalformedMessage>;

/// The bytes are no message: a fault of ours.
#[derive(Debug)]
pub(crate) struct MalformedMessage;

/// The JSON of a message.
pub(crate) fn json(
    wire: &[u8],
    message: &MessageDescriptor,
    style: Style,
) -> Result<Vec<u8>, MalformedMessage> {
    let mut writer = JsonWriter::new(wire.len(), style);
    writer.message(wire, message)?;
    Ok(writer.finish())
}

/// The JSON of an object with one field, which is this message.
pub(crate) fn json_under(
    name: &str,
    wire: &[u8],
    message: &MessageDescriptor,
    style: Style,
) -> Result<Vec<u8>, MalformedMessage> {
    let mut writer = JsonWriter::new(wire.len(), style);
    writer.open(b'{');
    writer.next(true);
    writer.key(name);
    writer.message(wire, message)?;
    writer.close(false, b'}');
    Ok(writer.finish())
}

// === impl MalformedMessage ===

impl From<DecodeError> for MalformedMessage {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

// === impl Style ===

impl Default for Style {
    fn default() -> Self {
        Self {
            pretty: true,
            enums_as_numbers: false,
        }
    }
}

// === impl JsonWriter ===

impl JsonWriter {
    fn new(bytes: usize, style: Style) -> Self {
        Self {
            out: Vec::with_capacity(bytes * 2 + 64),
            style,
            depth: 0,
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.style.pretty {
            self.out.push(b'\n');
        }
        self.out
    }

    fn message(&mut self, wire: &[u8], message: &MessageDescriptor) -> WriteResult {
        match message.full_name() {
            "google.protobuf.Timestamp" => self.shown(Timestamp::decode(wire)?),
            "google.protobuf.Duration" => self.shown(Duration::decode(wire)?),
            "google.protobuf.FieldMask" => self.mask(&FieldMask::decode(wire)?),
            "google.protobuf.Any" => return self.any(&Any::decode(wire)?),
            _ => {
                self.open(b'{');
                let is_empty = self.fields(wire, message, true)?;
                self.close(is_empty, b'}');
            }
        }
        Ok(())
    }

    /// Writes the fields; tells whether the object is still empty.
    fn fields(
        &mut self,
        mut wire: &[u8],
        message: &MessageDescriptor,
        mut is_empty: bool,
    ) -> Result<bool, MalformedMessage> {
        while wire.has_remaining() {
            let (number, raw) = next(&mut wire)?;
            let Some(field) = message.get_field(number) else {
                continue;
            };
            self.next(is_empty);
            is_empty = false;
            self.key(field.json_name());
            if field.is_map() {
                self.many(raw, &field, &mut wire, b"{}", Self::pair)?;
            } else if field.is_list() {
                self.many(raw, &field, &mut wire, b"[]", Self::single)?;
            } else {
                self.single(raw, &field)?;
            }
        }
        Ok(is_empty)
    }

    /// Writes all values of a field; they follow each other.
    fn many(
        &mut self,
        first: WireValue<'_>,
        field: &FieldDescriptor,
        wire: &mut &[u8],
        brackets: &[u8; 2],
        each: fn(&mut Self, WireValue<'_>, &FieldDescriptor) -> WriteResult,
    ) -> WriteResult {
        let [open, close] = *brackets;
        self.open(open);
        self.next(true);
        each(self, first, field)?;
        loop {
            let mut ahead = *wire;
            if !ahead.has_remaining() {
                break;
            }
            let (number, raw) = next(&mut ahead)?;
            if number != field.number() {
                break;
            }
            *wire = ahead;
            self.next(false);
            each(self, raw, field)?;
        }
        self.close(false, close);
        Ok(())
    }

    /// One key of a map and its value.
    fn pair(&mut self, raw: WireValue<'_>, field: &FieldDescriptor) -> WriteResult {
        let (WireValue::Bytes(mut wire), Kind::Message(pair)) = (raw, field.kind()) else {
            return Ok(());
        };
        // What is not there is empty.
        let (mut key, mut value) = (WireValue::Bytes(b""), WireValue::Bytes(b""));
        while wire.has_remaining() {
            match next(&mut wire)? {
                (1, raw) => key = raw,
                (_, raw) => value = raw,
            }
        }
        self.single(key, &pair.map_entry_key_field())?;
        self.colon();
        self.single(value, &pair.map_entry_value_field())
    }

    fn single(&mut self, raw: WireValue<'_>, field: &FieldDescriptor) -> WriteResult {
        match (field.kind(), raw) {
            (Kind::Message(message), WireValue::Bytes(wire)) => {
                return self.message(wire, &message);
            }
            (Kind::Bytes, WireValue::Bytes(bytes)) => self.text(&STANDARD.encode(bytes)),
            (Kind::String, WireValue::Bytes(bytes)) => self.text(&String::from_utf8_lossy(bytes)),
            (Kind::Bool, WireValue::Number(number)) => self.plain(number != 0),
            // As for text, so that no digit is lost on the way.
            (Kind::Int64, WireValue::Number(number)) => self.shown(number.cast_signed()),
            (Kind::Int32, WireValue::Number(number)) => self.plain(number.cast_signed()),
            (Kind::Double, WireValue::Number(bits)) => match f64::from_bits(bits) {
                number if number.is_finite() => self.plain(number),
                number => self.shown(number),
            },
            (Kind::Enum(choices), WireValue::Number(number)) => {
                let number = i32::try_from(number.cast_signed()).unwrap_or(0);
                match choices.get_value(number) {
                    Some(choice) if !self.style.enums_as_numbers => self.text(choice.name()),
                    Some(_) | None => self.plain(number),
                }
            }
            // Nothing else is in our .proto files.
            (_, WireValue::Number(number)) => self.plain(number),
            (_, WireValue::Bytes(bytes)) => self.text(&STANDARD.encode(bytes)),
        }
        Ok(())
    }

    fn any(&mut self, any: &Any) -> WriteResult {
        self.open(b'{');
        self.next(true);
        self.key("@type");
        self.text(&any.type_url);
        let name = any.type_url.rsplit('/').next().unwrap_or_default();
        match POOL.get_message_by_name(name) {
            Some(message) => {
                self.fields(&any.value, &message, false)?;
            }
            None => {
                self.next(false);
                self.key("value");
                self.text(&STANDARD.encode(&any.value));
            }
        }
        self.close(false, b'}');
        Ok(())
    }

    fn mask(&mut self, mask: &FieldMask) {
        let paths: Vec<_> = mask.paths.iter().map(|path| in_camel_case(path)).collect();
        self.text(&paths.join(","));
    }

    fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.depth += 1;
    }

    fn close(&mut self, is_empty: bool, bracket: u8) {
        self.depth -= 1;
        if !is_empty {
            self.line();
        }
        self.out.push(bracket);
    }

    /// Before each thing between brackets.
    fn next(&mut self, is_first: bool) {
        if !is_first {
            self.out.push(b',');
        }
        self.line();
    }

    fn line(&mut self) {
        if self.style.pretty {
            self.out.push(b'\n');
            for _ in 0..self.depth {
                self.out.extend_from_slice(b"  ");
            }
        }
    }

    fn key(&mut self, name: &str) {
        self.text(name);
        self.colon();
    }

    fn colon(&mut self) {
        let colon: &[u8] = if self.style.pretty { b": " } else { b":" };
        self.out.extend_from_slice(colon);
    }

    fn text(&mut self, text: &str) {
        serde_json::to_writer(&mut self.out, text).expect("a text can be written to memory");
    }

    /// In quotation marks.
    fn shown(&mut self, value: impl Display) {
        write!(self.out, "\"{value}\"").expect("memory takes everything");
    }

    fn plain(&mut self, value: impl Display) {
        write!(self.out, "{value}").expect("memory takes everything");
    }
}

/// The next field's number and value.
fn next<'a>(wire: &mut &'a [u8]) -> Result<(u32, WireValue<'a>), MalformedMessage> {
    let (number, form) = decode_key(wire)?;
    let raw = match form {
        WireType::Varint => WireValue::Number(decode_varint(wire)?),
        WireType::SixtyFourBit => {
            let (bytes, rest) = wire.split_first_chunk().ok_or(MalformedMessage)?;
            *wire = rest;
            WireValue::Number(u64::from_le_bytes(*bytes))
        }
        WireType::ThirtyTwoBit => {
            let (bytes, rest) = wire.split_first_chunk().ok_or(MalformedMessage)?;
            *wire = rest;
            WireValue::Number(u64::from(u32::from_le_bytes(*bytes)))
        }
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(wire)?).unwrap_or(usize::MAX);
            let (bytes, rest) = wire.split_at_checked(length).ok_or(MalformedMessage)?;
            *wire = rest;
            WireValue::Bytes(bytes)
        }
        WireType::StartGroup | WireType::EndGroup => return Err(MalformedMessage),
    };
    Ok((number, raw))
}

fn in_camel_case(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut raise = false;
    for letter in path.chars() {
        if letter == '_' {
            raise = true;
        } else {
            out.push(if raise {
                letter.to_ascii_uppercase()
            } else {
                letter
            });
            raise = false;
        }
    }
    out
}
