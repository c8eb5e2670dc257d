//! Names of topics, subscriptions and snapshots, and pages of them.

use super::errors::{bad_name, invalid};
use std::collections::BTreeMap;
use std::ops::Bound;
use tonic::Status;

const ID_LETTERS_MIN: usize = 3;
const ID_LETTERS_MAX: usize = 255;

const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 1000;

/// What a subscription says of a topic that is gone.
pub(super) const DELETED_TOPIC: &str = "_deleted-topic_";

/// What a topic says of a schema that is gone.
pub(super) const DELETED_SCHEMA: &str = "_deleted-schema_";

/// What a topic says of a first or last revision that is gone.
pub(super) const DELETED_REVISION: &str = "_deleted-schema-revision_";

/// The last part of a name.
pub(super) fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The project's id in a full name.
pub(super) fn project(name: &str) -> &str {
    name.split('/').nth(1).unwrap_or_default()
}

/// Whether a name is one of the `kind`, a plural like `topics`.
pub(super) fn check(field: &str, name: &str, kind: &str) -> Result<(), Status> {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        ["projects", project, found, id] if *found == kind && !project.is_empty() && is_id(id) => {
            Ok(())
        }
        _ => Err(bad_name(field, name)),
    }
}

fn is_id(id: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "-_.~+%".contains(it);
    (ID_LETTERS_MIN..=ID_LETTERS_MAX).contains(&id.len())
        && id.starts_with(|first: char| first.is_ascii_alphabetic())
        && id.chars().all(is_letter)
        && !id.starts_with("goog")
}

/// What all names in a project begin with.
pub(super) fn in_project(project: &str) -> Result<String, Status> {
    match project.split_once('/') {
        Some(("projects", id)) if !id.is_empty() && !id.contains('/') => Ok(format!("{project}/")),
        Some(_) | None => Err(bad_name("project", project)),
    }
}

/// A page of the names that begin with `prefix` and are wanted, in their order, and the token of the next one.
pub(super) fn page<V, T>(
    all: &BTreeMap<String, V>,
    prefix: &str,
    size: i32,
    token: &str,
    mut wanted: impl FnMut(&V) -> Option<T>,
) -> Result<(Vec<T>, String), Status> {
    let size = match usize::try_from(size) {
        Ok(0) => PAGE_DEFAULT,
        Ok(size) => size.min(PAGE_MAX),
        Err(_) => return Err(invalid("page_size", size, "it is not negative")),
    };
    if !token.is_empty() && !token.starts_with(prefix) {
        return Err(invalid("page_token", token, "it is not one of this list"));
    }
    let begin = match token {
        "" => Bound::Included(prefix),
        token => Bound::Excluded(token),
    };
    let names = all
        .range::<str, _>((begin, Bound::Unbounded))
        .take_while(|(name, _)| name.starts_with(prefix));
    let mut items = Vec::new();
    let mut last = "";
    for (name, value) in names {
        let Some(item) = wanted(value) else {
            continue;
        };
        if items.len() == size {
            return Ok((items, last.to_owned()));
        }
        items.push(item);
        last = name;
    }
    Ok((items, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_at() {
        for (name, good) in [
            ("projects/p/topics/orders", true),
            ("projects/p/topics/a-_.~+%1", true),
            ("projects/p/topics/ab", false),
            ("projects/p/topics/1abc", false),
            ("projects/p/topics/google", false),
            ("projects/p/topics/a b c", false),
            ("projects/p/subscriptions/abc", false),
            ("projects//topics/abc", false),
            ("abc", false),
        ] {
            assert_eq!(check("name", name, "topics").is_ok(), good, "{name}");
        }
        let long = format!("projects/p/topics/{}", "a".repeat(256));
        let refused = check("name", &long, "topics").unwrap_err();
        assert!(
            refused
                .message()
                .starts_with("Invalid resource name given (name=projects/p/")
        );
    }

    #[test]
    fn pages_follow_one_another() {
        let all: BTreeMap<String, u32> = (0..5)
            .map(|n| (format!("projects/p/topics/t{n}"), n))
            .chain([("projects/pp/topics/other".to_owned(), 9)])
            .collect();
        let odd_too = |n: &u32| (*n != 2).then_some(*n);
        let of = |token: &str| page(&all, "projects/p/", 2, token, odd_too).unwrap();
        let (first, next) = of("");
        assert_eq!(first, [0, 1]);
        let (second, next) = of(&next);
        assert_eq!(second, [3, 4]);
        assert_eq!(next, "");
        assert!(page(&all, "projects/p/", -1, "", odd_too).is_err());
        assert!(page(&all, "projects/p/", 1, "projects/q/x", odd_too).is_err());
    }
}
