//! Anything may happen in any order; what must hold holds.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEYS: [&str; 3] = ["a", "b", ""];

#[derive(Clone, Debug)]
enum Act {
    Publish { key: usize },
    Take { taker: usize, messages: usize },
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
    open: BTreeMap<Place, &'static str>,
    out: BTreeMap<Place, (Taker, u64, Time)>,
    old: Vec<(Place, u64)>,
    next: Place,
    pulls: u64,
}

// === impl Witness ===

impl Witness {
    fn new(ordered: bool) -> Self {
        let rules = Rules { ordered, ..rules() };
        Self {
            backlog: Backlog::new(rules, 0),
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
                    .add(arrival(self.next, key, self.now), self.now);
                self.open.insert(self.next, key);
                self.next += 1;
            }
            Act::Take { taker, messages } => self.take(*taker, *messages),
            Act::Acknowledge { which } => {
                if let Some((place, delivery)) = self.pick(*which) {
                    self.acknowledge(place, delivery);
                }
            }
            Act::AcknowledgeOld { which } => {
                let old = self.old.get(which % self.old.len().max(1)).copied();
                if let Some((place, delivery)) = old {
                    self.acknowledge(place, delivery);
                }
            }
            Act::Refuse { which } => {
                if let Some((place, delivery)) = self.pick(*which) {
                    self.backlog.refuse(place, delivery, self.now);
                    self.back(place);
                }
            }
            Act::Extend { which, seconds } => {
                if let Some((place, delivery)) = self.pick(*which) {
                    let span = SECOND * *seconds;
                    self.backlog.extend(place, delivery, span, self.now);
                    self.out.get_mut(&place).unwrap().2 = self.now.plus(span);
                }
            }
            Act::Pass { seconds } => self.pass(SECOND * *seconds),
        }
        self.check();
    }

    fn pick(&self, which: usize) -> Option<(Place, u64)> {
        let (place, (_, delivery, _)) = self.out.iter().nth(which % self.out.len().max(1))?;
        Some((*place, *delivery))
    }

    fn take(&mut self, taker: usize, messages: usize) {
        let taker = match taker {
            0 => Taker::Stream(1),
            1 => Taker::Stream(2),
            _ => {
                self.pulls += 1;
                Taker::Pull(self.pulls)
            }
        };
        let room = Room {
            messages,
            bytes: usize::MAX,
        };
        for taken in super::take(&mut self.backlog, self.now, taker, room) {
            let key = self.open[&taken.place];
            if self.ordered && !key.is_empty() {
                let before = self.open.range(..taken.place).filter(|it| *it.1 == key);
                for (earlier, _) in before {
                    assert_eq!(
                        self.out.get(earlier).map(|it| it.0),
                        Some(taker),
                        "out of order"
                    );
                }
            }
            let out = (taker, taken.delivery, self.now.plus(DEADLINE));
            assert!(
                self.out.insert(taken.place, out).is_none(),
                "given out twice"
            );
            self.old.push((taken.place, taken.delivery));
        }
    }

    fn acknowledge(&mut self, place: Place, delivery: u64) {
        let (fate, _) = self.backlog.acknowledge(place, delivery, self.now);
        if self.is_behind(place, delivery) {
            assert_eq!(fate, Fate::Done);
            return;
        }
        let was_open = self.open.remove(&place).is_some();
        assert_eq!(fate == Fate::Leaves, was_open);
        if was_open {
            self.backlog.left(place);
        }
        self.out.remove(&place);
    }

    /// Whether this delivery is over and an earlier message of its key is not.
    fn is_behind(&self, place: Place, delivery: u64) -> bool {
        let Some(key) = self.open.get(&place) else {
            return false;
        };
        let mut earlier = self.open.range(..place);
        self.ordered
            && !key.is_empty()
            && self.out.get(&place).is_none_or(|out| out.1 != delivery)
            && earlier.any(|(_, other)| other == key)
    }

    /// It waits again, and with ordering what came after it too.
    fn back(&mut self, place: Place) {
        self.out.remove(&place);
        let key = self.open[&place];
        if self.ordered && !key.is_empty() {
            let open = &self.open;
            self.out
                .retain(|later, _| *later < place || open[later] != key);
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.backlog.expire(self.now);
        let late: Vec<Place> = self
            .out
            .iter()
            .filter(|(_, out)| out.2 <= self.now)
            .map(|(place, _)| *place)
            .collect();
        for place in late {
            if self.out.contains_key(&place) {
                self.back(place);
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

    /// Whatever happened, everything can be taken and acknowledged now.
    fn finish(&mut self) {
        self.pass(SECOND * 600);
        let mut rounds = 0;
        while !self.open.is_empty() {
            self.take(0, 1000);
            for (place, out) in self.out.clone() {
                self.acknowledge(place, out.1);
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
        4 => (0..3_usize, 1..5_usize).prop_map(|(taker, messages)| Act::Take { taker, messages }),
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
