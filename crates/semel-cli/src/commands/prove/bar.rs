//! A progress bar on standard error, when somebody looks.

use semel_prove::Progress;
use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;

const WIDTH: usize = 24;

/// What is drawn over and over.
pub(super) struct Bar {
    watched: bool,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    number: usize,
    of: usize,
    doing: String,
}

// === impl Bar ===

impl Bar {
    pub(super) fn begin() -> Self {
        Self {
            watched: stderr().is_terminal(),
            place: Mutex::default(),
        }
    }

    pub(super) fn show(&self, progress: &Progress) {
        let mut place = self.place.lock().expect("nobody panics holding it");
        match progress {
            Progress::Starting => place.doing = "starting".into(),
            Progress::Began { attack, number, of } => {
                (place.number, place.of) = (*number, *of);
                place.doing = format!("{attack:?}");
            }
            Progress::Tried { attack, trial } => place.doing = format!("{attack:?}, trial {trial}"),
            Progress::Ended(_) => {}
        }
        if self.watched {
            let done = (WIDTH * place.number.saturating_sub(1)) / place.of.max(1);
            let (full, empty) = ("#".repeat(done), "-".repeat(WIDTH - done));
            draw(&format!("[{full}{empty}] {}", place.doing));
        }
    }

    pub(super) fn end(&self) {
        if self.watched {
            draw("");
        }
    }
}

/// In place of what was drawn before.
fn draw(line: &str) {
    let mut stderr = stderr();
    // Nobody is told when nobody can be.
    drop(write!(stderr, "\r\x1b[2K{line}").and_then(|()| stderr.flush()));
}
