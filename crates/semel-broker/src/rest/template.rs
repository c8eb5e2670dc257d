//! Paths, as in `/v2/{parent=projects/*/locations/*}/queues:verb`.

use std::borrow::Cow;
use std::ops::Range;

/// A path with variables.
#[derive(Debug)]
pub(crate) struct Template {
    /// What each part is; nothing if it may be anything.
    parts: Vec<Option<String>>,
    verb: Option<String>,
    /// The field of each variable, and the parts that it spans.
    variables: Vec<(String, Range<usize>)>,
}

/// A request's path, taken apart.
#[derive(Debug)]
pub(crate) struct Path<'a> {
    parts: Vec<&'a str>,
    verb: Option<&'a str>,
}

// === impl Template ===

impl Template {
    /// Reads a template of one of our tables.
    pub(crate) fn new(text: &str) -> Self {
        let mut template = Self {
            parts: Vec::new(),
            verb: None,
            variables: Vec::new(),
        };
        let mut left = text;
        while let Some(rest) = left.strip_prefix('/') {
            left = match rest.strip_prefix('{') {
                Some(rest) => {
                    let (variable, rest) = rest.split_once('}').expect("braces are closed");
                    template.add_variable(variable);
                    rest
                }
                None => {
                    let end = rest.find(['/', ':']).unwrap_or(rest.len());
                    let (literal, rest) = rest.split_at(end);
                    template.parts.push(Some(literal.into()));
                    rest
                }
            };
        }
        template.verb = left.strip_prefix(':').map(Into::into);
        template
    }

    fn add_variable(&mut self, text: &str) {
        let (field, pattern) = text.split_once('=').unwrap_or((text, "*"));
        let first = self.parts.len();
        let parts = pattern.split('/');
        self.parts
            .extend(parts.map(|part| (part != "*").then(|| part.into())));
        self.variables.push((field.into(), first..self.parts.len()));
    }

    /// The fields of its variables.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(field, _)| &**field)
    }

    /// Whether a path is of this form.
    pub(crate) fn matches(&self, path: &Path<'_>) -> bool {
        path.verb == self.verb.as_deref()
            && path.parts.len() == self.parts.len()
            && self.parts.iter().zip(&path.parts).all(|it| match it {
                (Some(literal), part) => literal == part,
                (None, part) => !part.is_empty(),
            })
    }

    /// The values of its variables in a path that matches.
    pub(crate) fn values(&self, path: &Path<'_>) -> Vec<String> {
        let value = |(_, span): &(String, Range<usize>)| {
            let parts = path.parts.get(span.clone()).unwrap_or_default().iter();
            parts
                .map(|part| decoded(part))
                .collect::<Vec<_>>()
                .join("/")
        };
        self.variables.iter().map(value).collect()
    }
}

// === impl Path ===

impl<'a> Path<'a> {
    pub(crate) fn new(path: &'a str) -> Self {
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut parts: Vec<_> = path.split('/').collect();
        let mut verb = None;
        if let Some(last) = parts.last_mut()
            && let Some((before, after)) = last.rsplit_once(':')
        {
            (*last, verb) = (before, Some(after));
        }
        Self { parts, verb }
    }
}

/// A part without its percent signs. A slash in disguise stays in disguise.
fn decoded(part: &str) -> Cow<'_, str> {
    if !part.contains('%') {
        return Cow::Borrowed(part);
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut left = part.as_bytes();
    while let Some((&first, rest)) = left.split_first() {
        let byte = rest.get(..2).filter(|_| first == b'%').and_then(hex);
        match byte {
            Some(byte) if byte != b'/' => {
                bytes.push(byte);
                left = rest.get(2..).unwrap_or_default();
            }
            Some(_) | None => {
                bytes.push(first);
                left = rest;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    // A sign would be read as a part of the number.
    if !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, path: &str) -> Option<Vec<String>> {
        let (template, path) = (Template::new(template), Path::new(path));
        template.matches(&path).then(|| template.values(&path))
    }

    #[test]
    fn variables_span_parts() {
        let template = "/v2/{queue.name=projects/*/queues/*}/tasks/{id}:buffer";
        let found = values(template, "/v2/projects/p/queues/q/tasks/7:buffer").unwrap();
        assert_eq!(found, ["projects/p/queues/q", "7"]);
        for other in [
            "/v2/projects/p/queues/q/tasks/7",
            "/v2/projects/p/queues/q/tasks/7:run",
            "/v2/projects/p/queues//tasks/7:buffer",
            "/v2/projects/p/queues/q/tasks:buffer",
            "/v1/projects/p/queues/q/tasks/7:buffer",
            "/v2/projects/p/queues/q/tasks/7/:buffer",
        ] {
            assert_eq!(values(template, other), None, "{other}");
        }
    }

    #[test]
    fn a_project_may_have_a_colon_and_a_name_percent_signs() {
        let template = "/v1/{topic=projects/*/topics/*}:publish";
        let found = values(
            template,
            "/v1/projects/a.com:p/topics/a%7Eb%2Fc%zz%+7%:publish",
        );
        assert_eq!(found.unwrap(), ["projects/a.com:p/topics/a~b%2Fc%zz%+7%"]);
    }
}
