//! The census: what is in the store right now, for the page. Stores keep no counts and no index on states (writing them
//! would cost every delivery), so somebody has to walk through all records. That is done in the background, only while
//! somebody looks at the page, and never for more than about a sixtieth of the time; the letters, which are few, beside it. Whoever looks
//! hears at once what is known, and how old it is.

mod letters;
mod records;

pub(crate) use letters::{LetterCensus, LetterGroup};
pub(crate) use records::{RecordCensus, SeenRecord};

use letters::Causes;
use semel::Error;
use semel::clock::{Clock, SystemClock, Time};
use semel::protocol::State;
use semel::store::{Letters, Store};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// The pause after a walk, in walks: a gate with a page open keeps at least 0.97 of its throughput.
const PAUSE_WALKS: u32 = 60;

/// The shortest pause: nobody reads faster.
const PAUSE_MIN: Duration = Duration::from_secs(2);

/// For so long after the last look somebody is taken to be looking. An open page asks more often.
const LOOKED_WITHIN: Duration = Duration::from_secs(15);

/// The first to look, and who looks after an act on letters, waits so long for a small store to be counted.
const FIRST_WAIT: Duration = Duration::from_millis(40);

/// How many walks a trend remembers.
const TREND_POINTS_MAX: usize = 120;

/// How many items are listed at once.
const PAGE_ITEMS: u32 = 1000;

/// Counts what is in a store, while somebody looks.
#[derive(Clone)]
pub(crate) struct Census {
    shared: Arc<Shared>,
}

struct Shared {
    letters: Arc<dyn Letters>,
    clock: SystemClock,
    known: watch::Sender<Known>,
    watched: Mutex<Watched>,
    /// Ends the pause between walks.
    wake: Notify,
    causes: Causes,
}

/// What is known of the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// As the last whole walk found it; none before the first.
    pub(crate) records: Option<Arc<RecordCensus>>,
    pub(crate) letters: Option<Arc<LetterCensus>>,
    /// How many acts on letters had been done when their walk began.
    acts: u64,
    /// How many records the walk that goes on has seen.
    pub(crate) counting: Option<u64>,
    /// How the numbers went, oldest first, while somebody looked.
    pub(crate) trend: Arc<Vec<TrendPoint>>,
    /// Why the last walk through the records came to nothing, and the last through the letters.
    records_trouble: Option<String>,
    letters_trouble: Option<String>,
}

/// What a walk counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrendPoint {
    pub(crate) in_doubt: u64,
    pub(crate) parked: u64,
    pub(crate) running: u64,
    pub(crate) letters: u64,
}

/// Who looks, and who walks for them.
#[derive(Debug, Default)]
struct Watched {
    looked: Option<Instant>,
    /// How many acts on letters have been done.
    acts: u64,
    letters: Walker,
    records: Walker,
}

/// Whether somebody walks, and when that may begin again.
#[derive(Debug, Default)]
struct Walker {
    walks: bool,
    due: Option<Instant>,
}

/// What is walked through. Each has a task of its own: a million records do not keep a few letters waiting.
#[derive(Clone, Copy, Debug)]
enum Walk {
    Letters,
    Records,
}

// === impl Census ===

impl Census {
    /// Of this store. Nothing is walked before somebody looks.
    pub(crate) fn new(letters: Arc<dyn Letters>) -> Self {
        Self {
            shared: Arc::new(Shared {
                letters,
                clock: SystemClock::new(),
                known: watch::Sender::new(Known::default()),
                watched: Mutex::default(),
                wake: Notify::new(),
                causes: Causes::default(),
            }),
        }
    }

    /// What is known, at once; and that somebody looks.
    pub(crate) fn look(&self) -> Known {
        self.begin();
        self.shared.known.borrow().clone()
    }

    /// Has somebody walk while somebody looks; whether nobody did so far.
    fn begin(&self) -> bool {
        let mut watched = self.shared.watched();
        watched.looked = Some(Instant::now());
        let begins = [Walk::Letters, Walk::Records].map(|walk| {
            let begins = !std::mem::replace(&mut watched.walker(walk).walks, true);
            if begins {
                let shared = Arc::clone(&self.shared);
                drop(tokio::spawn(async move {
                    shared.walk_while_watched(walk).await;
                }));
            }
            begins
        });
        begins.contains(&true)
    }

    /// The same; the first to look waits a moment, in which a small store is counted, and so does who has acted on letters.
    pub(crate) async fn look_first(&self) -> Known {
        let begins = self.begin();
        let acts = self.shared.watched().acts;
        let is_new = |it: &Known| it.acts == acts && (!begins || it.is_counted());
        let mut changes = self.shared.known.subscribe();
        let counted = changes.wait_for(|it| is_new(it) || it.trouble().is_some());
        drop(timeout(FIRST_WAIT, counted).await);
        self.shared.known.borrow().clone()
    }

