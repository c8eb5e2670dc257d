//! Fault points: named places where a process meets the faults armed for it. What keeps a process from going on without
//! any fault is written down as a stall.

use super::injected::ProcessFault;
use super::ledger::{Event, Ledger};
use rustix::process::{Signal, getpid, kill_process};
use semel::Key;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How far a call is let go before the fault that waits within it: less than most calls take.
const UNDER_WAY_MAX: Duration = Duration::from_micros(1500);

/// A call that takes this part of a lease is written down as a stall: it may cost a lease.
const STALL_PARTS_OF_LEASE: u32 = 4;

/// How often a process looks whether it was kept from going on.
const WATCH: Duration = Duration::from_millis(10);

/// A fault that waits at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArmedFault {
    pub(crate) point: String,
    pub(crate) fault: ProcessFault,
    /// On which visit, from 1.
    pub(crate) visit: u32,
    /// Whether it happens again after as many visits more.
    pub(crate) again: bool,
}

/// The points of this process, and the faults that wait there.
#[derive(Clone, Debug)]
pub(crate) struct FaultPoints {
    ledger: Ledger,
    stall: Duration,
    armed: Arc<Mutex<Vec<Waiting>>>,
}

/// A fault that waits in this process: for runs of one key, or for any.
#[derive(Debug)]
struct Waiting {
    key: Option<Key>,
    armed: ArmedFault,
    visits: u32,
}

// === impl FaultPoints ===

impl FaultPoints {
    pub(crate) fn new(ledger: Ledger, lease: Duration) -> Self {
        Self {
            ledger,
            stall: lease / STALL_PARTS_OF_LEASE,
            armed: Arc::default(),
        }
    }

    pub(crate) fn arm(&self, key: Option<Key>, armed: ArmedFault) {
        self.lock().push(Waiting {
            key,
            armed,
            visits: 0,
        });
    }

    /// Takes away the fault of a key that its runs did not meet.
    pub(crate) fn disarm(&self, key: &Key) {
        self.lock()
            .retain(|waiting| waiting.key.as_ref() != Some(key));
    }

    /// A run comes by, of a key if it is known: the fault happens here if it waits here, and for this visit.
    pub(crate) fn pass(&self, key: Option<&Key>, point: &str) {
        let fault = self
            .lock()
            .iter_mut()
            .find_map(|waiting| waiting.visit(key, point));
        let Some(fault) = fault else {
            return;
        };
        let point = point.to_owned();
        self.ledger.write(&Event::PointHit { point, fault });
        let signal = match fault {
            ProcessFault::Kill => Signal::KILL,
            ProcessFault::Pause => Signal::STOP,
        };
        kill_process(getpid(), signal).expect("a process may signal itself");
    }

    /// Makes a call, and comes by `point` while it is under way.
    pub(crate) async fn pass_within<T>(
        &self,
        key: Option<&Key>,
        point: &str,
        call: impl Future<Output = T>,
    ) -> T {
        let started = Instant::now();
        let mut call = pin!(call);
        let mut answer = None;
        let waits = self.lock().iter().any(|waiting| waiting.is_at(key, point));
        if waits {
            tokio::select! {
                answered = &mut call => answer = Some(answered),
                () = sleep(UNDER_WAY_MAX.mul_f64(rand::random_range(0.0..1.0))) => {}
            }
            self.pass(key, point);
        }
        let answer = match answer {
            Some(answer) => answer,
            None => call.await,
        };
        self.note_stall(started.elapsed());
        answer
    }

    fn note_stall(&self, took: Duration) {
        if took >= self.stall {
            self.ledger.write(&Event::Stalled);
        }
    }

    /// Writes down when the process was kept from going on: a loaded machine pauses it as SIGSTOP does.
    pub(crate) async fn watch(self) {
        loop {
            let before = Instant::now();
            sleep(WATCH).await;
            self.note_stall(before.elapsed());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.armed.lock().expect("no holder of this lock panics")
    }
}

// === impl Waiting ===

impl Waiting {
    fn is_at(&self, key: Option<&Key>, point: &str) -> bool {
        self.armed.point == point && (self.key.is_none() || self.key.as_ref() == key)
    }

    /// Counts a visit; the fault, if it is for this one.
    fn visit(&mut self, key: Option<&Key>, point: &str) -> Option<ProcessFault> {
        if !self.is_at(key, point) {
            return None;
        }
        self.visits += 1;
        let ArmedFault { visit, again, .. } = self.armed;
        let now = self.visits == visit || again && self.visits.is_multiple_of(visit);
        now.then_some(self.armed.fault)
    }
}
