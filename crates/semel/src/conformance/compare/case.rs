//! One case: its keys, both sides, and the story of what was told.

use super::fill::say;
use super::oracle::Oracle;
use super::plan::{Act, KEYS, Spans};
use super::same::{Fences, Same};
use crate::clock::{Clock, SystemClock, Time};
use crate::conformance::Subject;
use crate::conformance::answer::shown;
use crate::record::{Answer, Claimed, Fence, Lease, Operation, Owner};
use crate::{Error, Key, Store};
use std::sync::Arc;
use std::time::Duration;

/// How far the oracle's clock moves with each call, so that no two grants have one fence.
const TICK: Duration = Duration::from_micros(10);

/// One case under way.
pub(super) struct Case {
    store: Arc<dyn Store>,
    has_operators: bool,
    states: [KeyState; KEYS],
    now: Time,
    clock: SystemClock,
    acts: usize,
    story: Vec<String>,
}

/// One key, on both sides.
pub(super) struct KeyState {
    pub(super) key: Key,
    oracle: Oracle,
    fences: Fences,
    runs: Vec<RunPair>,
}

/// A run as either side granted it.
#[derive(Clone, PartialEq)]
pub(super) struct RunPair {
    pub(super) oracle: Lease,
    pub(super) store: Lease,
}

/// The two sides told different things. The story ends with them.
#[derive(Debug)]
pub(super) struct Parted {
    pub(super) story: String,
}

// === impl Case ===

impl Case {
    /// A case under keys that nobody else uses.
    pub(super) fn new(subject: &dyn Subject) -> Self {
        Self {
            store: subject.store(),
            has_operators: subject.has_operators(),
            states: std::array::from_fn(|_| KeyState::new()),
            now: Time(1_000_000_000_000),
            clock: SystemClock::new(),
            acts: 0,
            story: Vec::new(),
        }
    }

    /// Time has passed for the store; now it passes for the oracle.
    pub(super) fn pass(&mut self, by: Spans) {
        self.now = self.now.plus(by.and_beyond());
        if by != Spans::NONE {
            self.story.push(format!("      ({by} and 5 min pass)"));
        }
    }

    /// Does the act on both sides, then looks at what either has.
    pub(super) async fn act(&mut self, act: &Act) -> Result<(), Parted> {
        self.acts += 1;
        if act.verb.is_operators() && !self.has_operators {
            return Ok(());
        }
        let key = act.key.min(KEYS - 1);
        let [a, b, c] = &self.states;
        let state = *[a, b, c].get(key).expect("a key below KEYS");
        if state.oracle.is_on_an_edge(self.now) {
            return Ok(());
        }
        let what = format!("{:3}. key {key}: {}", self.acts, act.verb.say(state));
        let look = Operation::Look(state.key);
        let steps = Operation::Steps(state.key);
        match act.verb.operations(state, self.acts) {
            Some((oracle, store)) => self.both(key, what, &oracle, &store).await?,
            None => self.sweep(what).await?,
        }
        self.both(key, "      then look".into(), &look, &look)
            .await?;
        if act.verb.is_of_steps() {
            self.both(key, "      then steps".into(), &steps, &steps)
                .await?;
        }
        Ok(())
    }

    /// Sweeps the store to the end; the oracle allows for that anyway.
    async fn sweep(&mut self, what: String) -> Result<(), Parted> {
        let swept = sweep(&*self.store).await;
        self.story.push(format!("{what}: {swept:?}"));
        swept.map_err(|error| Parted {
            story: format!("{}\n      the store told:  {error}", self.story.join("\n")),
        })
    }

    /// Makes a call on both sides, and compares what they tell.
    async fn both(
        &mut self,
        key: usize,
        what: String,
        oracle: &Operation,
        store: &Operation,
    ) -> Result<(), Parted> {
        self.now = self.now.plus(TICK);
        let state = self.states.get_mut(key).expect("a key below KEYS");
        let answered = self.store.apply(store).await;
        let followed = state.follow(oracle, &answered, self.now, self.clock.monotonic());
        self.story.push(match &answered {
            Ok(answer) => format!("{what}: {}", say(answer)),
            Err(error) => format!("{what}: {error}"),
        });
        followed.map_err(|expected| Parted {
            story: format!(
                "{}\n{expected}\n      the store told:  {}",
                self.story.join("\n"),
                answered.as_ref().map_or_else(shown, shown),
            ),
        })
    }
}

async fn sweep(store: &dyn Store) -> Result<(), Error> {
    let mut after = store.sweep(None).await?.next;
    while let Some(next) = &after {
        after = store.sweep(Some(next)).await?.next;
    }
    Ok(())
}

// === impl KeyState ===

impl KeyState {
    #[allow(
        clippy::disallowed_methods,
        reason = "a key of its own on a store that others use"
    )]
    fn new() -> Self {
        Self {
            key: Key::from_bytes(rand::random()),
            oracle: Oracle::default(),
            fences: Fences::default(),
            runs: Vec::new(),
        }
    }

    /// Goes the way of the oracle that the store went; if there is none, says what was expected.
    fn follow(
        &mut self,
        operation: &Operation,
        answered: &Result<Answer, Error>,
        now: Time,
        elapsed: Duration,
    ) -> Result<(), String> {
        let mut expected = Vec::new();
        for (told, oracle) in self.oracle.ways(operation, now) {
            let mut fences = self.fences.clone();
            let mut same = Same {
                fences: &mut fences,
                elapsed,
            };
            let agreed = match answered {
                Ok(store) => same.answer(&told, store),
                Err(_) => Err("there is an error instead of an answer"),
            };
            match agreed {
                Ok(()) => {
                    (self.fences, self.oracle) = (fences, oracle);
                    self.remember(&told, answered);
                    return Ok(());
                }
                Err(what) => expected.push(format!(
                    "      what differs:    {what}\n      the oracle told: {}",
                    shown(&told)
                )),
            }
        }
        expected.dedup();
        Err(expected.join("\n      or, if the expired record was swept:\n"))
    }

    fn remember(&mut self, oracle: &Answer, store: &Result<Answer, Error>) {
        if let Answer::Claimed(Claimed::Granted(oracle)) = oracle
            && let Ok(Answer::Claimed(Claimed::Granted(store))) = store
        {
            let (oracle, store) = (oracle.clone(), store.clone());
            let run = RunPair { oracle, store };
            if !self.runs.contains(&run) {
                self.runs.push(run);
            }
        }
    }

    /// The number and the run of the grant so many grants back, or of the first.
    pub(super) fn run(&self, back: usize) -> Option<(usize, &RunPair)> {
        let last = self.runs.len().checked_sub(1)?;
        let number = last.saturating_sub(back);
        Some((number + 1, self.runs.get(number)?))
    }

    /// A run that never was.
    pub(super) fn nobody(&self) -> RunPair {
        let lease = Lease {
            key: self.key,
            owner: Owner::random(),
            fence: Fence(1),
            born: Fence(1),
            attempt: 1,
            in_doubt: false,
        };
        RunPair {
            oracle: lease.clone(),
            store: lease,
        }
    }
}
