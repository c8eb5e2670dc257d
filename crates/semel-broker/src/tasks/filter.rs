//! The filter of `ListQueues`: comparisons of fields, joined by AND (or nothing), OR, NOT and parentheses.

mod words;
mod value;

use super::errors::invalid;
use super::reflect;
use crate::proto::tasks::Queue;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, Value};
use tonic::Status;
use value::Wanted;
use words::{Word, Words};

/// How deep parentheses may go.
const DEPTH_MAX: usize = 50;

/// A filter that was read.
#[derive(Debug)]
pub(super) enum Filter {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Compare(Comparison),
}

/// One field against one value.
#[derive(Debug)]
pub(super) struct Comparison {
    path: Vec<FieldDescriptor>,
    relation: Relation,
    wanted: Wanted,
}

/// How a field is to stand to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// `:`, which for text means to contain.
    Has,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

// === impl Filter ===

impl Filter {
    /// Reads a filter; an empty one lets everything through.
    pub(super) fn read(text: &str) -> Result<Self, Status> {
        let mut words = Words::of(text)?;
        if words.peek().is_none() {
            return Ok(Self::All(Vec::new()));
        }
        let filter = all(&mut words, 0)?;
        match words.next() {
            None => Ok(filter),
            Some(word) => Err(words::unexpected(Some(&word))),
        }
    }

    pub(super) fn lets_through(&self, queue: &Queue) -> bool {
        self.holds(&reflect::dynamic(queue))
    }

    fn holds(&self, queue: &DynamicMessage) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(queue)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(queue)),
            Self::Not(part) => !part.holds(queue),
            Self::Compare(comparison) => comparison.holds(queue),
        }
    }
}

/// Parts joined by AND, or by nothing; OR binds closer.
fn all(words: &mut Words, depth: usize) -> Result<Filter, Status> {
    if depth > DEPTH_MAX {
        return Err(words::unexpected(words.peek()));
    }
    let mut parts = vec![any(words, depth)?];
    loop {
        match words.peek() {
            None | Some(Word::Close) => return Ok(Filter::All(parts)),
            Some(Word::And) => drop(words.next()),
            Some(_) => {}
        }
        parts.push(any(words, depth)?);
    }
}

fn any(words: &mut Words, depth: usize) -> Result<Filter, Status> {
    let mut parts = vec![term(words, depth)?];
    while words.peek() == Some(&Word::Or) {
        words.next();
        parts.push(term(words, depth)?);
    }
    Ok(Filter::Any(parts))
}

fn term(words: &mut Words, depth: usize) -> Result<Filter, Status> {
    if matches!(words.peek(), Some(Word::Not | Word::Minus)) {
        words.next();
        return Ok(Filter::Not(Box::new(simple(words, depth)?)));
    }
    simple(words, depth)
}

fn simple(words: &mut Words, depth: usize) -> Result<Filter, Status> {
    match words.next() {
        Some(Word::Open) => {
            let inner = all(words, depth + 1)?;
            match words.next() {
                Some(Word::Close) => Ok(inner),
                other => Err(words::unexpected(other.as_ref())),
            }
        }
        Some(Word::Text(field)) => comparison(&field, words),
        other => Err(words::unexpected(other.as_ref())),
    }
}

fn comparison(field: &str, words: &mut Words) -> Result<Filter, Status> {
    let Some(Word::Relation(relation)) = words.peek().cloned() else {
        return Err(Status::unimplemented(
            "A search over all fields is not supported here: name a field, as in state: PAUSED.",
        ));
    };
    words.next();
    let value = match words.next() {
        Some(Word::Text(value) | Word::Quoted(value)) => value,
        other => return Err(words::unexpected(other.as_ref())),
    };
    let path = path(field)?;
    let last = path.last().expect("a path names at least one field");
    let wanted = Wanted::read(last, field, &value)?;
    Ok(Filter::Compare(Comparison {
        path,
        relation,
        wanted,
    }))
}

/// The fields a name goes through, in whatever case it is written.
fn path(text: &str) -> Result<Vec<FieldDescriptor>, Status> {
    let unknown = || invalid(format!("Field not found: '{text}'."));
    let mut message = Some(reflect::queue());
    let mut path = Vec::new();
    for name in text.split('.') {
        let inside = message.ok_or_else(unknown)?;
        let field = field_of(&inside, name).ok_or_else(unknown)?;
        let inner = field.kind().as_message().cloned();
        message = inner.filter(|inner| !value::is_scalar(inner));
        path.push(field);
    }
    Ok(path)
}

fn field_of(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let bare = |text: &str| text.replace('_', "").to_lowercase();
    message
        .fields()
        .find(|field| bare(field.name()) == bare(name))
}

// === impl Comparison ===

impl Comparison {
    fn holds(&self, queue: &DynamicMessage) -> bool {
        self.holds_below(Some(queue), &self.path)
    }

    /// What is not there counts as its default, except for the question whether it is there.
    fn holds_below(&self, message: Option<&DynamicMessage>, path: &[FieldDescriptor]) -> bool {
        let Some((field, rest)) = path.split_first() else {
            return false;
        };
        let value = message
            .filter(|it| it.has_field(field))
            .map(|it| it.get_field(field));
        if rest.is_empty() {
            return match (&self.wanted, value) {
                (Wanted::Anything, value) => value.is_some(),
                (wanted, Some(value)) => wanted.compare(&value, self.relation),
                (wanted, None) => {
                    wanted.compare(&Value::default_value_for_field(field), self.relation)
                }
            };
        }
        match value.as_deref() {
            Some(Value::Message(inner)) => self.holds_below(Some(inner), rest),
            Some(Value::List(list)) => list
                .iter()
                .any(|it| self.holds_below(it.as_message(), rest)),
            Some(_) => false,
            None if field.is_list() => false,
            None => self.holds_below(None, rest),
        }
    }
}

#[cfg(test)]
mod tests;
