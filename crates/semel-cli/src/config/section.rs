//! A section: the gate's own fields, or one route's. It reads what the table of fields names,
//! and collects what is wrong.

use super::fields::{Fallback, Field, Level};
use super::mistakes::{Location, Mistakes};
use super::tree::{self, Member, Node, Value};
use super::values::{Read, Wrong, list};

/// One section while it is read.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    level: Level,
    members: &'a [Member],
    location: Location,
    route: Option<String>,
    mistakes: &'a mut Mistakes,
}

/// Two words are close when so few letters differ.
const CLOSE_LETTERS_MAX: usize = 2;

// === impl Section ===

impl<'a> Section<'a> {
    /// Opens a section and refuses every field that nobody knows.
    pub(crate) fn open(
        level: Level,
        members: &'a [Member],
        location: Location,
        route: Option<String>,
        mistakes: &'a mut Mistakes,
    ) -> Self {
        let mut section = Self {
            level,
            members,
            location,
            route,
            mistakes,
        };
        for member in members {
            if level.field(&member.name).is_none() {
                section.add(member.location, unknown(level, &member.name));
            }
        }
        section
    }

    /// Whether somebody wrote it.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    /// Whether somebody wrote a list with nothing in it.
    pub(crate) fn is_empty_list(&self, name: &str) -> bool {
        let node = self.member(name).map(|member| &member.value.node);
        matches!(node, Some(Node::List(items)) if items.is_empty())
    }

    /// The value that was given; otherwise none, and a mistake where the field is needed.
    pub(crate) fn take<T>(&mut self, name: &str, read: impl Fn(&Value) -> Read<T>) -> Option<T> {
        let field = self.field(name);
        let Some(member) = self.member(name) else {
            if let Fallback::Required = field.fallback() {
                let says = format!("`{name}` is missing: write {name} = {}", field.example());
                self.add(self.location, says);
            }
            return None;
        };
        match read(&member.value) {
            Ok(value) => Some(value),
            Err(wrongs) => {
                for wrong in wrongs {
                    self.add(wrong.location(), sentence(field, &wrong));
                }
                None
            }
        }
    }

    /// How many mistakes were found so far.
    pub(crate) fn mistakes_count(&self) -> usize {
        self.mistakes.iter().count()
    }

    /// The value that was given, or the one of the table of fields.
    pub(crate) fn value<T>(&mut self, name: &str, read: impl Fn(&Value) -> Read<T>) -> T {
        let default = default(self.field(name));
        self.take(name, &read)
            .unwrap_or_else(|| read(&default).expect("the defaults of the table are well formed"))
    }

    /// The list that was given, or an empty one.
    pub(crate) fn list<T>(&mut self, name: &str, item: impl Fn(&Value) -> Read<T>) -> Vec<T> {
        self.take(name, list(item)).unwrap_or_default()
    }

    /// Says what is wrong with a field that could be read.
    pub(crate) fn wrong(&mut self, name: &str, says: impl Into<String>) {
        let location = self
            .member(name)
            .map_or(self.location, |member| member.value.location);
        self.add(location, says);
    }

    /// Says so where something is wrong.
    pub(crate) fn refuse_if(&mut self, wrong: bool, name: &str, says: impl Into<String>) {
        if wrong {
            self.wrong(name, says);
        }
    }

    fn add(&mut self, location: Location, says: impl Into<String>) {
        self.mistakes.add(location, self.route.as_deref(), says);
    }

    fn member(&self, name: &str) -> Option<&'a Member> {
        self.members.iter().find(|member| member.name == name)
    }

    fn field(&self, name: &str) -> &'static Field {
        self.level
            .field(name)
            .expect("only fields of the table are asked for")
    }
}

fn sentence(field: &Field, wrong: &Wrong) -> String {
    let Field { name, value, .. } = field;
    match wrong {
        Wrong::Kind(_, found) => format!("`{name}` must be {value}; this is {found}"),
        Wrong::Says(_, says) => format!("`{name}`: {says}"),
    }
}

/// The default as the table writes it.
fn default(field: &Field) -> Value {
    let Fallback::Value(toml) = field.fallback() else {
        unreachable!("only fields with one default are asked for their value");
    };
    let members = tree::parse(&format!("default = {toml}"));
    let member = members.ok().and_then(|mut members| members.pop());
    member.expect("the defaults of the table are TOML").value
}

fn unknown(level: Level, name: &str) -> String {
    let refused = format!("`{name}` is not a field of {}", level.words());
    if level.other().field(name).is_some() {
        return format!("{refused}: {}", level.move_it());
    }
    let close = |field: &&Field| distance(&field.name, name) <= CLOSE_LETTERS_MAX;
    let nearest = level
        .fields()
        .iter()
        .filter(close)
        .min_by_key(|field| distance(&field.name, name));
    match nearest {
        Some(field) => format!("{refused}: did you mean `{}`?", field.name),
        None => format!("{refused}: docs/config.md lists them all"),
    }
}

/// How many letters must be changed, added or taken away (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (number, letter) in (1..).zip(one.chars()) {
        let mut left = number;
        let mut next = vec![left];
        for (above, (diagonal, facing)) in row.iter().skip(1).zip(row.iter().zip(other.chars())) {
            left = (left + 1)
                .min(above + 1)
                .min(diagonal + usize::from(letter != facing));
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_letters() {
        assert_eq!(distance("timeout", "timeout"), 0);
        assert_eq!(distance("timeout", "timout"), 1);
        assert_eq!(distance("key", "kye"), 2);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("retention", "horizon"), 7);
    }
}
