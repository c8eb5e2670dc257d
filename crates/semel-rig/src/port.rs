//! Choosing a port nobody listens on.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below Linux's range for outgoing connections (32768 and up). A port from that range can be taken by any client
/// while its server is down; a client reconnecting in a loop can even connect to itself.
const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

/// Spreads processes that look for ports at the same moment. Prime, so that neighbours do not follow each other.
const STRIDE: u32 = 127;

/// Ports this process has already looked at.
static LOOKED_AT: AtomicU32 = AtomicU32::new(0);

/// A port of 127.0.0.1 on which nobody listens, never the same twice in one process until all were given.
///
/// # Errors
/// When every port of the range is taken.
pub fn free_port() -> io::Result<u16> {
    for _ in 0..COUNT {
        let port = next_candidate();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other(format!(
        "no port of 127.0.0.1 is free between {FIRST} and {}: end some servers, then retry",
        FIRST + COUNT
    )))
}

fn next_candidate() -> u16 {
    let own_start = (std::process::id() % COUNT) * STRIDE;
    let looked_at = LOOKED_AT.fetch_add(1, Ordering::Relaxed) % COUNT;
    let port = FIRST + (own_start + looked_at) % COUNT;
    u16::try_from(port).expect("FIRST + COUNT is below 65536")
}
