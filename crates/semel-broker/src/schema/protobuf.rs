//! Definitions in Protocol Buffers: one file without imports, with one message at its top.

pub(super) mod resolve;

use prost_reflect::{
    Cardinality, DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, Value,
};
use prost_types::FileDescriptorProto;

/// What the file is called in messages about it.
const FILE: &str = "schema.proto";

/// Braces may not lie deeper in one another: the parser goes down with them.
const DEPTH_MAX: usize = 64;

pub(super) fn compile(text: &str) -> Result<MessageDescriptor, String> {
    check_depth(text)?;
    let file = protox_parse::parse(FILE, text).map_err(|error| error.to_string())?;
    if !file.dependency.is_empty() {
        return Err("it imports another file; a definition stands alone".into());
    }
    check_names(&file)?;
    let mut pool = DescriptorPool::new();
    let added = pool.add_file_descriptor_proto(file);
    added.map_err(|error| error.to_string())?;
    let file = pool.get_file_by_name(FILE).expect("it was just added");
    let mut messages = file.messages();
    match (messages.next(), messages.next()) {
        (Some(message), None) => Ok(message),
        (None, _) => Err("it has no message".into()),
        (Some(_), Some(_)) => Err("it has more than one message at its top".into()),
    }
}

/// Whether it begins as a definition of an edition does.
pub(super) fn is_of_an_edition(text: &str) -> bool {
    let mut rest = text.as_bytes().trim_ascii_start();
    loop {
        rest = match rest {
            [b'/', b'/', line @ ..] => past(line, b"\n").trim_ascii_start(),
            [b'/', b'*', comment @ ..] => past(comment, b"*/").trim_ascii_start(),
            _ => return rest.starts_with(b"edition"),
        };
    }
}

/// Brackets in comments and texts are none.
fn check_depth(text: &str) -> Result<(), String> {
    let (mut depth, mut rest) = (0_usize, text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'/', [b'/', line @ ..]) => past(line, b"\n"),
            (b'/', [b'*', comment @ ..]) => past(comment, b"*/"),
            (b'"' | b'\'', _) => past_quote(after, *first),
            (_, _) => after,
        };
        match first {
            b'{' | b'[' | b'<' => depth += 1,
            b'}' | b']' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
    }
    Ok(())
}

/// What follows this end.
fn past<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = text.windows(end.len()).position(|it| it == end);
    at.and_then(|at| text.get(at + end.len()..))
        .unwrap_or_default()
}

/// What follows a text in quotes.
fn past_quote(mut text: &[u8], quote: u8) -> &[u8] {
    loop {
        text = match text {
            [b'\\', _, rest @ ..] => rest,
            // A text ends with its line, whether it has its quote or not.
            [it, rest @ ..] if *it == quote || *it == b'\n' => return rest,
            [_, rest @ ..] => rest,
            [] => return text,
        };
    }
}

/// Options are read by the messages of these names: a file that brings its own leads the compiler round in circles.
fn check_names(file: &FileDescriptorProto) -> Result<(), String> {
    let messages = file.message_type.iter().map(|it| it.name());
    let enums = file.enum_type.iter().map(|it| it.name());
    let mut names = messages.chain(enums).map(|name| match file.package() {
        "" => name.to_owned(),
        package => format!("{package}.{name}"),
    });
    let own = ["google", "google.protobuf"];
    let is_own =
        |name: &String| own.contains(&name.as_str()) || name.starts_with("google.protobuf.");
    match names.find(is_own) {
        Some(name) => Err(format!(
            "{name} is a name of Protocol Buffers' own: choose another package"
        )),
        None => Ok(()),
    }
}

pub(super) fn check_binary(message: &MessageDescriptor, data: &[u8]) -> Result<(), String> {
    let read = DynamicMessage::decode(message.clone(), data);
    check_whole(&read.map_err(|error| error.to_string())?)
}

pub(super) fn check_json(message: &MessageDescriptor, data: &[u8]) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_slice(data);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let read = DynamicMessage::deserialize_with_options(message.clone(), &mut json, &options);
    let read = read.map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    check_whole(&read)
}

/// Every required field is there, and nothing that the schema does not have.
fn check_whole(message: &DynamicMessage) -> Result<(), String> {
    let descriptor = prost_reflect::ReflectMessage::descriptor(message);
    if let Some(unknown) = message.unknown_fields().next() {
        return Err(format!(
            "{} has no field {}",
            descriptor.name(),
            unknown.number()
        ));
    }
    for field in descriptor.fields() {
        if field.cardinality() == Cardinality::Required && !message.has_field(&field) {
            return Err(format!("{} is missing", field.full_name()));
        }
    }
    message
        .fields()
        .try_for_each(|(_, value)| check_value(value))
}

fn check_value(value: &Value) -> Result<(), String> {
    if let Some(message) = value.as_message() {
        return check_whole(message);
    }
    if let Some(items) = value.as_list() {
        return items.iter().try_for_each(check_value);
    }
    match value.as_map() {
        Some(entries) => entries.values().try_for_each(check_value),
        None => Ok(()),
    }
}
