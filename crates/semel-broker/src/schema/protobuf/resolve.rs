//! Whether two definitions in Protocol Buffers may be revisions of one schema: fields that are not required come and go,
//! and nothing else changes.

use prost_reflect::{Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use prost_types::FieldDescriptorProto;
use std::collections::HashSet;

/// Looks at two messages and those in them.
pub(in super::super) fn check(
    new: &MessageDescriptor,
    old: &MessageDescriptor,
) -> Result<(), String> {
    let mut seen = HashSet::new();
    let mut waiting = vec![(new.clone(), old.clone())];
    while let Some((new, old)) = waiting.pop() {
        if new.full_name() != old.full_name() {
            return Err(format!("{} became {}", old.full_name(), new.full_name()));
        }
        if !seen.insert(new.full_name().to_owned()) {
            continue;
        }
        check_fields_are_in(&old, &new)?;
        check_fields_are_in(&new, &old)?;
        for new in new.fields() {
            if let Some(old) = old.get_field(new.number()) {
                waiting.extend(check_field(&new, &old)?);
            }
        }
    }
    Ok(())
}

/// A field that only one has is not required, and not another's with a new number.
fn check_fields_are_in(one: &MessageDescriptor, other: &MessageDescriptor) -> Result<(), String> {
    for field in one.fields() {
        let (name, number) = (field.full_name(), field.number());
        if other.get_field(number).is_some() {
            continue;
        }
        if field.cardinality() == Cardinality::Required {
            return Err(format!("{name} is required and not in every revision"));
        }
        if other.get_field_by_name(field.name()).is_some() {
            return Err(format!("{name} has another number, {number}"));
        }
    }
    Ok(())
}

/// Both messages, if the field is one.
fn check_field(
    new: &FieldDescriptor,
    old: &FieldDescriptor,
) -> Result<Option<(MessageDescriptor, MessageDescriptor)>, String> {
    let choice = |it: &FieldDescriptor| it.containing_oneof().map(|it| it.name().to_owned());
    if declared(new) != declared(old) || choice(new) != choice(old) {
        let (name, number) = (new.full_name(), new.number());
        return Err(format!("{name} = {number} is not what it was"));
    }
    match (new.kind(), old.kind()) {
        (Kind::Message(new), Kind::Message(old)) => Ok(Some((new, old))),
        (Kind::Enum(new), Kind::Enum(old)) => {
            check_values_are_in(&new, &old)?;
            check_values_are_in(&old, &new)?;
            Ok(None)
        }
        // Their types are declared, and were compared.
        (_, _) => Ok(None),
    }
}

/// Name, number, type, label and default; not where its choice stands in the message, nor its options.
fn declared(field: &FieldDescriptor) -> FieldDescriptorProto {
    FieldDescriptorProto {
        oneof_index: None,
        options: None,
        ..field.field_descriptor_proto().clone()
    }
}

/// Whoever reads JSON knows no value by its number alone.
fn check_values_are_in(one: &EnumDescriptor, other: &EnumDescriptor) -> Result<(), String> {
    for value in one.values() {
        let (name, number) = (value.name(), value.number());
        let mut others = other.values();
        if !others.any(|it| it.name() == name && it.number() == number) {
            let full = value.full_name();
            return Err(format!(
                "{full} = {number} is missing in {}",
                other.full_name()
            ));
        }
    }
    Ok(())
}
