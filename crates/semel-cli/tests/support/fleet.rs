//! Several gates on one store, before one handler, and senders that spread duplicates over all of them.

use super::counter::Counter;
use super::gate::{API_ROUTE, Gate};
use super::sender::deliver_to;
use semel_rig::http::Request;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const GATES: usize = 4;

/// Each piece of work is delivered by so many senders, each beginning at another gate.
const DUPLICATES: usize = 4;

/// So many pieces of work are under way at once.
const LANES: usize = 3;

/// How long an effect takes: long enough for its gate to be stopped meanwhile.
const PAUSE: Duration = Duration::from_millis(15);

/// Gates on one store, before one handler.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) gates: Vec<Gate>,
    pub(crate) counter: Counter,
    pub(crate) ports: Vec<u16>,
}

/// What the senders have done.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    over: AtomicBool,
    begun: [AtomicUsize; LANES],
    answered: Mutex<BTreeSet<String>>,
}

// === impl Fleet ===

impl Fleet {
    pub(crate) fn start(store: &str, lease: &str) -> Self {
        let counter = Counter::start(PAUSE);
        // Redis is shared with other tests: the namespace keeps keys apart.
        let rest = format!(
            "namespace = \"{}\"\n{API_ROUTE}lease = \"{lease}\"",
            counter.port
        );
        let gates: Vec<_> = (0..GATES)
            .map(|_| Gate::start(store, counter.port, &rest))
            .collect();
        let ports = gates.iter().map(|gate| gate.port).collect();
        Self {
            gates,
            counter,
            ports,
        }
    }
}

/// Work with this name.
pub(crate) fn work(name: &str) -> Request {
    Request::post("/work", name.to_owned()).header("Idempotency-Key", name)
}

/// Delivers beginning at this gate, and at the next one after each failure; returns the one that answered.
pub(crate) fn deliver_from(ports: &[u16], first: usize, name: &str) -> u16 {
    let mut turns = ports.iter().copied().cycle().skip(first % ports.len());
    let (port, answer) = deliver_to(|| turns.next().unwrap(), &work(name));
    assert_eq!((answer.status, answer.body), (200, format!("did {name}")));
    port
}

// === impl Traffic ===

impl Traffic {
    /// Sends new work, each piece several times, until `meanwhile` has ended and at least `least` pieces were begun.
    pub(crate) fn during(&self, ports: &[u16], least: usize, meanwhile: impl FnOnce()) {
        std::thread::scope(|scope| {
            for lane in 0..LANES {
                for duplicate in 0..DUPLICATES {
                    scope.spawn(move || self.send(ports, lane, duplicate));
                }
            }
            // Also when `meanwhile` fails: the senders must end.
            let _over = SetOnDrop(&self.over);
            meanwhile();
            super::wait_for("enough traffic", || self.works().len() >= least);
        });
    }

    /// A sender delivers each piece of work of its lane that any sender of the lane has begun.
    fn send(&self, ports: &[u16], lane: usize, duplicate: usize) {
        let Some(begun) = self.begun.get(lane) else {
            return;
        };
        for number in 0.. {
            let last = begun.load(Ordering::SeqCst);
            if number >= last && self.over.load(Ordering::SeqCst) {
                return;
            }
            begun.fetch_max(number + 1, Ordering::SeqCst);
            let name = format!("work-{lane}-{number}");
            deliver_from(ports, number + duplicate, &name);
            self.answered.lock().unwrap().insert(name);
        }
    }

    /// All work that was begun.
    pub(crate) fn works(&self) -> Vec<String> {
        let mut works = Vec::new();
        for (lane, begun) in self.begun.iter().enumerate() {
            let numbers = 0..begun.load(Ordering::SeqCst);
            works.extend(numbers.map(|number| format!("work-{lane}-{number}")));
        }
        works
    }

    /// The work that some sender has heard the end of.
    pub(crate) fn answered(&self) -> BTreeSet<String> {
        self.answered.lock().unwrap().clone()
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
