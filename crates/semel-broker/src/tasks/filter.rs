//! The filter of `ListQueues`: comparisons of fields, joined by AND (or nothing), OR, NOT and parentheses.

mod value;

use super::errors::invalid;
use crate::filter::{self, Dialect, Filter, FilterError, Syntax, Token, Tokens, unexpected};
use crate::proto::tasks::Queue;
use crate::proto::{self, QUEUE};
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, Value};
use tonic::Status;
use value::FilterValue;

/// Which queues to list.
#[derive(Debug)]
pub(super) struct QueueFilter(Option<Filter<Comparison>>);

/// One field against one value.
#[derive(Debug)]
struct Comparison {
    path: Vec<FieldDescriptor>,
    relation: Relation,
    wanted: FilterValue,
}

/// How a field is to stand to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// `:`, which for text means to contain.
    Has,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

// === impl QueueFilter ===

impl QueueFilter {
    /// Parses a filter; an empty one lets everything through.
    pub(super) fn parse(text: &str) -> Result<Self, Status> {
        let filter = filter::parse::<Comparison>(text).map_err(|error| match error {
            FilterError::Term(status) => status,
            error @ (FilterError::Unexpected { .. }
            | FilterError::UnknownCharacter(_)
            | FilterError::UnclosedQuote
            | FilterError::UnknownEscape) => invalid(format!(
                "Failed to parse filter expression: syntax error at token '{}'",
                error.token()
            )),
        });
        filter.map(Self)
    }

    pub(super) fn matches(&self, queue: &Queue) -> bool {
        let Some(filter) = &self.0 else {
            return true;
        };
        let queue = proto::dynamic(proto::descriptor(QUEUE), queue);
        filter.matches(&|comparison| comparison.holds(Some(&queue), &comparison.path))
    }
}

/// The fields a name goes through, in whatever case it is written.
fn path(text: &str) -> Result<Vec<FieldDescriptor>, Status> {
    let fields = proto::fields(&proto::descriptor(QUEUE), text, field_of);
    let is_message =
        |field: &FieldDescriptor| !field.kind().as_message().is_some_and(value::is_scalar);
    let fields = fields.filter(|fields| fields.iter().rev().skip(1).all(is_message));
    fields.ok_or_else(|| invalid(format!("Field not found: '{text}'.")))
}

fn field_of(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let bare = |text: &str| text.replace('_', "").to_lowercase();
    message
        .fields()
        .find(|field| bare(field.name()) == bare(name))
}

// === impl Comparison ===

impl Dialect for Comparison {
    const SYNTAX: Syntax = Syntax {
        symbols: &["(", ")", "-", "<=", ">=", "!=", "<", ">", "=", ":"],
        quotes: &['"', '\''],
        escapes: false,
        reserved: true,
        loose: true,
        begins_word: is_of_word,
        in_word: is_of_word,
    };

    fn term(tokens: &mut Tokens) -> Result<Self, FilterError> {
        let field = match tokens.next() {
            Some(Token::Word(field)) => field,
            other => return Err(unexpected(other, "a field")),
        };
        let Some(relation) = tokens.peek().and_then(Relation::of) else {
            return Err(FilterError::Term(Status::unimplemented(
                "A search over all fields is not supported here: name a field, as in state: PAUSED.",
            )));
        };
        tokens.next();
        let value = match tokens.next() {
            Some(Token::Word(value) | Token::Quoted(value)) => value,
            other => return Err(unexpected(other, "a value")),
        };
        let path = path(&field).map_err(FilterError::Term)?;
        let last = path.last().expect("a path names at least one field");
        let wanted = FilterValue::read(last, &field, &value).map_err(FilterError::Term)?;
        Ok(Self {
            path,
            relation,
            wanted,
        })
    }
}

impl Comparison {
    /// What is not there counts as its default, except for the question whether it is there.
    fn holds(&self, message: Option<&DynamicMessage>, path: &[FieldDescriptor]) -> bool {
        let Some((field, rest)) = path.split_first() else {
            return false;
        };
        let value = message
            .filter(|it| it.has_field(field))
            .map(|it| it.get_field(field));
        if rest.is_empty() {
            return match (&self.wanted, value) {
                (FilterValue::Anything, value) => value.is_some(),
                (wanted, Some(value)) => wanted.compare(&value, self.relation),
                (wanted, None) => {
                    wanted.compare(&Value::default_value_for_field(field), self.relation)
                }
            };
        }
        match value.as_deref() {
            Some(Value::Message(inner)) => self.holds(Some(inner), rest),
            Some(Value::List(list)) => list.iter().any(|it| self.holds(it.as_message(), rest)),
            Some(_) => false,
            None if field.is_list() => false,
            None => self.holds(None, rest),
        }
    }
}

// === impl Relation ===

impl Relation {
    fn of(token: &Token) -> Option<Self> {
        let Token::Symbol(symbol) = token else {
            return None;
        };
        match *symbol {
            ":" => Some(Self::Has),
            "=" => Some(Self::Equal),
            "!=" => Some(Self::Unequal),
            "<" => Some(Self::Less),
            "<=" => Some(Self::LessOrEqual),
            ">" => Some(Self::Greater),
            ">=" => Some(Self::GreaterOrEqual),
            _ => None,
        }
    }
}

fn is_of_word(it: char) -> bool {
    it.is_alphanumeric() || "_-.*/+@".contains(it)
}

#[cfg(test)]
mod tests;
