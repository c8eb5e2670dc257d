//! Heads: what a request takes before its first byte of body, for as long as it is in hand.

use http::request::Parts;

/// The most headers of an HTTP/1 request, and the most bytes of a head.
pub(crate) const HEADERS_MAX: usize = 100;
pub(crate) const BYTES_MAX: usize = 64 * 1024;

/// What a header takes beside its name and value: as much as HTTP/2 counts for it (RFC 9113, 6.5.2).
const PER_HEADER: usize = 32;

/// What a request takes beside its head: its task, its stream and the request to its handler.
const PER_REQUEST: usize = 2 * 1024;

/// The most that a head takes.
pub(crate) const ROOM_MAX: usize = BYTES_MAX + HEADERS_MAX * PER_HEADER + PER_REQUEST;

/// The bytes that a head takes.
pub(crate) fn room(parts: &Parts) -> usize {
    let target = parts.uri.path_and_query().map_or(0, |it| it.as_str().len());
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + PER_HEADER);
    PER_REQUEST + target + headers.sum::<usize>()
}
