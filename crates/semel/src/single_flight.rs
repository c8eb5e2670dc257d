//! In-process single-flight: a duplicate that meets its twin in this process waits for it and needs no
//! store.

use crate::run::Ended;
use crate::store::Error;
use crate::work::Work;
use crate::{Fingerprint, Key};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// The runs under way in this process, by key.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight {
    by_key: Mutex<HashMap<Key, Flight>>,
}

#[derive(Debug)]
struct Flight {
    fingerprint: Fingerprint,
    completion: Arc<Completion>,
}

type Completion = watch::Sender<Option<Result<Ended, Error>>>;

/// How a delivery met the runs under way.
pub(crate) enum Joined {
    /// Nobody else in this process runs it.
    Leader(Leader),
    /// Somebody is; this is how it ends.
    Follower(Follower),
    /// Somebody is, with another payload.
    Mismatched,
    /// As many wait for it as may.
    Full,
}

/// A delivery that waits for the leader's end.
pub(crate) struct Follower(watch::Receiver<Option<Result<Ended, Error>>>);

/// The delivery that runs the work. Dropping it ends the flight, so that nobody waits for ever.
pub(crate) struct Leader {
    single_flight: Arc<SingleFlight>,
    key: Key,
    completion: Arc<Completion>,
}

// === impl SingleFlight ===

impl SingleFlight {
    /// Becomes the leader of this key, or the follower of whoever is.
    pub(crate) fn join(self: &Arc<Self>, work: &Work, waiters_max: usize) -> Joined {
        let mut by_key = self.lock();
        let Some(flight) = by_key.get(&work.key) else {
            let completion = Arc::new(watch::Sender::new(None));
            let flight = Flight {
                fingerprint: work.fingerprint,
                completion: Arc::clone(&completion),
            };
            by_key.insert(work.key, flight);
            return Joined::Leader(Leader {
                single_flight: Arc::clone(self),
                key: work.key,
                completion,
            });
        };
        if flight.fingerprint != work.fingerprint {
            return Joined::Mismatched;
        }
        if flight.completion.receiver_count() >= waiters_max {
            return Joined::Full;
        }
        Joined::Follower(Follower(flight.completion.subscribe()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Flight>> {
        self.by_key.lock().expect("no holder of this lock panics")
    }
}

// === impl Leader ===

impl Leader {
    /// Tells everyone attached how it went.
    pub(crate) fn finish(self, how: &Result<Ended, Error>) {
        self.completion.send_replace(Some(how.clone()));
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.single_flight.lock().remove(&self.key);
        self.completion.send_if_modified(|finished| {
            let lost = finished.is_none();
            if lost {
                let why = "the run that this delivery waited for ended without a word";
                *finished = Some(Err(Error::bug(why)));
            }
            lost
        });
    }
}

// === impl Follower ===

impl Follower {
    /// Waits for the completion; `None` when patience runs out first.
    pub(crate) async fn wait(mut self, patience: Duration) -> Option<Result<Ended, Error>> {
        let finished = tokio::time::timeout(patience, self.0.wait_for(Option::is_some)).await;
        finished.ok()?.ok()?.clone()
    }
}
