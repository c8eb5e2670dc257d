//! The writes of a commit, each with its condition.

use crate::proto::precondition::ConditionType;
use crate::proto::write::Operation;
use crate::proto::{Document, DocumentMask, Precondition, Write};
use crate::value::Fields;
use prost_types::Timestamp;

/// The version of a document: when it last changed. Commits are made on condition of it.
pub(crate) type Version = Timestamp;

pub(crate) fn mask(fields: &[&str]) -> DocumentMask {
    DocumentMask {
        field_paths: fields.iter().map(|it| (*it).to_owned()).collect(),
    }
}

/// Writes a whole document, if it is still of this version; none is not there.
pub(crate) fn replace(name: String, fields: Fields, version: Option<Version>) -> Write {
    let condition = version.map_or(ConditionType::Exists(false), ConditionType::UpdateTime);
    put(name, fields, Some(condition))
}

/// Writes a whole document.
pub(crate) fn put(name: String, fields: Fields, condition: Option<ConditionType>) -> Write {
    let document = Document {
        name,
        fields,
        create_time: None,
        update_time: None,
    };
    write(Operation::Update(document), condition)
}

/// Changes nothing, but makes the whole commit fail if the document has another version by then.
pub(crate) fn verify(name: String, version: Version) -> Write {
    Write {
        update_mask: Some(mask(&["_"])),
        ..put(
            name,
            Fields::new(),
            Some(ConditionType::UpdateTime(version)),
        )
    }
}

/// Deletes a document; if it is still of this version, where one is named.
pub(crate) fn delete(name: String, version: Option<Version>) -> Write {
    write(
        Operation::Delete(name),
        version.map(ConditionType::UpdateTime),
    )
}

fn write(operation: Operation, condition: Option<ConditionType>) -> Write {
    Write {
        operation: Some(operation),
        update_mask: None,
        current_document: condition.map(|condition_type| Precondition {
            condition_type: Some(condition_type),
        }),
    }
}
