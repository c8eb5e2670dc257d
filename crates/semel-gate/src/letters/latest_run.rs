//! The end of the latest run of a letter's work. A letter is written once and its work may run again, so this is read from the
//! record whenever the letter is shown.

use semel::Outcome;
use semel::protocol::{Record, State};

/// The latest run, as the record of its work tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatestRun {
    state: State,
    /// Its number, from 1; 0 when none has begun.
    number: u32,
    /// The status of its outcome, if it has one.
    status: Option<u16>,
    /// Whether its effect is unknown.
    in_doubt: bool,
}

// === impl LatestRun ===

impl LatestRun {
    pub(crate) fn of(record: &Record) -> Self {
        let is_over = record.state != State::Running;
        let result = record.result.as_ref().filter(|_| is_over);
        Self {
            state: record.state,
            number: record.attempts,
            status: result.and_then(|it| Some(Outcome::decode(it).ok()?.status)),
            in_doubt: is_over && record.in_doubt && record.state.ending().is_none(),
        }
    }

    pub(crate) const fn status(self) -> Option<u16> {
        self.status
    }

    /// The sentence for people.
    pub(crate) fn says(self) -> String {
        let number = self.number;
        let ended = match (self.state, number, self.status) {
            (State::Running, _, _) => return format!("run {number} has begun and recorded no end"),
            (_, 0, _) => "no run has begun".into(),
            (State::Failed, _, Some(status)) => {
                format!("run {number} failed permanently with status {status}")
            }
            (_, _, Some(status)) => format!("run {number} ended with status {status}"),
            (_, _, None) if self.in_doubt => format!("run {number} ended without an answer"),
            (_, 1, None) => "one run ended, and its status is not recorded".into(),
            (_, _, None) => format!("{number} runs ended, and the last status is not recorded"),
        };
        let doubt = if self.in_doubt {
            "; whether it took effect is unknown"
        } else {
            ""
        };
        let parked = if self.state == State::Parked {
            "; an operator must decide"
        } else {
            ""
        };
        format!("{ended}{doubt}{parked}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_what_the_record_knows() {
        let run = |state, number, status, in_doubt| LatestRun {
            state,
            number,
            status,
            in_doubt,
        };
        for (run, sentence) in [
            (
                run(State::Running, 2, None, false),
                "run 2 has begun and recorded no end",
            ),
            (run(State::Waiting, 0, None, false), "no run has begun"),
            (
                run(State::Waiting, 9, Some(500), false),
                "run 9 ended with status 500",
            ),
            (
                run(State::Waiting, 1, Some(504), true),
                "run 1 ended with status 504; whether it took effect is unknown",
            ),
            (
                run(State::Waiting, 2, None, false),
                "2 runs ended, and the last status is not recorded",
            ),
            (
                run(State::Parked, 1, None, true),
                "run 1 ended without an answer; whether it took effect is unknown; an operator must decide",
            ),
            (
                run(State::Parked, 0, None, false),
                "no run has begun; an operator must decide",
            ),
            (
                run(State::Failed, 1, Some(422), false),
                "run 1 failed permanently with status 422",
            ),
        ] {
            assert_eq!(run.says(), sentence);
        }
    }
}
