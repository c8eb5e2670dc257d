//! Whether two sides told the same, though their clocks and so their fences differ.

use crate::clock::Time;
use crate::record::{
    Answer, Claimed, Fence, Held, Lease, Record, Settled, StepBegun, StepRecord, Superseded,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// How far durations may differ beside the time the case has taken: stores may round.
const SLACK: Duration = Duration::from_secs(1);

/// The store's fence for each of the oracle's, of one key. Equal stays equal, and order stays
/// order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fences(BTreeMap<Fence, Fence>);

/// Two sides are compared; the case has taken `elapsed` of real time, which only the store sees.
pub(super) struct Same<'a> {
    pub(super) fences: &'a mut Fences,
    pub(super) elapsed: Duration,
}

type Steps = [(String, StepRecord)];

/// Or what it is that differs.
pub(super) type Agreed = Result<(), &'static str>;

// === impl Fences ===

impl Fences {
    fn agree(&mut self, oracle: Fence, store: Fence) -> Agreed {
        if let Some(known) = self.0.get(&oracle) {
            return agree("a fence that should be one given before", known, &store);
        }
        let below = self.0.range(..oracle).next_back();
        let above = self.0.range(oracle..).next();
        let rises = below.is_none_or(|(_, below)| *below < store)
            && above.is_none_or(|(_, above)| store < *above);
        self.0.insert(oracle, store);
        agree("a fence that does not rise", &true, &rises)
    }
}

// === impl Same ===

