//! Avro's binary encoding: values one after the other, without names.

use super::{AvroSchema, DEPTH_MAX, Type, TypeId};

/// A message of nothing but empty values could say that there are any number of them: it may hold so many, and so many
/// more a byte, for records in records.
const EMPTY_VALUES_MAX: usize = 10_000;
const VALUES_PER_BYTE_MAX: usize = 16;

/// What is still to be read.
#[derive(Debug)]
struct Reader<'a> {
    schema: &'a AvroSchema,
    bytes: &'a [u8],
    /// How many values it may hold yet.
    values: usize,
    /// How many items of no bytes its arrays may hold yet: however long the rest is, these take time and say nothing.
    empty_items: usize,
}

pub(in super::super) fn check(schema: &AvroSchema, data: &[u8]) -> Result<(), String> {
    let mut reader = Reader {
        schema,
        bytes: data,
        values: EMPTY_VALUES_MAX + VALUES_PER_BYTE_MAX.saturating_mul(data.len()),
        empty_items: EMPTY_VALUES_MAX,
    };
    reader.value(schema.root, 0)?;
    match reader.bytes.len() {
        0 => Ok(()),
        left => Err(format!("{left} bytes are left after the value")),
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn value(&mut self, id: TypeId, depth: usize) -> Result<(), String> {
        self.values = self.values.saturating_sub(1);
        if depth > DEPTH_MAX || self.values == 0 {
            return Err("it is nested too deep, or holds too many values".into());
        }
        let schema = self.schema;
        match schema.kind(id) {
            Type::Null => Ok(()),
            Type::Boolean => match self.take(1)? {
                [0 | 1] => Ok(()),
                _ => Err("a boolean is 0 or 1".into()),
            },
            Type::Int => {
                let number = i32::try_from(self.long()?);
                number.map(drop).map_err(|_| "an int is too large".into())
            }
            Type::Long => self.long().map(drop),
            Type::Float => self.take(4).map(drop),
            Type::Double => self.take(8).map(drop),
            Type::Bytes => self.sized().map(drop),
            Type::String => self.text(),
            Type::Fixed { bytes, .. } => self.take(*bytes).map(drop),
            Type::Enum { symbols, .. } => self.index(symbols.len()).map(drop),
            Type::Union(branches) => {
                let branch = self.index(branches.len())?;
                let branch = branches.get(branch).copied();
                self.value(branch.unwrap_or_default(), depth + 1)
            }
            Type::Array(items) => self.blocks(|it| it.value(*items, depth + 1)),
            Type::Map(items) => self.blocks(|it| {
                it.text()?;
                it.value(*items, depth + 1)
            }),
            Type::Record { fields, .. } => {
                let mut fields = fields.iter();
                fields.try_for_each(|field| {
                    let read = self.value(field.kind, depth + 1);
                    read.map_err(|why| format!("{}: {why}", field.name))
                })
            }
        }
    }

    /// Items in blocks, each with their count; the last block is empty. A negative count is followed by a size.
    fn blocks(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                self.long()?;
            }
            for _ in 0..count.unsigned_abs() {
                let before = self.bytes.len();
                item(self)?;
                if self.bytes.len() == before {
                    let left = self.empty_items.checked_sub(1);
                    self.empty_items = left.ok_or_else(|| {
                        format!("it holds more than {EMPTY_VALUES_MAX} items of no bytes")
                    })?;
                }
            }
        }
    }

    fn index(&mut self, count: usize) -> Result<usize, String> {
        let index = usize::try_from(self.long()?).ok();
        let index = index.filter(|index| *index < count);
        index.ok_or_else(|| format!("an index is not below {count}"))
    }

    fn text(&mut self) -> Result<(), String> {
        let bytes = self.sized()?;
        let text = std::str::from_utf8(bytes);
        text.map(drop).map_err(|_| "a text is not UTF-8".into())
    }

    fn sized(&mut self) -> Result<&[u8], String> {
        let length = usize::try_from(self.long()?);
        self.take(length.map_err(|_| "a length is negative".to_owned())?)
    }

    fn take(&mut self, length: usize) -> Result<&[u8], String> {
        let split = self.bytes.split_at_checked(length);
        let (taken, rest) = split.ok_or("it ends too early")?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Seven bits in a byte, the lowest first; even numbers are positive.
    fn long(&mut self) -> Result<i64, String> {
        let mut value: u64 = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first().expect("one was taken");
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
        Err("a number is too long".into())
    }
}
