//! The tree of values that a configuration is read from. Each value knows its location, so that a
//! file and flags go through the same reader.

use super::mistakes::Location;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) location: Location,
    pub(crate) node: Node,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Text(String),
    Integer(i64),
    Switch(bool),
    List(Vec<Value>),
    Table(Vec<Member>),
    /// Something that no setting is; the words say what.
    Other(&'static str),
}

/// A named value of a table.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Where the name stands; the value may begin on a later line.
    pub(crate) location: Location,
    pub(crate) value: Value,
}

/// Reads a file.
///
/// # Errors
/// Each break of TOML's grammar, with its line.
pub(crate) fn parse(text: &str) -> Result<Vec<Member>, Vec<(Location, String)>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(members(text, table.get_ref()));
    }
    let syntax = |error: toml::de::Error| {
        let location = error
            .span()
            .map_or(Location::Whole, |span| at(text, span.start));
        (location, format!("this is not TOML: {}", error.message()))
    };
    Err(errors.into_iter().map(syntax).collect())
}

fn members(text: &str, table: &DeTable<'_>) -> Vec<Member> {
    let member = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| Member {
        name: name.get_ref().to_string(),
        location: at(text, name.span().start),
        value: value_of(text, value),
    };
    table.iter().map(member).collect()
}

fn value_of(text: &str, spanned: &Spanned<DeValue<'_>>) -> Value {
    let node = match spanned.get_ref() {
        DeValue::String(string) => Node::Text(string.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Node::Other("an integer beyond 64 bits"), Node::Integer),
        DeValue::Boolean(switch) => Node::Switch(*switch),
        DeValue::Array(array) => {
            Node::List(array.iter().map(|item| value_of(text, item)).collect())
        }
        DeValue::Table(table) => Node::Table(members(text, table)),
        DeValue::Float(_) => Node::Other("a number with a fraction"),
        DeValue::Datetime(_) => Node::Other("a date or time"),
    };
    Value {
        location: at(text, spanned.span().start),
        node,
    }
}

/// The line of a byte.
fn at(text: &str, byte: usize) -> Location {
    let newlines = text.bytes().take(byte).filter(|byte| *byte == b'\n');
    Location::Line(newlines.count() + 1)
}

// === impl Value ===

impl Value {
    /// Text from a flag or a variable.
    pub(crate) fn given(name: &'static str, text: impl Into<String>) -> Self {
        Self {
            location: Location::Given(name),
            node: Node::Text(text.into()),
        }
    }

    /// What it is, for a sentence.
    pub(crate) const fn found(&self) -> &'static str {
        match &self.node {
            Node::Text(_) => "text",
            Node::Integer(_) => "an integer",
            Node::Switch(_) => "true or false",
            Node::List(_) => "a list",
            Node::Table(_) => "a table",
            Node::Other(words) => words,
        }
    }
}

// === impl Member ===

impl Member {
    /// A value that stands where its name does.
    pub(crate) fn new(name: &str, value: Value) -> Self {
        Self {
            name: name.into(),
            location: value.location,
            value,
        }
    }
}
