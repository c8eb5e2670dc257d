//! What answers show of each rule. Pure.

use super::{Answer, Honours, Rule, is_success, same};
use Honours::{CannotTell, No, NotRun, Partly, Yes};
use std::collections::BTreeMap;

type Answered = Result<Answer, String>;

/// What is known of a service after its first requests.
#[derive(Debug)]
pub(super) struct Seen {
    /// The answer to the first request under the first key.
    pub(super) first: Answer,
    /// Whether the same request under another key is answered differently: then two runs can be told from one.
    pub(super) tells: bool,
    /// Whether a repeat says of itself that it is one.
    pub(super) marks: bool,
}

// === impl Seen ===

impl Seen {
    pub(super) fn same_answer(&self, again: &Answered) -> Rule {
        let demands = "the same key and payload again: the answer of the first";
        let (honours, seen) = match again {
            Err(why) => (No, format!("the repeat was not answered: {why}")),
            Ok(again) if again.status != self.first.status => {
                let (first, later) = (self.first.status, again.status);
                (No, format!("answered {first} first and {later} later"))
            }
            Ok(again) if again.body != self.first.body => (
                No,
                format!("answered {} twice, with different bodies", again.status),
            ),
            Ok(_) if self.marks => (Yes, "the same answer, marked as a replay".to_owned()),
            Ok(_) if self.tells => (
                Yes,
                "the same answer; a new key gets another one".to_owned(),
            ),
            Ok(_) => (
                CannotTell,
                "a new key gets the same answer, too: it may have run again".to_owned(),
            ),
        };
        rule("same-answer", demands, honours, seen)
    }

    pub(super) fn replay_marked(&self, again: &Answered) -> Rule {
        let demands = "a replay says that it is one";
        let header = again
            .as_ref()
            .ok()
            .and_then(|again| again.replay_header.clone());
        let (honours, seen) = match header {
            Some(header) if self.marks => (Yes, format!("`{header}`")),
            Some(header) => (No, format!("`{header}`, also at the first request")),
            None => (
                Partly,
                "no header says so; the draft leaves it open".to_owned(),
            ),
        };
        rule("replay-marked", demands, honours, seen)
    }

    pub(super) fn concurrent(&self, answers: &[Answered]) -> Rule {
        let demands = "the same key again while the first runs: 409, or the answer of the first";
        let answered: Vec<&Answer> = answers.iter().flatten().collect();
        let done: Vec<&Answer> = answered
            .iter()
            .copied()
            .filter(|it| is_success(it))
            .collect();
        let differ = done
            .iter()
            .any(|one| done.iter().any(|other| !same(one, other)));
        let others = answered
            .iter()
            .filter(|it| !is_success(it) && it.status != 409)
            .count();
        let refused = answered.iter().filter(|it| it.status == 409).count();
        let said = statuses(answers);
        let (honours, seen) = if done.is_empty() {
            (No, format!("none succeeded: {said}"))
        } else if differ {
            (No, format!("more than one ran, by their answers: {said}"))
        } else if others > 0 || answered.len() < answers.len() {
            (Partly, format!("some were refused in another way: {said}"))
        } else if done.len() == 1 && refused > 0 {
            (Yes, said)
        } else if self.tells || done.iter().any(|it| it.replay_header.is_some()) {
            (Yes, format!("all successes have the same answer: {said}"))
        } else {
            (
                CannotTell,
                format!("all answers are alike, and so are those to other keys: {said}"),
            )
        };
        rule("concurrent", demands, honours, seen)
    }

    pub(super) fn per_caller(&self, answer: Option<Answered>) -> Rule {
        let demands = "the same key of another caller: other work";
        let (honours, seen) = match answer {
            None => (NotRun, "--other-header says who else may ask".to_owned()),
            Some(Err(why)) => (CannotTell, format!("not answered: {why}")),
            Some(Ok(answer)) if answer.replay_header.is_some() && self.marks => (
                No,
                "the other caller got the first one's answer, marked as a replay".to_owned(),
            ),
            Some(Ok(answer)) if !is_success(&answer) => (
                No,
                format!("the other caller was answered {}", answer.status),
            ),
            Some(Ok(answer)) if self.marks || self.tells && !same(&answer, &self.first) => {
                (Yes, format!("answered {} on its own", answer.status))
            }
            Some(Ok(_)) if self.tells => {
                (No, "the other caller got the first one's answer".to_owned())
            }
            Some(Ok(_)) => (CannotTell, "all answers are alike".to_owned()),
        };
        rule("key-per-caller", demands, honours, seen)
    }
}

pub(super) fn other_payload(answer: Option<Answered>) -> Rule {
    let demands = "the same key with another payload: 422";
    let (honours, seen) = match answer {
        None => (
            NotRun,
            "neither {id} in the body nor --other-body makes another payload".to_owned(),
        ),
        Some(Err(why)) => (No, format!("not answered: {why}")),
        Some(Ok(answer)) => match answer.status {
            422 => (Yes, "422".to_owned()),
            status @ 400..=499 => (Partly, format!("refused, with {status}")),
            status => (No, format!("answered {status}")),
        },
    };
    rule("other-payload", demands, honours, seen)
}

pub(super) fn key_missing(answer: &Answered) -> Rule {
    let demands = "no key where one is needed: 400";
    let (honours, seen) = match answer {
        Err(why) => (CannotTell, format!("not answered: {why}")),
        Ok(answer) => match answer.status {
            400 => (Yes, "400".to_owned()),
            200..=299 => (
                Partly,
                format!("answered {}: a key is optional", answer.status),
            ),
            status @ 401..=499 => (Partly, format!("refused, with {status}")),
            status => (No, format!("answered {status}")),
        },
    };
    rule("key-missing", demands, honours, seen)
}

fn rule(name: &'static str, demands: &'static str, honours: Honours, seen: String) -> Rule {
    Rule {
        name,
        demands,
        honours,
        seen,
    }
}

/// As `1 × 201, 7 × 409`.
fn statuses(answers: &[Answered]) -> String {
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for answer in answers {
        let said = answer
            .as_ref()
            .map_or("no answer".to_owned(), |it| it.status.to_string());
        *times.entry(said).or_default() += 1;
    }
    let said = times
        .iter()
        .map(|(said, times)| format!("{times} × {said}"));
    said.collect::<Vec<_>>().join(", ")
}
