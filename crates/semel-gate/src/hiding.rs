//! What whoever may not see bodies does not see of headers and queries either: their values say as much. The page, its
//! downloads and JSON for those who may only look hide it alike.

use crate::path::PathPattern;
use std::borrow::Cow;

/// Instead of a value that is not shown.
pub(crate) const HIDDEN: &str = "…";

/// The value of a header. What kind of body it was stays.
pub(crate) fn shown_value<'a>(name: &str, value: &'a str, shows: bool) -> &'a str {
    match shows || name.eq_ignore_ascii_case("content-type") {
        true => value,
        false => HIDDEN,
    }
}

/// A path, with its query where that is shown. The segments of a private route's path may name a person: `pattern` is
/// shown instead.
pub(crate) fn shown_path<'a>(
    path: &'a str,
    pattern: Option<&PathPattern>,
    shows: bool,
) -> Cow<'a, str> {
    if let (Some(pattern), false) = (pattern, shows) {
        return pattern.to_string().into();
    }
    match path.split_once('?') {
        Some((path, _)) if !shows => format!("{path}?{HIDDEN}").into(),
        Some(_) | None => path.into(),
    }
}