impl Same<'_> {
    pub(super) fn answer(&mut self, oracle: &Answer, store: &Answer) -> Agreed {
        match (oracle, store) {
            (Answer::Claimed(oracle), Answer::Claimed(store)) => self.claimed(oracle, store),
            (Answer::Held(oracle), Answer::Held(store)) => self.held(oracle, store),
            (Answer::StepBegun(oracle), Answer::StepBegun(store)) => self.begun(oracle, store),
            (Answer::Looked(Some(oracle)), Answer::Looked(Some(store))) => {
                self.record(oracle, store)
            }
            (Answer::Steps(oracle), Answer::Steps(store)) => self.steps(oracle, store),
            (oracle, store) => agree("the answer", oracle, store),
        }
    }

    fn steps(&mut self, oracle: &Steps, store: &Steps) -> Agreed {
        agree("how many steps", &oracle.len(), &store.len())?;
        for ((name, step), (name_store, step_store)) in oracle.iter().zip(store) {
            agree("the name of a step", name, name_store)?;
            agree("the result of a step", &step.result, &step_store.result)?;
            self.fences.agree(step.fence, step_store.fence)?;
        }
        Ok(())
    }

    /// Times of an entry are told by each side's own clock, which differ; how far apart they are is the same.
    fn history(&mut self, oracle: &[Superseded], store: &[Superseded]) -> Agreed {
        agree("how many were superseded", &oracle.len(), &store.len())?;
        for (oracle, store) in oracle.iter().zip(store) {
            agree("the state of a superseded one", &oracle.state, &store.state)?;
            agree("its in_doubt", &oracle.in_doubt, &store.in_doubt)?;
            agree("who superseded it", &oracle.by, &store.by)?;
            agree("its result", &oracle.result, &store.result)?;
            self.fences.agree(oracle.fence, store.fence)?;
            for apart in [
                |it: &Superseded| it.at.since(it.until),
                |it: &Superseded| it.until.since(it.at),
            ] {
                let same = self.about(apart(oracle), apart(store));
                agree("the time from its until to its at", &true, &same)?;
            }
        }
        Ok(())
    }

    fn claimed(&mut self, oracle: &Claimed, store: &Claimed) -> Agreed {
        match (oracle, store) {
            (Claimed::Granted(oracle), Claimed::Granted(store)) => self.lease(oracle, store),
            (Claimed::Replayed(oracle), Claimed::Replayed(store)) => self.settled(oracle, store),
            (
                Claimed::Busy {
                    retry_after: oracle,
                },
                Claimed::Busy { retry_after: store },
            )
            | (
                Claimed::NotYet {
                    retry_after: oracle,
                },
                Claimed::NotYet { retry_after: store },
            ) => self.left("retry_after", *oracle, *store),
            (oracle, store) => agree("the answer", oracle, store),
        }
    }

    fn held(&self, oracle: &Held, store: &Held) -> Agreed {
        match (oracle, store) {
            (Held::Settled(oracle), Held::Settled(store)) => self.settled(oracle, store),
            (oracle, store) => agree("the answer", oracle, store),
        }
    }

    fn begun(&mut self, oracle: &StepBegun, store: &StepBegun) -> Agreed {
        match (oracle, store) {
            (
                StepBegun::Memo { fence, result },
                StepBegun::Memo {
                    fence: fence_store,
                    result: result_store,
                },
            ) => {
                agree("the result", result, result_store)?;
                self.fences.agree(*fence, *fence_store)
            }
            (StepBegun::InDoubt(oracle), StepBegun::InDoubt(store)) => {
                self.fences.agree(*oracle, *store)
            }
            (StepBegun::Settled(oracle), StepBegun::Settled(store)) => self.settled(oracle, store),
            (oracle, store) => agree("the answer", oracle, store),
        }
    }

    fn lease(&mut self, oracle: &Lease, store: &Lease) -> Agreed {
        agree("the key", &oracle.key, &store.key)?;
        agree("the owner", &oracle.owner, &store.owner)?;
        agree("the attempt", &oracle.attempt, &store.attempt)?;
        agree("in_doubt", &oracle.in_doubt, &store.in_doubt)?;
        self.fences.agree(oracle.born, store.born)?;
        self.fences.agree(oracle.fence, store.fence)
    }

    fn record(&mut self, oracle: &Record, store: &Record) -> Agreed {
        agree("the fingerprint", &oracle.fingerprint, &store.fingerprint)?;
        agree("the state", &oracle.state, &store.state)?;
        agree("attempts", &oracle.attempts, &store.attempts)?;
        agree("doubts", &oracle.doubts, &store.doubts)?;
        agree("in_doubt", &oracle.in_doubt, &store.in_doubt)?;
        agree("the owner", &oracle.owner, &store.owner)?;
        agree("the result", &oracle.result, &store.result)?;
        agree("the label", &oracle.label, &store.label)?;
        self.history(&oracle.history, &store.history)?;
        self.fences.agree(oracle.born, store.born)?;
        self.fences.agree(oracle.fence, store.fence)?;
        let kept = |record: &Record| record.expires_at.since(record.lease_until);
        let same = self.about(kept(oracle), kept(store));
        agree("the time from lease_until to expires_at", &true, &same)?;
        self.before_expiry("acts_until", oracle, store, |it| it.acts_until)?;
        self.before_expiry("doubted_at", oracle, store, |it| it.doubted_at)
    }

    /// An operator's rerun keeps the record, from then on, for the time from `lease_until` to `expires_at`: real time that came
    /// to it is added to what has passed since the other time.
    fn before_expiry(
        &self,
        what: &'static str,
        oracle: &Record,
        store: &Record,
        time: impl Fn(&Record) -> Option<Time>,
    ) -> Agreed {
        let until_expiry = |record: &Record| Some(record.expires_at.since(time(record)?));
        let same = match (until_expiry(oracle), until_expiry(store)) {
            (Some(oracle), Some(store)) => {
                oracle.abs_diff(store) <= self.elapsed + self.elapsed + SLACK
            }
            (oracle, store) => oracle == store,
        };
        agree(what, &true, &same)
    }

    fn about(&self, oracle: Duration, store: Duration) -> bool {
        oracle.abs_diff(store) <= self.elapsed + SLACK
    }

    fn settled(&self, oracle: &Settled, store: &Settled) -> Agreed {
        agree("how it ended", &oracle.ending, &store.ending)?;
        agree("the result", &oracle.result, &store.result)?;
        self.left("what is left of retention", oracle.keep, store.keep)
    }

    /// What is left of a duration: on the store, real time has eaten of it as well, or has come to
    /// it, where it reaches from one moment of the case to another.
    fn left(&self, what: &'static str, oracle: Duration, store: Duration) -> Agreed {
        let same = oracle.abs_diff(store) <= self.elapsed + SLACK;
        agree(what, &true, &same)
    }
}

fn agree<T: PartialEq>(what: &'static str, oracle: &T, store: &T) -> Agreed {
    if oracle == store { Ok(()) } else { Err(what) }
}
