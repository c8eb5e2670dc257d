//! Normalizing a request: what is refused of a request before anybody asks what it means, and the one form in which it
//! is taken. Later on there is one host, in the header `Host`, and one spelling of the path.

use crate::headers::{HeaderRules, has};
use crate::path::{AmbiguousPath, ParsedPath};
use http::header::{COOKIE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Method, Uri, Version};

/// Why a request is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// A tunnel is not a delivery.
    Connect,
    /// `post`: to some handlers that is a POST.
    MethodCase,
    /// It asks its handler to read another method than the gate does.
    MethodOverride(&'static str),
    /// It asks its handler to read another path than the gate does.
    PathOverride(&'static str),
    /// A body in a form that is not read here.
    TransferEncoding,
    /// No `Host`, more than one, one that is not a host, or not the one of the target.
    Host(&'static str),
    /// `Connection` names a header that somebody behind relies on.
    Misdeclared(HeaderName),
    /// Gate and handler could read two paths.
    Path(AmbiguousPath),
}

/// Headers by which frameworks let a request pretend to have another method.
pub(crate) const METHOD_OVERRIDES: [&str; 3] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

/// Headers by which frameworks let a request pretend to have another path.
pub(crate) const PATH_OVERRIDES: [&str; 3] = ["x-original-url", "x-rewrite-url", "x-original-uri"];

/// Takes a request in: afterwards its URI is path and query in canonical form, and its host is in `Host`.
/// `None` is the path of `OPTIONS *`, which is nobody's.
pub(crate) fn normalize(
    parts: &mut Parts,
    header_rules: &HeaderRules,
) -> Result<Option<ParsedPath>, Rejection> {
    method(parts)?;
    overrides(&parts.headers)?;
    transfer_encoding(parts)?;
    host(parts)?;
    cookie(parts);
    if let Some(name) = header_rules.misdeclared(&parts.headers) {
        return Err(Rejection::Misdeclared(name));
    }
    if !parts.uri.path().starts_with('/') {
        return Ok(None);
    }
    let path = ParsedPath::of(parts.uri.path()).map_err(Rejection::Path)?;
    parts.uri = target(&path.canonical, parts.uri.query()).map_err(Rejection::Path)?;
    Ok(Some(path))
}

fn method(parts: &Parts) -> Result<(), Rejection> {
    if parts.method == Method::CONNECT {
        return Err(Rejection::Connect);
    }
    if parts
        .method
        .as_str()
        .bytes()
        .any(|byte| byte.is_ascii_lowercase())
    {
        return Err(Rejection::MethodCase);
    }
    Ok(())
}

/// A route is chosen, and a key made, by the method and path of the request line: a handler that goes by
/// others would run what was not protected, or protected as other work.
fn overrides(headers: &HeaderMap) -> Result<(), Rejection> {
    let among = |name: &&str| has(headers, name);
    if let Some(name) = METHOD_OVERRIDES.into_iter().find(among) {
        return Err(Rejection::MethodOverride(name));
    }
    match PATH_OVERRIDES.into_iter().find(among) {
        Some(name) => Err(Rejection::PathOverride(name)),
        None => Ok(()),
    }
}

/// Methods that only look (RFC 9110, 9.2.1).
pub(crate) fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Chunks are taken apart here, and nothing else is: other codings would be lost on the way.
fn transfer_encoding(parts: &Parts) -> Result<(), Rejection> {
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        (Some(_), _) => Err(Rejection::TransferEncoding),
    }
}

fn host(parts: &mut Parts) -> Result<(), Rejection> {
    let named = parts.uri.authority().cloned();
    let mut hosts = parts.headers.get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(Rejection::Host("it has more than one Host"));
    }
    match (host, named) {
        (Some(host), named) => agree(host, named.as_ref()),
        // HTTP/2 has a pseudo-header for it; HTTP/1.0 did not know it yet.
        (None, Some(named)) if parts.version != Version::HTTP_11 => {
            let value = HeaderValue::from_str(named.as_str());
            let value = value.map_err(|_| Rejection::Host(NOT_A_HOST))?;
            agree(&value, None)?;
            parts.headers.insert(HOST, value);
            Ok(())
        }
        (None, None) if parts.version < Version::HTTP_11 => Ok(()),
        (None, Some(_) | None) => Err(Rejection::Host("it has no Host")),
    }
}

const NOT_A_HOST: &str = "its Host is not a host with or without a port";

fn agree(host: &HeaderValue, named: Option<&Authority>) -> Result<(), Rejection> {
    let read = Authority::try_from(host.as_bytes())
        .ok()
        .filter(|host| !host.as_str().contains('@'))
        .ok_or(Rejection::Host(NOT_A_HOST))?;
    match named {
        Some(named) if *named != read => Err(Rejection::Host(
            "its Host is not the host that its target names",
        )),
        Some(_) | None => Ok(()),
    }
}

/// HTTP/2 may send a cookie in pieces, each in a header of its own; behind here there is one (RFC 9113,
/// 8.2.3).
fn cookie(parts: &mut Parts) {
    if parts.version != Version::HTTP_2 {
        return;
    }
    let pieces: Vec<_> = parts.headers.get_all(COOKIE).iter().collect();
    if pieces.len() < 2 {
        return;
    }
    let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
    let whole = HeaderValue::from_bytes(&pieces.join(&b"; "[..]));
    let mut whole = whole.expect("header values with `; ` between them are one");
    whole.set_sensitive(true);
    parts.headers.insert(COOKIE, whole);
}

fn target(path: &str, query: Option<&str>) -> Result<Uri, AmbiguousPath> {
    let whole = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let whole = PathAndQuery::try_from(whole).map_err(|_| AmbiguousPath::TooLong)?;
    Ok(Uri::from(whole))
}
