//! Whether what one definition writes can be read by another: Avro's schema resolution, without any data.

use super::{AvroSchema, DEPTH_MAX, Field, Name, Type, TypeId};
use std::collections::HashMap;

/// Two definitions, and what is known of their types: a schema may hold itself.
#[derive(Debug)]
struct Pair<'a> {
    reader: &'a AvroSchema,
    writer: &'a AvroSchema,
    known: HashMap<(TypeId, TypeId), Result<(), String>>,
    /// What was taken to fit, the latest last.
    fitting: Vec<(TypeId, TypeId)>,
    depth: usize,
}

/// Whether every value that `writer` describes can be read by `reader`; else what cannot.
pub(in super::super) fn check(reader: &AvroSchema, writer: &AvroSchema) -> Result<(), String> {
    let mut pair = Pair {
        reader,
        writer,
        known: HashMap::new(),
        fitting: Vec::new(),
        depth: 0,
    };
    pair.check(reader.root, writer.root)
}

// === impl Pair ===

impl Pair<'_> {
    /// While it is looked at, it is taken to fit: a type that holds itself comes back to itself.
    fn check(&mut self, reader: TypeId, writer: TypeId) -> Result<(), String> {
        if let Some(known) = self.known.get(&(reader, writer)) {
            return known.clone();
        }
        if self.depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        let fitting = self.fitting.len();
        self.fitting.push((reader, writer));
        self.known.insert((reader, writer), Ok(()));
        self.depth += 1;
        let checked = self.compare(reader, writer);
        self.depth -= 1;
        if checked.is_err() {
            // What fitted only because this did is looked at anew.
            for pair in self.fitting.drain(fitting..) {
                self.known.remove(&pair);
            }
            self.known.insert((reader, writer), checked.clone());
        }
        checked
    }

    fn compare(&mut self, reader_id: TypeId, writer_id: TypeId) -> Result<(), String> {
        let (reader, writer) = (self.reader.kind(reader_id), self.writer.kind(writer_id));
        let unreadable = || {
            Err(format!(
                "{} cannot be read as {}",
                writer.name(),
                reader.name()
            ))
        };
        match (reader, writer) {
            (_, Type::Union(branches)) => {
                let mut branches = branches.iter();
                branches.try_for_each(|branch| self.check(reader_id, *branch))
            }
            (Type::Union(branches), _) => {
                let mut branches = branches.iter();
                match branches.any(|branch| self.check(*branch, writer_id).is_ok()) {
                    true => Ok(()),
                    false => Err(format!("{} is none of the union", writer.name())),
                }
            }
            (Type::Array(reader), Type::Array(writer)) | (Type::Map(reader), Type::Map(writer)) => {
                self.check(*reader, *writer)
            }
            (
                Type::Record { name, fields },
                Type::Record {
                    name: written,
                    fields: written_fields,
                },
            ) if name.reads(written) => self.check_fields(name, fields, written_fields),
            (
                Type::Enum {
                    name,
                    symbols,
                    has_default,
                },
                Type::Enum {
                    name: written,
                    symbols: written_symbols,
                    ..
                },
            ) if name.reads(written) => {
                let mut written_symbols = written_symbols.iter();
                match written_symbols.find(|symbol| !symbols.contains(symbol)) {
                    Some(symbol) if !has_default => {
                        Err(format!("{symbol} is missing in {}", name.full))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            (
                Type::Fixed { name, bytes },
                Type::Fixed {
                    name: written,
                    bytes: written_bytes,
                },
            ) if name.reads(written) && bytes == written_bytes => Ok(()),
            (reader, writer) if reader == writer && Type::primitive(reader.name()).is_some() => {
                Ok(())
            }
            (reader, writer) if is_promoted(writer, reader) => Ok(()),
            (_, _) => unreadable(),
        }
    }

    /// What the writer has not, the reader takes from its default.
    fn check_fields(
        &mut self,
        name: &Name,
        fields: &[Field],
        written: &[Field],
    ) -> Result<(), String> {
        for field in fields {
            let mut written = written.iter();
            let found =
                written.find(|it| it.name == field.name || field.aliases.contains(&it.name));
            let place = format!("{}.{}", name.full, field.name);
            match found {
                Some(written) => {
                    let checked = self.check(field.kind, written.kind);
                    checked.map_err(|why| format!("{place}: {why}"))?;
                }
                None if field.has_default => {}
                None => {
                    return Err(format!(
                        "{place} has no default and is not in every revision"
                    ));
                }
            }
        }
        Ok(())
    }
}

// === impl Name ===

impl Name {
    /// Namespaces do not count, except in aliases.
    fn reads(&self, written: &Self) -> bool {
        let short = |name: &str| name.rsplit('.').next().map(str::to_owned);
        short(&self.full) == short(&written.full) || self.aliases.contains(&written.full)
    }
}

/// A smaller number is read as a larger one, and bytes and texts as each other.
fn is_promoted(writer: &Type, reader: &Type) -> bool {
    match writer {
        Type::Int => matches!(reader, Type::Long | Type::Float | Type::Double),
        Type::Long => matches!(reader, Type::Float | Type::Double),
        Type::Float => matches!(reader, Type::Double),
        Type::String => matches!(reader, Type::Bytes),
        Type::Bytes => matches!(reader, Type::String),
        Type::Null
        | Type::Boolean
        | Type::Double
        | Type::Array(_)
        | Type::Map(_)
        | Type::Union(_)
        | Type::Record { .. }
        | Type::Enum { .. }
        | Type::Fixed { .. } => false,
    }
}
