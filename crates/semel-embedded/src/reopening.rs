//! Whether the directory is open. A store that gave up, because the disk was full or a sync failed, is opened again by the
//! calls that follow: closing and opening verifies every file, which is the only way to know what the disk holds.

use crate::session::Session;
use crate::store::EmbeddedSettings;
use semel::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use std::time::Duration;

/// How long after one attempt to open a directory again the next may follow.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long to wait for calls that are still under way in a session that gave up, and how often to look.
const CLOSES_WITHIN: Duration = Duration::from_secs(1);
const CLOSES_LOOK: Duration = Duration::from_millis(5);

/// A directory that is open, or will be again.
#[derive(Debug)]
pub(crate) struct ReopeningSession {
    directory: PathBuf,
    settings: EmbeddedSettings,
    state: RwLock<State>,
    /// Held by whoever opens the directory again.
    reopening: Mutex<()>,
}

#[derive(Debug)]
enum State {
    /// And when, by the monotonic clock, it may be opened again at the earliest, should it give up.
    Open(Arc<Session>, Duration),
    /// Why it is not open, and when, by the monotonic clock, to try again.
    Down { why: Error, again: Duration },
}

// === impl ReopeningSession ===

impl ReopeningSession {
    pub(crate) fn open(directory: PathBuf, settings: EmbeddedSettings) -> Result<Self, Error> {
        let session = Session::open(&directory, &settings)?;
        Ok(Self::of(session, directory, settings))
    }

    pub(crate) fn of(session: Session, directory: PathBuf, settings: EmbeddedSettings) -> Self {
        Self {
            directory,
            settings,
            state: RwLock::new(State::Open(Arc::new(session), Duration::ZERO)),
            reopening: Mutex::new(()),
        }
    }

    /// The session, if it has not given up; otherwise why, and whether to try to open it again now.
    pub(crate) fn session(&self) -> Result<Arc<Session>, (Error, bool)> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Open(session, again) => match session.engine.gave_up() {
                None => Ok(Arc::clone(session)),
                Some(why) => Err((why.clone(), self.now() >= *again)),
            },
            State::Down { why, again } => Err((why.clone(), self.now() >= *again)),
        }
    }

    /// Closes what gave up and opens the directory again. It blocks.
    pub(crate) fn reopen(&self) -> Result<Arc<Session>, Error> {
        let _reopening = match self.reopening.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            // Somebody else is at it.
            Err(TryLockError::WouldBlock) => return self.session().map_err(|(why, _)| why),
        };
        let why = match self.session() {
            Ok(session) => return Ok(session),
            Err((why, true)) => why,
            Err((why, false)) => return Err(why),
        };
        self.close(&why);
        match Session::open(&self.directory, &self.settings) {
            Ok(session) => {
                tracing::warn!(directory = %self.directory.display(), "the store is open again, after it had given up");
                let session = Arc::new(session);
                let again = self.now() + AGAIN_AFTER;
                self.set(State::Open(Arc::clone(&session), again));
                Ok(session)
            }
            Err(why) => {
                self.set(self.down(&why));
                Err(why)
            }
        }
    }

    /// Lets go of the session, and waits for the calls that are still under way in it.
    fn close(&self, why: &Error) {
        let State::Open(session, _) = self.set(self.down(why)) else {
            return;
        };
        tracing::error!(directory = %self.directory.display(), %why, "the store gave up; opening it again");
        let left = Arc::downgrade(&session);
        drop(session);
        let mut waited = Duration::ZERO;
        while left.strong_count() > 0 && waited < CLOSES_WITHIN {
            std::thread::park_timeout(CLOSES_LOOK);
            waited += CLOSES_LOOK;
        }
    }

    fn down(&self, why: &Error) -> State {
        State::Down {
            why: why.clone(),
            again: self.now() + AGAIN_AFTER,
        }
    }

    fn set(&self, state: State) -> State {
        let mut now = self.state.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut now, state)
    }

    fn now(&self) -> Duration {
        self.settings.clock.monotonic()
    }
}
