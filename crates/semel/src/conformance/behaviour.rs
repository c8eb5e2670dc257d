//! Behaviours: named sentences, and how they are run one after the other.

use super::answer::Judged;
use super::stage::Stage;
use super::{Report, Subject, SuitePart, Violation, Violations};
use std::pin::Pin;
use std::time::Duration;

/// A behaviour that takes longer than this hangs.
const BEHAVIOUR_MAX: Duration = Duration::from_secs(300);

/// A sentence that must be true of every store.
pub(super) struct Behaviour {
    pub(super) name: &'static str,
    pub(super) judge: for<'a> fn(&'a Stage<'a>) -> Judging<'a>,
}

pub(super) type Judging<'a> = Pin<Box<dyn Future<Output = Judged> + Send + 'a>>;

/// Names behaviours of a module, in the order they run.
macro_rules! behaviours {
    ($list:ident: $($name:ident),+ $(,)?) => {
        pub(in crate::conformance) const $list: &[$crate::conformance::behaviour::Behaviour] = &[
            $($crate::conformance::behaviour::Behaviour {
                name: stringify!($name),
                judge: |stage| Box::pin($name(stage)),
            }),+
        ];
    };
}
pub(super) use behaviours;

/// Judges the store by every behaviour of these parts that can be asked of it.
pub(super) async fn judge(
    subject: &dyn Subject,
    parts: &[SuitePart],
) -> Result<Report, Violations> {
    let stage = Stage::new(subject);
    let (mut held, mut broken) = (Vec::new(), Vec::new());
    for part in parts {
        for behaviour in part.behaviours(subject) {
            let name = format!("{}::{}", part.word(), behaviour.name);
            match judge_one(&stage, behaviour).await {
                Ok(()) => held.push(name),
                Err(why) => broken.push(Violation {
                    behaviour: name,
                    expected: why.expected,
                    answered: why.answered,
                }),
            }
        }
    }
    if broken.is_empty() {
        Ok(Report { held })
    } else {
        Err(Violations { broken, held })
    }
}

async fn judge_one<'a>(stage: &'a Stage<'a>, behaviour: &Behaviour) -> Judged {
    let judging = tokio::time::timeout(BEHAVIOUR_MAX, (behaviour.judge)(stage));
    judging.await.unwrap_or_else(|_| {
        super::answer::broken(
            &format!("an end within {BEHAVIOUR_MAX:?}"),
            "nothing: the store hangs",
        )
    })
}