    /// Somebody has acted on letters: they are walked through again at once.
    pub(crate) fn letters_changed(&self) {
        let mut watched = self.shared.watched();
        watched.acts += 1;
        watched.letters.due = None;
        drop(watched);
        self.shared.wake.notify_one();
    }

    /// The time of this machine.
    pub(crate) fn now(&self) -> Time {
        self.shared.clock.wall()
    }

    /// All open letters of these groups, oldest first, as far as they are counted.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn letters_of(
        &self,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Vec<semel::letter::LetterHead>, Error> {
        let (letters, causes) = (self.shared.letters.as_ref(), &self.shared.causes);
        let shown = self.shared.known.borrow().letters.clone();
        let shown = shown.unwrap_or_default();
        letters::of_groups(letters, causes, &shown, is_meant).await
    }
}

impl fmt::Debug for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.shared.known.borrow();
        f.debug_struct("Census").field("known", &*known).finish()
    }
}

// === impl Known ===

impl Known {
    /// Why what is known is not what is there now.
    pub(crate) fn trouble(&self) -> Option<&str> {
        let trouble = self
            .records_trouble
            .as_ref()
            .or(self.letters_trouble.as_ref());
        trouble.map(String::as_str)
    }

    fn is_counted(&self) -> bool {
        self.records.is_some() && self.letters.is_some()
    }

    fn note_trend(&mut self) {
        let (Some(records), Some(letters)) = (&self.records, &self.letters) else {
            return;
        };
        let point = TrendPoint {
            in_doubt: records.in_doubt,
            parked: records.of(State::Parked),
            running: records.of(State::Running),
            letters: letters.total as u64,
        };
        let trend = Arc::make_mut(&mut self.trend);
        if trend.len() == TREND_POINTS_MAX {
            trend.remove(0);
        }
        trend.push(point);
    }
}

// === impl Shared ===

impl Shared {
    /// Walks, and pauses, until nobody looks any more.
    async fn walk_while_watched(&self, walk: Walk) {
        loop {
            let due = self.watched().walker(walk).due;
            if due.is_none_or(|due| due <= Instant::now()) {
                match walk {
                    Walk::Letters => self.walk_letters().await,
                    Walk::Records => self.walk_records().await,
                }
            }
            let Some(next) = self.watched().next(walk) else {
                return;
            };
            let pause = next.min(Instant::now() + PAUSE_MIN);
            match walk {
                Walk::Letters => drop(timeout_at(pause, self.wake.notified()).await),
                Walk::Records => sleep_until(pause).await,
            }
        }
    }

    async fn walk_letters(&self) {
        let begun = Instant::now();
        let acts = self.watched().acts;
        let walked = letters::walk(self.letters.as_ref(), &self.causes).await;
        let took = begun.elapsed();
        self.known.send_modify(|known| {
            known.letters_trouble = walked.as_ref().err().map(ToString::to_string);
            if let Ok(mut census) = walked {
                (census.at, census.took) = (self.clock.wall(), took);
                known.letters = Some(Arc::new(census));
                known.acts = acts;
            }
        });
        let mut watched = self.watched();
        if watched.acts == acts {
            watched.letters.due = Some(pause_after(took));
        }
    }

    async fn walk_records(&self) {
        let begun = Instant::now();
        let counting = |count| self.known.send_modify(|known| known.counting = Some(count));
        let store: &dyn Store = self.letters.as_ref();
        let walked = records::walk(store, counting).await;
        let took = begun.elapsed();
        self.known.send_modify(|known| {
            known.counting = None;
            known.records_trouble = walked.as_ref().err().map(ToString::to_string);
            if let Ok(mut census) = walked {
                (census.at, census.took) = (self.clock.wall(), took);
                known.records = Some(Arc::new(census));
                known.note_trend();
            }
        });
        self.watched().records.due = Some(pause_after(took));
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pause_after(took: Duration) -> Instant {
    Instant::now() + PAUSE_MIN.max(took.saturating_mul(PAUSE_WALKS))
}

// === impl Watched ===

impl Watched {
    const fn walker(&mut self, walk: Walk) -> &mut Walker {
        match walk {
            Walk::Letters => &mut self.letters,
            Walk::Records => &mut self.records,
        }
    }

    /// When this walk may begin again; `None`, and nobody walks any more, when nobody looks.
    fn next(&mut self, walk: Walk) -> Option<Instant> {
        let is_watched = self.looked.is_some_and(|at| at.elapsed() < LOOKED_WITHIN);
        let walker = self.walker(walk);
        walker.walks = is_watched;
        is_watched.then(|| walker.due.unwrap_or_else(Instant::now))
    }
}

#[cfg(test)]
mod tests;
