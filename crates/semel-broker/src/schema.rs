//! Schemas: a definition is compiled once, and what is published is checked by it. Nothing here knows of topics.

mod avro;
mod protobuf;

use crate::proto::pubsub::schema::Type;
use crate::proto::pubsub::{Encoding, Schema};

/// A longer definition is refused, as in production.
const DEFINITION_BYTES_MAX: usize = 300 * 1024;

/// What a definition means.
#[derive(Debug)]
pub(crate) enum Definition {
    Avro(avro::AvroSchema),
    Protobuf(prost_reflect::MessageDescriptor),
    /// Another build took it, and this one cannot read it: nothing fits it, for this reason.
    Unreadable(String),
}

// === impl Definition ===

impl Definition {
    /// Compiles a schema's definition; else what is wrong with it.
    pub(crate) fn compile(schema: &Schema) -> Result<Self, String> {
        let text = &schema.definition;
        if text.is_empty() {
            return Err("it has no definition".into());
        }
        if text.len() > DEFINITION_BYTES_MAX {
            return Err(format!("it is longer than {DEFINITION_BYTES_MAX} bytes"));
        }
        match schema.r#type() {
            Type::Avro => avro::AvroSchema::parse(text).map(Self::Avro),
            Type::ProtocolBuffer => protobuf::compile(text).map(Self::Protobuf),
            Type::Unspecified => Err("its type is AVRO or PROTOCOL_BUFFER".into()),
        }
    }

    /// Whether production takes it, and nothing here can read it.
    pub(crate) fn is_not_served(schema: &Schema) -> bool {
        schema.r#type() == Type::ProtocolBuffer && protobuf::is_of_an_edition(&schema.definition)
    }

    /// Whether a schema may have both as revisions, whichever came first; else what stands against it.
    pub(crate) fn compatible_with(&self, other: &Self) -> Result<(), String> {
        match (self, other) {
            (Self::Avro(new), Self::Avro(old)) => {
                avro::resolve::check(new, old)?;
                avro::resolve::check(old, new)
            }
            (Self::Protobuf(new), Self::Protobuf(old)) => protobuf::resolve::check(new, old),
            (Self::Unreadable(why), _) | (_, Self::Unreadable(why)) => Err(why.clone()),
            (Self::Avro(_), Self::Protobuf(_)) | (Self::Protobuf(_), Self::Avro(_)) => {
                Err("the one is Avro, the other Protocol Buffers".into())
            }
        }
    }

    /// Whether `data` is a message of this schema; else what is wrong with it.
    pub(crate) fn check(&self, data: &[u8], encoding: Encoding) -> Result<(), String> {
        match (self, encoding) {
            (Self::Avro(schema), Encoding::Json) => avro::json::check(schema, data),
            (Self::Avro(schema), Encoding::Binary) => avro::binary::check(schema, data),
            (Self::Protobuf(message), Encoding::Json) => protobuf::check_json(message, data),
            (Self::Protobuf(message), Encoding::Binary) => protobuf::check_binary(message, data),
            (Self::Unreadable(why), _) => Err(why.clone()),
            (Self::Avro(_) | Self::Protobuf(_), Encoding::Unspecified) => {
                Err("the encoding is JSON or BINARY".into())
            }
        }
    }
}

#[cfg(test)]
mod tests;
