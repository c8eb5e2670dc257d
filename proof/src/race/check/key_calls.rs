//! The calls of one key: everything that was asked and answered about one key.

use crate::race::call::{
    Call, ClaimTerms, Nonce, OperatorCall, Request, Response, ResultId, RunEnded, RunId,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

/// Everything that was asked and answered about one key.
pub(super) struct KeyCalls<'a> {
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
    pub(super) terms: &'a ClaimTerms,
    /// When its owner first asked.
    pub(super) first_asked: u64,
    pub(super) call: &'a Call,
}

// === impl KeyCalls ===

impl<'a> KeyCalls<'a> {
    pub(super) fn new(key: u32, mut calls: Vec<&'a Call>) -> Self {
        calls.sort_by_key(|call| call.began);
        let mut recorders: HashMap<Nonce, Vec<&Call>> = HashMap::new();
        for call in &calls {
            if let Some((nonce, _)) = recorded(&call.request) {
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
        self.done_within(window).any(|call| match &call.request {
            Request::End(by, _) => *by == run,
            Request::Operate(act) => !matches!(act, OperatorCall::Retain(_)),
            Request::Claim(_) | Request::Renew(..) | Request::Step(..) => false,
        })
    }

    /// Whether an operator may have done one of these acts in this window.
    pub(super) fn may_be_operated(
        &self,
        window: &RangeInclusive<u64>,
        which: impl Fn(&OperatorCall) -> bool,
    ) -> bool {
        self.done_within(window)
            .any(|call| matches!(&call.request, Request::Operate(act) if which(act)))
    }

    /// Whether any run may have said in this window how it ended.
    pub(super) fn may_have_spoken(&self, window: &RangeInclusive<u64>) -> bool {
        self.done_within(window)
            .any(|call| matches!(call.request, Request::End(..)))
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
pub(super) const fn recorded(request: &Request) -> Option<(Nonce, Option<ResultId>)> {
    match request {
        Request::End(_, RunEnded::Complete(result, _) | RunEnded::Fail(_, result))
        | Request::Operate(
            OperatorCall::ResolveSucceeded(result) | OperatorCall::ResolveFailed(result),
        ) => Some((result.nonce, Some(*result))),
        Request::End(_, RunEnded::CompleteIn(nonce)) => Some((*nonce, None)),
        Request::Claim(_)
        | Request::Renew(..)
        | Request::End(_, RunEnded::Release(_))
        | Request::Step(..)
        | Request::Operate(_) => None,
    }
}

fn grants<'a>(calls: &[&'a Call]) -> Vec<Grant<'a>> {
    let mut first_asked = HashMap::new();
    let mut granted = BTreeMap::new();
    for call in calls {
        let Request::Claim(terms) = &call.request else {
            continue;
        };
        let first_asked = *first_asked.entry(terms.owner).or_insert(call.began);
        if let Response::Granted(run) = call.response {
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
