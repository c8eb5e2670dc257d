//! A dry run: what a redrive of a letter would do now, by looking at its records alone.

use super::{IfUnknown, Plan, Redrive, plan, prepare};
use crate::gate::Gate;
use crate::label::{Description, Label};
use crate::operate::{Operator, Refused};
use http::StatusCode;
use semel::Key;
use semel::clock::Time;
use semel::protocol::{Record, State};
use serde_json::Value;
use std::sync::Arc;

/// What a redrive would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Foreseen {
    /// Its work would run.
    Runs,
    /// Its work would run for another letter of the same job.
    RunsBefore,
    /// Its work has succeeded since: the letter would be closed, and nothing run.
    Closes,
    /// Whether its work took effect is unknown: it would run only if it may run again.
    NeedsRunAgain,
    /// It failed, and its next run is not due yet.
    NotDue,
    /// It is running.
    IsRunning,
    /// Its key is known with other work by now.
    OtherWork,
    /// Its work was delivered again, and is unfinished under the delivery's own key.
    UnderOwnKey,
    /// This gate does not have its route.
    NoRoute,
    /// It is closed by now.
    Gone,
    /// It cannot be read.
    Unreadable,
}

/// What a redrive of one letter would do.
#[derive(Clone, Debug)]
pub(crate) struct Foretold {
    pub(crate) foreseen: Foreseen,
    /// The key that its work runs under, unless the letter cannot be read.
    pub(crate) work: Option<Key>,
    /// What its work is about, in a short line; empty when nobody can say.
    pub(crate) about: String,
}

/// Looks at what a redrive of this letter would do. Nothing is changed.
///
/// # Errors
/// When the store cannot be asked.
pub(crate) async fn foresee(
    gate: &Arc<Gate>,
    operator: &Operator,
    id: &str,
    if_unknown: IfUnknown,
    now: Time,
) -> Result<Foretold, Refused> {
    let (redrive, record) = match read(gate, operator, id).await {
        Ok(read) => read,
        Err(refused) => {
            let foreseen = Foreseen::of_refusal(refused)?;
            return Ok(Foretold {
                foreseen,
                work: None,
                about: String::new(),
            });
        }
    };
    let about = about(&redrive, record.as_ref());
    let foreseen = match plan(gate, &redrive, record.as_ref(), if_unknown).await {
        Ok(Plan::Close(_)) => Foreseen::Closes,
        Ok(Plan::Run) => Foreseen::of_record(record.as_ref(), now),
        Err(refused) => Foreseen::of_refusal(refused)?,
    };
    Ok(Foretold {
        foreseen,
        work: Some(redrive.identity.key),
        about,
    })
}

async fn read(
    gate: &Arc<Gate>,
    operator: &Operator,
    id: &str,
) -> Result<(Redrive, Option<Record>), Refused> {
    let letter = operator.find(id).await?;
    prepare::prepare(gate, operator, letter).await
}

/// As its delivery says today, else as its record did.
fn about(redrive: &Redrive, record: Option<&Record>) -> String {
    let today = redrive.flow.description.as_ref();
    let today = today.map(Description::about);
    let recorded = || Label::read(&record?.label).map(|label| label.about());
    today.or_else(recorded).unwrap_or_default()
}

// === impl Foreseen ===

impl Foreseen {
    /// What becomes of work that may run, for all that a redrive is asked.
    fn of_record(record: Option<&Record>, now: Time) -> Self {
        let Some(record) = record else {
            return Self::Runs;
        };
        match record.state {
            // Its lease may have lapsed; then it would run. Nobody but the store can say so.
            State::Running => Self::IsRunning,
            State::Waiting
                if record
                    .lease_until
                    .max(record.acts_until.unwrap_or_default())
                    > now =>
            {
                Self::NotDue
            }
            State::Waiting | State::Parked | State::Failed | State::Succeeded => Self::Runs,
        }
    }

    fn of_refusal(refused: Refused) -> Result<Self, Refused> {
        let outcome = refused.details.get("outcome").and_then(Value::as_str);
        Ok(match (outcome, refused.status) {
            (Some("unknown"), _) => Self::NeedsRunAgain,
            (Some("mismatched"), _) => Self::OtherWork,
            (Some("running"), _) => Self::IsRunning,
            (Some(_), _) => Self::UnderOwnKey,
            (None, StatusCode::NOT_FOUND) => Self::Gone,
            (None, StatusCode::CONFLICT) => Self::NoRoute,
            (None, StatusCode::INTERNAL_SERVER_ERROR) => Self::Unreadable,
            (None, _) => return Err(refused),
        })
    }

    /// What it means, after "n letters".
    pub(crate) const fn says(self) -> &'static str {
        match self {
            Self::Runs => "would run",
            Self::RunsBefore => {
                "would not run themselves: they are of the same work as another letter, and closed if that one succeeds"
            }
            Self::Closes => "would only be closed: their work has succeeded since, nothing runs",
            Self::NeedsRunAgain => {
                "would be refused without \u{201c}run again\u{201d}: their record is gone, or they were redriven before, so \
                 nobody here knows whether they took effect"
            }
            Self::NotDue => {
                "would be refused for now: they failed a moment ago, and their next run is not due yet"
            }
            Self::IsRunning => {
                "are running now: they would be refused, unless their lease has lapsed by then"
            }
            Self::OtherWork => "would be refused: their key is known with other work by now",
            Self::UnderOwnKey => {
                "would be refused: their work was delivered again and is unfinished under its own key"
            }
            Self::NoRoute => "would be refused: this gate does not have their route any more",
            Self::Gone => "are closed already",
            Self::Unreadable => "cannot be read, and stay as they are",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::Fingerprint;
    use semel::protocol::{Fence, Owner};

    #[test]
    fn a_pause_is_foreseen_and_so_is_a_run_that_may_still_act() {
        let waiting = |lease_until: u64, acts_until: Option<u64>| Record {
            fingerprint: Fingerprint::of(b"x"),
            state: State::Waiting,
            attempts: 1,
            doubts: 0,
            doubted_at: None,
            in_doubt: false,
            acts_until: acts_until.map(Time),
            born: Fence(1),
            fence: Fence(1),
            owner: Owner([0; 16]),
            lease_until: Time(lease_until),
            expires_at: Time(1_000),
            result: None,
            label: bytes::Bytes::new(),
            history: Vec::new(),
        };
        let of = |record: Record| Foreseen::of_record(Some(&record), Time(10));
        assert_eq!(of(waiting(10, None)), Foreseen::Runs);
        assert_eq!(of(waiting(11, None)), Foreseen::NotDue);
        assert_eq!(of(waiting(0, Some(11))), Foreseen::NotDue);
        assert_eq!(of(waiting(0, Some(10))), Foreseen::Runs);
        assert_eq!(Foreseen::of_record(None, Time(10)), Foreseen::Runs);
    }
}
