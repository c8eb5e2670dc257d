//! A progress bar on standard error, when somebody looks.

use crate::out::to_stderr;
use semel_prove::Progress;
use std::io::{IsTerminal, stderr};
use std::sync::Mutex;

const WIDTH: usize = 24;

/// What is drawn over and over.
pub(super) struct Bar {
    watched: bool,
    position: Mutex<Position>,
}

#[derive(Default)]
struct Position {
    number: usize,
    of: usize,
    doing: String,
}

// === impl Bar ===

impl Bar {
    pub(super) fn begin() -> Self {
        Self {
            watched: stderr().is_terminal(),
            position: Mutex::default(),
        }
    }

    pub(super) fn show(&self, progress: &Progress) {
        let mut position = self.position.lock().expect("nobody panics holding it");
        match progress {
            Progress::Starting => position.doing = "starting".into(),
            Progress::Began { attack, number, of } => {
                (position.number, position.of) = (*number, *of);
                position.doing = attack.to_string();
            }
            Progress::Tried { attack, trial } => {
                position.doing = format!("{attack}, trial {trial}")
            }
            Progress::Ended(_) => {}
        }
        if self.watched {
            let done = (WIDTH * position.number.saturating_sub(1)) / position.of.max(1);
            let (full, empty) = ("#".repeat(done), "-".repeat(WIDTH - done));
            draw(&format!("[{full}{empty}] {}", position.doing));
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
    to_stderr(&format!("\r\x1b[2K{line}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_prove::Attack;

    #[test]
    fn attacks_have_the_names_of_the_report() {
        let bar = Bar {
            watched: false,
            position: Mutex::default(),
        };
        let attack = Attack::AtOnce;
        bar.show(&Progress::Tried { attack, trial: 2 });
        assert_eq!(bar.position.lock().unwrap().doing, "at-once, trial 2");
        bar.show(&Progress::Began {
            attack,
            number: 2,
            of: 13,
        });
        assert_eq!(bar.position.lock().unwrap().doing, "at-once");
    }
}
