//! Definitions in Avro, as its specification 1.11 has them: JSON that names types. Logical types are read as the types
//! under them.

pub(super) mod binary;
pub(super) mod json;
mod parse;
pub(super) mod resolve;

use parse::{Default, Parser};
use serde_json::Value;

/// How deep values may lie in one another: a schema may hold itself.
const DEPTH_MAX: usize = 256;

/// A schema; its types refer to one another by their places.
#[derive(Debug)]
pub(crate) struct AvroSchema {
    types: Vec<Type>,
    root: TypeId,
}

/// A type's place.
type TypeId = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Array(TypeId),
    Map(TypeId),
    Union(Vec<TypeId>),
    Record {
        name: Name,
        fields: Vec<Field>,
    },
    Enum {
        name: Name,
        symbols: Vec<String>,
        has_default: bool,
    },
    Fixed {
        name: Name,
        bytes: usize,
    },
}

/// What a record, enum or fixed is called, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    full: String,
    aliases: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    kind: TypeId,
    has_default: bool,
    aliases: Vec<String>,
}

// === impl AvroSchema ===

impl AvroSchema {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut parser = Parser::default();
        let root = parser.parse(&value, "")?;
        let schema = Self {
            types: parser.types,
            root,
        };
        for Default { field, kind, value } in &parser.defaults {
            let fits = json::check_default(&schema, *kind, value);
            fits.map_err(|why| format!("the default of {field} does not fit: {why}"))?;
        }
        Ok(schema)
    }

    fn kind(&self, id: TypeId) -> &Type {
        self.types.get(id).unwrap_or(&Type::Null)
    }
}

// === impl Type ===

impl Type {
    fn primitive(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "bytes" => Self::Bytes,
            "string" => Self::String,
            _ => return None,
        })
    }

    /// As a branch of a union is named.
    fn name(&self) -> &str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Union(_) => "union",
            Self::Record { name, .. } | Self::Enum { name, .. } | Self::Fixed { name, .. } => {
                &name.full
            }
        }
    }
}
