//! What the gate writes down, as lines of JSON.

use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, OnceLock};
use tracing_subscriber::fmt::MakeWriter;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static LISTENING: OnceLock<()> = OnceLock::new();

struct Paper;
struct Sheet(MutexGuard<'static, Vec<u8>>);

impl Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Paper {
    type Writer = Sheet;

    fn make_writer(&self) -> Sheet {
        Sheet(LINES.lock().unwrap())
    }
}

/// Begins to listen; every test of this process shares what is heard.
pub(crate) fn listen() {
    LISTENING.get_or_init(|| {
        tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(|| Paper.make_writer())
            .init();
    });
}

/// All lines of this target whose member is this text.
pub(crate) fn heard(target: &str, member: &str, text: &str) -> Vec<Value> {
    let lines = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["target"] == target && line[member] == text)
        .collect()
}
