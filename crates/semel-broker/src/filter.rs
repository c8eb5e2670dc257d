//! Filter expressions: terms joined by AND, OR, NOT and parentheses. What a term is belongs to each service.

mod tokens;

pub(crate) use tokens::{Syntax, Token, Tokens};

use std::fmt;

/// How deep parentheses may go.
const DEPTH_MAX: usize = 256;

/// A filter that was parsed.
#[derive(Debug)]
pub(crate) enum Filter<T> {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Term(T),
}

/// The terms of a service's filter language.
pub(crate) trait Dialect: Sized {
    const SYNTAX: Syntax;

    /// Parses one term.
    fn term(tokens: &mut Tokens) -> Result<Self, FilterError>;
}

/// Why a text is not a filter.
#[derive(Debug)]
pub(crate) enum FilterError {
    Unexpected {
        found: Option<Token>,
        expected: &'static str,
    },
    UnknownCharacter(char),
    UnclosedQuote,
    UnknownEscape,
    /// A term that the service refuses in its own words.
    Term(tonic::Status),
}

// === impl Filter ===

impl<T> Filter<T> {
    /// Whether it holds, when `holds` says so of single terms.
    pub(crate) fn matches(&self, holds: &impl Fn(&T) -> bool) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(holds)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(holds)),
            Self::Not(part) => !part.matches(holds),
            Self::Term(term) => holds(term),
        }
    }
}

/// Parses a filter; nothing for a text without any token.
pub(crate) fn parse<D: Dialect>(text: &str) -> Result<Option<Filter<D>>, FilterError> {
    let mut tokens = Tokens::read(text, &D::SYNTAX)?;
    if tokens.peek().is_none() {
        return Ok(None);
    }
    let filter = all::<D>(&mut tokens, 0)?;
    match tokens.next() {
        None => Ok(Some(filter)),
        found => Err(unexpected(found, "AND, OR or the end")),
    }
}

/// Parts joined by AND; in a loose language also by nothing, or by AND and OR, of which OR binds closer.
fn all<D: Dialect>(tokens: &mut Tokens, depth: usize) -> Result<Filter<D>, FilterError> {
    if depth > DEPTH_MAX {
        return Err(unexpected(tokens.next(), "the end"));
    }
    let loose = D::SYNTAX.loose;
    let first = any::<D>(tokens, depth, true)?;
    let has_or = matches!(&first, Filter::Any(parts) if parts.len() > 1);
    let mut parts = vec![first];
    if has_or && !loose {
        return Ok(Filter::All(parts));
    }
    loop {
        let ends = tokens.peek().is_none_or(|token| token.is(")"));
        if ends || (!tokens.takes("AND") && !loose) {
            return Ok(Filter::All(parts));
        }
        parts.push(any::<D>(tokens, depth, loose)?);
    }
}

fn any<D: Dialect>(
    tokens: &mut Tokens,
    depth: usize,
    may_or: bool,
) -> Result<Filter<D>, FilterError> {
    let mut parts = vec![negated::<D>(tokens, depth)?];
    while may_or && tokens.takes("OR") {
        parts.push(negated::<D>(tokens, depth)?);
    }
    Ok(Filter::Any(parts))
}

fn negated<D: Dialect>(tokens: &mut Tokens, depth: usize) -> Result<Filter<D>, FilterError> {
    if tokens.takes("-") || tokens.takes("NOT") {
        let inner = match D::SYNTAX.loose {
            true => operand::<D>(tokens, depth)?,
            false => negated::<D>(tokens, depth)?,
        };
        return Ok(Filter::Not(Box::new(inner)));
    }
    operand::<D>(tokens, depth)
}

fn operand<D: Dialect>(tokens: &mut Tokens, depth: usize) -> Result<Filter<D>, FilterError> {
    if tokens.takes("(") {
        let inner = all::<D>(tokens, depth + 1)?;
        tokens.expect(")")?;
        return Ok(inner);
    }
    D::term(tokens).map(Filter::Term)
}

/// The refusal of a token that cannot stand where it stands.
pub(crate) fn unexpected(found: Option<Token>, expected: &'static str) -> FilterError {
    FilterError::Unexpected { found, expected }
}

// === impl FilterError ===

impl FilterError {
    /// Where it went wrong, as Cloud Tasks names it.
    pub(crate) fn token(&self) -> String {
        match self {
            Self::Unexpected {
                found: Some(token), ..
            } => token.text().into(),
            Self::Unexpected { found: None, .. } | Self::UnclosedQuote => "<EOF>".into(),
            Self::UnknownCharacter(character) => character.to_string(),
            Self::UnknownEscape => "\\".into(),
            Self::Term(status) => status.message().into(),
        }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { found, expected } => {
                write!(f, "{expected} is expected before ")?;
                match found {
                    None => f.write_str("the end"),
                    Some(Token::Quoted(text)) => write!(f, "{text:?}"),
                    Some(token) => f.write_str(token.text()),
                }
            }
            Self::UnknownCharacter(character) => write!(f, "{character:?} means nothing in it"),
            Self::UnclosedQuote => f.write_str("a text in it has no closing quote"),
            Self::UnknownEscape => {
                f.write_str("a backslash in it is not followed by what it may be")
            }
            Self::Term(status) => f.write_str(status.message()),
        }
    }
}
