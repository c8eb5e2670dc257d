//! What the gate writes down, as lines of JSON. The subscriber is the process's, so all tests share it.

use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Mutex, Once};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Appends to [`LINES`].
struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins to listen, to everything that Semel itself says.
pub(crate) fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_env_filter("off,semel=trace,delivery=trace,audit=trace")
            .with_writer(|| Lines)
            .init();
    });
}

/// All lines so far.
pub(crate) fn text() -> String {
    String::from_utf8(LINES.lock().unwrap().clone()).unwrap()
}

/// All lines whose member is this text.
pub(crate) fn lines(member: &str, text: &str) -> Vec<Value> {
    self::text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("one line is one JSON object"))
        .filter(|line| line[member] == text)
        .collect()
}

/// A member of each of these lines.
pub(crate) fn all(lines: &[Value], member: &str) -> Vec<Value> {
    lines.iter().map(|line| line[member].clone()).collect()
}

/// Those of them of this target.
pub(crate) fn heard(target: &str, member: &str, text: &str) -> Vec<Value> {
    let mut lines = lines(member, text);
    lines.retain(|line| line["target"] == target);
    lines
}
