//! TLS as Semel speaks it: rustls with ring, versions 1.2 and 1.3, certificates from PEM files.
//!
//! A store or the gate says what is checked ([`Verify`]) and whom it believes ([`Roots`]), and gets a
//! configuration of rustls. When a handshake fails, [`HandshakeError`] says which check failed, for which
//! host, and which setting to change. Nothing here opens a socket.

mod client;
mod server;
mod files;
mod failure;

pub use client::{Roots, Verify, client_config};
pub use failure::{HandshakeError, Remedies, alert, explain, find, find_cause, is_out_of_time};
pub use files::{FileError, IdentityFiles};
pub use server::{Alpn, ServerIdentity};
