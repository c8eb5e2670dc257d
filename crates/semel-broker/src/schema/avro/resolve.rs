//! Whether what one definition writes can be read by another: Avro's schema resolution, without any data.

use super::{AvroSchema, DEPTH_MAX, Field, Name, Type, TypeId};
use std::collections::{HashMap, HashSet};
use std::mem;

/// How often types, fields and symbols may be looked at: no definition that anybody wrote comes near.
const COMPARISONS_MAX: usize = 1_000_000;

/// A reason this long does not get longer by the places it was found at.
const WHY_BYTES_MAX: usize = 1000;

/// Two definitions, and what is known of their types: a schema may hold itself.
#[derive(Debug)]
struct Pair<'a> {
    reader: &'a AvroSchema,
    writer: &'a AvroSchema,
    known: HashMap<(TypeId, TypeId), Known>,
    /// What was taken to fit and is not settled, the latest last.
    fitting: Vec<(TypeId, TypeId)>,
    /// The first place in `fitting` that the present comparison relies on.
    relies_on: usize,
    depth: usize,
    comparisons_left: usize,
}

#[derive(Debug)]
enum Known {
    /// It does not fit, whatever else does; or it fits, and relies on nothing that is still looked at.
    Settled(Result<(), String>),
    /// It fits if what is at this place of `fitting` does.
    Taken(usize),
}

/// Whether every value that `writer` describes can be read by `reader`; else what cannot.
pub(in super::super) fn check(reader: &AvroSchema, writer: &AvroSchema) -> Result<(), String> {
    let mut pair = Pair {
        reader,
        writer,
        known: HashMap::new(),
        fitting: Vec::new(),
        relies_on: usize::MAX,
        depth: 0,
        comparisons_left: COMPARISONS_MAX,
    };
    let checked = pair.check(reader.root, writer.root);
    // What it was given up at is said, not what a union made of it.
    match pair.comparisons_left {
        0 => Err(too_many()),
        _ => checked,
    }
}

fn too_many() -> String {
    format!(
        "comparing them takes more than {COMPARISONS_MAX} steps: use fewer branches in unions, or \
         smaller records"
    )
}

// === impl Pair ===

impl Pair<'_> {
    /// While it is looked at, it is taken to fit: a type that holds itself comes back to itself.
    fn check(&mut self, reader: TypeId, writer: TypeId) -> Result<(), String> {
        self.count(1)?;
        match self.known.get(&(reader, writer)) {
            Some(Known::Settled(known)) => return known.clone(),
            Some(Known::Taken(place)) => {
                self.relies_on = self.relies_on.min(*place);
                return Ok(());
            }
            None => {}
        }
        if self.depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        let place = self.fitting.len();
        self.fitting.push((reader, writer));
        self.known.insert((reader, writer), Known::Taken(place));
        let outer = mem::replace(&mut self.relies_on, usize::MAX);
        self.depth += 1;
        let checked = self.compare(reader, writer);
        self.depth -= 1;
        let relies_on = mem::replace(&mut self.relies_on, outer);
        match &checked {
            Ok(()) if relies_on < place => {
                self.relies_on = outer.min(relies_on);
                let taken = Known::Taken(relies_on);
                self.known.insert((reader, writer), taken);
            }
            Ok(()) => {
                for pair in self.fitting.drain(place..) {
                    self.known.insert(pair, Known::Settled(Ok(())));
                }
            }
            Err(why) => {
                // What fitted only because this did is looked at anew.
                for pair in self.fitting.drain(place..) {
                    self.known.remove(&pair);
                }
                let settled = Known::Settled(Err(why.clone()));
                self.known.insert((reader, writer), settled);
            }
        }
        checked
    }

    /// Once there were too many, everything fails.
    fn count(&mut self, comparisons: usize) -> Result<(), String> {
        self.comparisons_left = self.comparisons_left.saturating_sub(comparisons);
        match self.comparisons_left {
            0 => Err(too_many()),
            _ => Ok(()),
        }
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
                self.count(symbols.len() + written_symbols.len())?;
                let symbols: HashSet<_> = symbols.iter().collect();
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
        self.count(written.len())?;
        let places = written.iter().enumerate();
        let places: HashMap<_, _> = places.map(|(place, it)| (&it.name, place)).collect();
        for field in fields {
            self.count(field.aliases.len())?;
            let names = field.aliases.iter().chain([&field.name]);
            let place = names.filter_map(|name| places.get(name)).min();
            let found = place.and_then(|place| written.get(*place));
            let place = || format!("{}.{}", name.full, field.name);
            match found {
                Some(written) => {
                    let checked = self.check(field.kind, written.kind);
                    checked.map_err(|why| match why.len() {
                        0..WHY_BYTES_MAX => format!("{}: {why}", place()),
                        _ => why,
                    })?;
                }
                None if field.has_default => {}
                None => {
                    let place = place();
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
        self.short() == written.short() || self.aliases.contains(&written.full)
    }

    fn short(&self) -> Option<&str> {
        self.full.rsplit('.').next()
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
