//! The edges of a delivery: its path, its headers, its host, and the way to handlers over HTTP/2.

mod paths;
mod spellings;
mod headers;
mod overrides;
mod panics;
mod head;
mod cookies;
mod trailers;
mod wire;
mod h2c;
mod http2_handler;
mod answers;
mod cors;
