//! Anything may happen in any order; what must hold holds.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEYS: [&str; 3] = ["a", "b", ""];

#[derive(Clone, Debug)]
enum Act {
    Publish { key: usize },
    LeaseResult { consumer: usize, messages: usize },
    Acknowledge { which: usize },
    AcknowledgeOld { which: usize },
    Refuse { which: usize },
    Extend { which: usize, seconds: u32 },
    Pass { seconds: u32 },
}

/// What is known from outside.
#[derive(Debug)]
struct Witness {
    backlog: Backlog,
    ordered: bool,
    now: Time,
    /// The key of everything not acknowledged.
    open: BTreeMap<Sequence, &'static str>,
    out: BTreeMap<Sequence, (Consumer, u64, Time)>,
    old: Vec<(Sequence, u64)>,
    next: Sequence,
    pulls: u64,
}

// === impl Witness ===

impl Witness {
    fn new(ordered: bool) -> Self {
        let policy = DeliveryPolicy {
            ordered,
            ..policy()
        };
        Self {
            backlog: Backlog::new(policy, 0),
            ordered,
            now: at(0),
            open: BTreeMap::new(),
            out: BTreeMap::new(),
            old: Vec::new(),
            next: 1,
            pulls: 100,
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Publish { key } => {
                let key = KEYS[*key];
                self.backlog
                    .add(new_message(self.next, key, self.now), self.now);
                self.open.insert(self.next, key);
                self.next += 1;
            }
            Act::LeaseResult { consumer, messages } => self.take(*consumer, *messages),
            Act::Acknowledge { which } => {
                if let Some((sequence, delivery)) = self.pick(*which) {
                    self.acknowledge(sequence, delivery);
                }
            }
            Act::AcknowledgeOld { which } => {
                let old = self.old.get(which % self.old.len().max(1)).copied();
                if let Some((sequence, delivery)) = old {
                    self.acknowledge(sequence, delivery);
                }
            }
            Act::Refuse { which } => {
                if let Some((sequence, delivery)) = self.pick(*which) {
                    self.backlog.refuse(sequence, delivery, self.now);
                    self.back(sequence);
                }
            }
            Act::Extend { which, seconds } => {
                if let Some((sequence, delivery)) = self.pick(*which) {
                    let span = SECOND * *seconds;
                    self.backlog.extend(sequence, delivery, span, self.now);
                    self.out.get_mut(&sequence).unwrap().2 = self.now.plus(span);
                }
            }
            Act::Pass { seconds } => self.pass(SECOND * *seconds),
        }
        self.check();
    }

    fn pick(&self, which: usize) -> Option<(Sequence, u64)> {
        let (sequence, (_, delivery, _)) = self.out.iter().nth(which % self.out.len().max(1))?;
        Some((*sequence, *delivery))
    }

    fn take(&mut self, consumer: usize, messages: usize) {
        let consumer = match consumer {
            0 => Consumer::Stream(1),
            1 => Consumer::Stream(2),
            _ => {
                self.pulls += 1;
                Consumer::Pull(self.pulls)
            }
        };
        let capacity = Capacity {
            messages,
            bytes: usize::MAX,
        };
        for leased in super::take(&mut self.backlog, self.now, consumer, capacity) {
            let key = self.open[&leased.sequence];
            if self.ordered && !key.is_empty() {
                let before = self.open.range(..leased.sequence).filter(|it| *it.1 == key);
                for (earlier, _) in before {
                    assert_eq!(
                        self.out.get(earlier).map(|it| it.0),
                        Some(consumer),
                        "out of order"
                    );
                }
            }
            let out = (consumer, leased.delivery, self.now.plus(DEADLINE));
            assert!(
                self.out.insert(leased.sequence, out).is_none(),
                "given out twice"
            );
            self.old.push((leased.sequence, leased.delivery));
        }
    }

    fn acknowledge(&mut self, sequence: Sequence, delivery: u64) {
        let (outcome, _) = self.backlog.acknowledge(sequence, delivery, self.now);
        if self.is_behind(sequence, delivery) {
            assert_eq!(outcome, AckOutcome::Done);
            return;
        }
        let was_open = self.open.remove(&sequence).is_some();
        assert_eq!(outcome == AckOutcome::Acknowledging, was_open);
        if was_open {
            self.backlog.acknowledged(sequence);
        }
        self.out.remove(&sequence);
    }

    /// Whether this delivery is over and an earlier message of its key is not.
    fn is_behind(&self, sequence: Sequence, delivery: u64) -> bool {
        let Some(key) = self.open.get(&sequence) else {
            return false;
        };
        let mut earlier = self.open.range(..sequence);
        self.ordered
            && !key.is_empty()
            && self.out.get(&sequence).is_none_or(|out| out.1 != delivery)
            && earlier.any(|(_, other)| other == key)
    }

    /// It waits again, and with ordering what came after it too.
    fn back(&mut self, sequence: Sequence) {
        self.out.remove(&sequence);
        let key = self.open[&sequence];
        if self.ordered && !key.is_empty() {
            let open = &self.open;
            self.out
                .retain(|later, _| *later < sequence || open[later] != key);
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.backlog.expire(self.now);
        let late: Vec<Sequence> = self
            .out
            .iter()
            .filter(|(_, out)| out.2 <= self.now)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in late {
            if self.out.contains_key(&sequence) {
                self.back(sequence);
            }
        }
    }

    fn check(&self) {
        assert_eq!(
            self.backlog.unfinished(),
            self.open.len(),
            "nothing is lost"
        );
        let loaded: usize = self.backlog.loads.values().map(|it| it.messages).sum();
        assert_eq!(loaded, self.out.len());
        assert_eq!(self.backlog.deadlines.len(), self.out.len());
    }

    /// Whatever happened, everything can be leased and acknowledged now.
    fn finish(&mut self) {
        self.pass(SECOND * 600);
        let mut rounds = 0;
        while !self.open.is_empty() {
            self.take(0, 1000);
            for (sequence, out) in self.out.clone() {
                self.acknowledge(sequence, out.1);
            }
            rounds += 1;
            assert!(rounds <= 2, "something is stuck: {:?}", self.open);
        }
        assert!(self.backlog.messages.is_empty());
        assert_eq!(self.backlog.next_moment(self.now), None);
    }
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..KEYS.len()).prop_map(|key| Act::Publish { key }),
        4 => (0..3_usize, 1..5_usize).prop_map(|(consumer, messages)| Act::LeaseResult { consumer, messages }),
        3 => any::<usize>().prop_map(|which| Act::Acknowledge { which }),
        1 => any::<usize>().prop_map(|which| Act::AcknowledgeOld { which }),
        2 => any::<usize>().prop_map(|which| Act::Refuse { which }),
        1 => (any::<usize>(), 1..30_u32).prop_map(|(which, seconds)| Act::Extend { which, seconds }),
        1 => (1..15_u32).prop_map(|seconds| Act::Pass { seconds }),
    ]
}

proptest! {
    #[test]
    fn nothing_is_lost_doubled_or_out_of_order(
        ordered: bool,
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let mut witness = Witness::new(ordered);
        for act in &acts {
            witness.act(act);
        }
        witness.finish();
    }
}
