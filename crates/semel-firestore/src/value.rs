//! Values of a document's fields, written and read. A field that is not as we write it is `Corrupt`, by name.

use crate::proto::value::ValueType;
use crate::proto::{Document, Value};
use bytes::Bytes;
use prost_types::Timestamp;
use semel::Error;
use semel::clock::Time;
use std::collections::HashMap;

pub(crate) type Fields = HashMap<String, Value>;

/// A document's fields, to be read by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) document: &'a Document,
}

pub(crate) fn fields<const N: usize>(pairs: [(&str, Value); N]) -> Fields {
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

pub(crate) fn null() -> Value {
    of(ValueType::NullValue(0))
}

pub(crate) fn boolean(yes: bool) -> Value {
    of(ValueType::BooleanValue(yes))
}

/// Numbers here are times in microseconds and counts, far below the limit.
pub(crate) fn int(number: impl Into<u64>) -> Value {
    let number = i64::try_from(number.into()).unwrap_or(i64::MAX);
    of(ValueType::IntegerValue(number))
}

pub(crate) fn time_or_null(time: Option<Time>) -> Value {
    time.map_or_else(null, |it| int(it.0))
}

pub(crate) fn string(text: impl Into<String>) -> Value {
    of(ValueType::StringValue(text.into()))
}

pub(crate) fn reference(name: impl Into<String>) -> Value {
    of(ValueType::ReferenceValue(name.into()))
}

pub(crate) fn bytes(bytes: impl Into<Bytes>) -> Value {
    of(ValueType::BytesValue(bytes.into()))
}

pub(crate) fn bytes_or_null(bytes: Option<Bytes>) -> Value {
    bytes.map_or_else(null, self::bytes)
}

pub(crate) fn timestamp(time: Time) -> Value {
    const MICROS: u64 = 1_000_000;
    let nanos = i32::try_from(time.0 % MICROS * 1_000).expect("below a second");
    of(ValueType::TimestampValue(Timestamp {
        seconds: i64::try_from(time.0 / MICROS).unwrap_or(i64::MAX),
        nanos,
    }))
}

/// A time of the server, cut to the microseconds that it has.
pub(crate) fn time(timestamp: Option<&Timestamp>) -> Result<Time, Error> {
    let micros = timestamp.and_then(|it| {
        let seconds = u64::try_from(it.seconds).ok()?;
        let nanos = u64::try_from(it.nanos).ok()?;
        seconds.checked_mul(1_000_000)?.checked_add(nanos / 1_000)
    });
    micros.map(Time).ok_or_else(|| {
        Error::corrupt("Firestore answered without a time, which every answer has; stop and look what answers there")
    })
}

const fn of(value: ValueType) -> Value {
    Value {
        value_type: Some(value),
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    /// Absent and null are both none.
    fn get(self, name: &str) -> Option<&'a ValueType> {
        let value = self.document.fields.get(name)?.value_type.as_ref()?;
        (!matches!(value, ValueType::NullValue(_))).then_some(value)
    }

    pub(crate) fn int_or_none(self, name: &str) -> Result<Option<u64>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueType::IntegerValue(number)) => match u64::try_from(*number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.wrong(name, "is negative")),
            },
            Some(_) => Err(self.wrong(name, "is no integer")),
        }
    }

    pub(crate) fn int(self, name: &str) -> Result<u64, Error> {
        let found = self.int_or_none(name)?;
        found.ok_or_else(|| self.wrong(name, "is missing"))
    }

    pub(crate) fn int32(self, name: &str) -> Result<u32, Error> {
        let number = self.int_or_none(name)?.unwrap_or(0);
        u32::try_from(number).map_err(|_| self.wrong(name, "is too large"))
    }

    pub(crate) fn time(self, name: &str) -> Result<Time, Error> {
        self.int(name).map(Time)
    }

    pub(crate) fn boolean(self, name: &str) -> Result<bool, Error> {
        match self.get(name) {
            None => Ok(false),
            Some(ValueType::BooleanValue(yes)) => Ok(*yes),
            Some(_) => Err(self.wrong(name, "is neither true nor false")),
        }
    }

    pub(crate) fn bytes_or_none(self, name: &str) -> Result<Option<Bytes>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueType::BytesValue(bytes)) => Ok(Some(bytes.clone())),
            Some(_) => Err(self.wrong(name, "is not bytes")),
        }
    }

    pub(crate) fn array<const N: usize>(self, name: &str) -> Result<[u8; N], Error> {
        let bytes = self.bytes_or_none(name)?.unwrap_or_default();
        <[u8; N]>::try_from(bytes.as_ref())
            .map_err(|_| self.wrong(name, &format!("is not {N} bytes")))
    }

    pub(crate) fn string_or_none(self, name: &str) -> Result<Option<&'a str>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueType::StringValue(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "is no string")),
        }
    }

    pub(crate) fn wrong(self, name: &str, what: &str) -> Error {
        let document = &self.document.name;
        Error::corrupt(format!(
            "the field `{name}` of the Firestore document {document} {what}; nothing is decided by it, look who else \
             writes in this collection"
        ))
    }
}
