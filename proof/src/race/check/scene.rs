//! A scene: everything that was asked and answered about one key.

use crate::race::call::{Act, Asked, Call, Mark, Nonce, RunId, Terms, Told};
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

/// Everything that was asked and answered about one key.
pub(super) struct Scene<'a> {
    pub(super) key: u32,
    /// In the order in which they were made.
    pub(super) calls: Vec<&'a Call>,
    /// By fence; of a claim that was made twice, the first.
    pub(super) grants: Vec<Grant<'a>>,
    /// Which calls wanted which result recorded.
    pub(super) recorders: HashMap<Nonce, Vec<&'a Call>>,
}

/// A claim that was granted.
#[derive(Clone, Copy)]
pub(super) struct Grant<'a> {
    pub(super) run: RunId,
    pub(super) terms: &'a Terms,
    /// When its owner first asked.
    pub(super) first_asked: u64,
    pub(super) call: &'a Call,
}

// === impl Scene ===

impl<'a> Scene<'a> {
    pub(super) fn new(key: u32, mut calls: Vec<&'a Call>) -> Self {
        calls.sort_by_key(|call| call.began);
        let mut recorders: HashMap<Nonce, Vec<&Call>> = HashMap::new();
        for call in &calls {
            if let Some((nonce, _)) = recorded(&call.asked) {
                recorders.entry(nonce).or_default().push(call);
            }
        }
        let grants = grants(&calls);
        Self {
            key,
            calls,
            grants,
            recorders,
        }
    }

    /// Whether anybody may have ended this run by this window: the run itself, or an operator.
    pub(super) fn may_be_ended(&self, run: RunId, window: &RangeInclusive<u64>) -> bool {
        self.done_within(window).any(|call| match &call.asked {
            Asked::Complete(by, ..)
            | Asked::CompleteIn(by, _)
            | Asked::Fail(by, ..)
            | Asked::Release(by) => *by == run,
            Asked::Operate(_) => true,
            Asked::Claim(_)
            | Asked::Renew(..)
            | Asked::StepBegin(..)
            | Asked::StepRestart(..)
            | Asked::StepComplete(..) => false,
        })
    }

    /// Whether an operator may have done one of these acts in this window.
    pub(super) fn may_be_operated(
        &self,
        window: &RangeInclusive<u64>,
        which: impl Fn(&Act) -> bool,
    ) -> bool {
        self.done_within(window)
            .any(|call| matches!(&call.asked, Asked::Operate(act) if which(act)))
    }

    /// Whether any run may have said in this window how it ended.
    pub(super) fn may_have_spoken(&self, window: &RangeInclusive<u64>) -> bool {
        self.done_within(window).any(|call| {
            matches!(
                call.asked,
                Asked::Complete(..) | Asked::CompleteIn(..) | Asked::Fail(..) | Asked::Release(_)
            )
        })
    }

    fn done_within(&self, window: &RangeInclusive<u64>) -> impl Iterator<Item = &&'a Call> {
        let end = self
            .calls
            .partition_point(|call| call.began <= *window.end());
        let made = self.calls.iter().take(end);
        made.filter(|call| call.overlaps(window) && call.may_have_been_done())
    }
}

/// The result that a call wants recorded: its nonce, and its bytes where the caller made them.
pub(super) const fn recorded(asked: &Asked) -> Option<(Nonce, Option<Mark>)> {
    match asked {
        Asked::Complete(_, mark, _)
        | Asked::Fail(_, _, mark)
        | Asked::Operate(Act::ResolveSucceeded(mark) | Act::ResolveFailed(mark)) => {
            Some((mark.nonce, Some(*mark)))
        }
        Asked::CompleteIn(_, nonce) => Some((*nonce, None)),
        Asked::Claim(_)
        | Asked::Renew(..)
        | Asked::Release(_)
        | Asked::StepBegin(..)
        | Asked::StepRestart(..)
        | Asked::StepComplete(..)
        | Asked::Operate(Act::ResolveRetry | Act::Redrive | Act::Release | Act::Forget) => None,
    }
}

fn grants<'a>(calls: &[&'a Call]) -> Vec<Grant<'a>> {
    let mut first_asked = HashMap::new();
    let mut granted = BTreeMap::new();
    for call in calls {
        let Asked::Claim(terms) = &call.asked else {
            continue;
        };
        let first_asked = *first_asked.entry(terms.owner).or_insert(call.began);
        if let Told::Granted(run) = call.told {
            granted.entry((run.fence, run.owner)).or_insert(Grant {
                run,
                terms,
                first_asked,
                call,
            });
        }
    }
    granted.into_values().collect()
}
