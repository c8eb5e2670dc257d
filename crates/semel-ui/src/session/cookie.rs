//! The page's cookie.

use http::header::{COOKIE, HeaderMap, HeaderValue};

/// What a browser sends back under this name. There may be several: one for each path.
pub(super) fn given<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    pairs.filter_map(move |pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// For the browser to keep, away from scripts and from other sites. It has no path: the browser then takes the
/// directory of the sign-in page, prefix and all.
pub(super) fn set(name: &str, value: &str, is_https: bool) -> HeaderValue {
    line(name, value, "", is_https)
}

/// For the browser to forget.
pub(super) fn clear(name: &str, is_https: bool) -> HeaderValue {
    line(name, "", "; Max-Age=0", is_https)
}

fn line(name: &str, value: &str, age: &str, is_https: bool) -> HeaderValue {
    let secure = if is_https { "; Secure" } else { "" };
    let line = format!("{name}={value}{age}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(line).expect("letters, digits and points")
}
