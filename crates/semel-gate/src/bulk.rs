//! Acts on many letters: tried out first, then done at a given pace, with progress that can be watched and stopped. A job
//! lives in this process: it outlasts the page that began it, not the gate.

mod became;
mod run;
mod works;

pub(crate) use run::{Desk, begin};

use crate::audit::{AuditedAct, Who};
use crate::operate::Operator;
use semel::clock::Time;
use semel::letter::LetterId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How many jobs are remembered, the ended ones included.
pub(crate) const JOBS_MAX: usize = 32;

/// How many jobs go on at once: handlers have other work.
pub(crate) const JOBS_GOING_MAX: usize = 4;

/// How many letters a job takes.
pub(crate) const LETTERS_MAX: usize = crate::operate::LETTERS_COUNTED_MAX;

/// The pace of a job, in letters per second.
pub(crate) const PACE_DEFAULT: u32 = 5;
pub(crate) const PACE_MAX: u32 = 1000;

/// How many letters that were left are named.
const NOTES_MAX: usize = 50;

/// How many letters of each kind a dry run names.
pub(crate) const NAMED_MAX: usize = 50;

/// The jobs of this process.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: Mutex<Vec<Arc<Job>>>,
    count: AtomicU64,
}

/// One act on many letters.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) kind: JobKind,
    /// Which letters, in words.
    pub(crate) about: String,
    pub(crate) who: Who,
    pub(crate) begun: Time,
    pub(crate) per_second: u32,
    stop: CancellationToken,
    progress: Mutex<Progress>,
}

/// What a job does to each letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Looks what a redrive would do.
    DryRun,
    Redrive {
        /// Also those of which nobody knows whether they took effect.
        run_again: bool,
    },
    Discard,
}

/// Which letters are meant.
#[derive(Clone, Debug)]
pub(crate) enum Selection {
    /// These.
    Letters(Vec<LetterId>),
    /// All of these groups, as they are when the job begins.
    Groups(Vec<String>),
}

/// How far a job is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// The letters; none while they are being gathered.
    pub(crate) letters: Option<Arc<Vec<LetterId>>>,
    pub(crate) done: usize,
    /// What became of how many.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    /// What a dry run found of which letter, with what it is about; the first of each kind.
    pub(crate) named: BTreeMap<&'static str, Vec<(LetterId, String)>>,
    /// Letters that stay, and why; the first of them.
    pub(crate) notes: Vec<(LetterId, String)>,
    pub(crate) end: Option<JobEnd>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobEnd {
    Done,
    /// Somebody stopped it.
    Stopped,
    /// It could not go on, for this reason.
    Broken(String),
}

/// Why no job was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoJob {
    /// So many go on already.
    TooMany,
}

// === impl Jobs ===

impl Jobs {
    /// All that are remembered, the latest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.lock().iter().rev().cloned().collect()
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Job>> {
        self.lock().iter().find(|job| job.id == id).cloned()
    }

    /// Takes a job in; forgets the oldest that has ended, if there are too many.
    fn add(&self, make: impl FnOnce(u64) -> Job) -> Result<Arc<Job>, NoJob> {
        let mut jobs = self.lock();
        let going = jobs.iter().filter(|job| job.is_going()).count();
        if going >= JOBS_GOING_MAX {
            return Err(NoJob::TooMany);
        }
        if jobs.len() >= JOBS_MAX
            && let Some(oldest) = jobs.iter().position(|job| !job.is_going())
        {
            jobs.remove(oldest);
        }
        let job = Arc::new(make(self.count.fetch_add(1, Ordering::Relaxed) + 1));
        jobs.push(Arc::clone(&job));
        Ok(job)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Job ===

impl Job {
    /// How far it is.
    pub(crate) fn progress(&self) -> Progress {
        self.lock().clone()
    }

    pub(crate) fn is_going(&self) -> bool {
        self.lock().end.is_none()
    }

    /// Somebody ends it early, and the audit says who and why.
    pub(crate) fn stop(&self, operator: &Operator) {
        let progress = self.progress();
        if progress.end.is_none() {
            let after = format!("stopped after {}", progress.done);
            self.audit("stop", operator, &after);
            self.stop.cancel();
        }
    }

    /// What befalls the whole; each letter has a line of its own.
    fn audit(&self, act: &'static str, operator: &Operator, after: &str) {
        operator.audit().note(AuditedAct {
            before: format!("{} of {}", self.kind.word(), self.about),
            after: after.into(),
            ..AuditedAct::new(act, operator.who())
        });
    }

    fn gathered(&self, letters: Vec<LetterId>) -> Arc<Vec<LetterId>> {
        let letters = Arc::new(letters);
        self.lock().letters = Some(Arc::clone(&letters));
        letters
    }

    /// One letter is done with, and stays for this reason, if it does.
    fn count(&self, letter: LetterId, became: &'static str, stays: Option<String>) {
        let mut progress = self.lock();
        progress.done += 1;
        *progress.counts.entry(became).or_default() += 1;
        if let Some(why) = stays
            && progress.notes.len() < NOTES_MAX
        {
            progress.notes.push((letter, why));
        }
    }

    /// A dry run found this of a letter that is about that.
    fn name(&self, letter: LetterId, found: &'static str, about: String) {
        let mut progress = self.lock();
        let named = progress.named.entry(found).or_default();
        if named.len() < NAMED_MAX {
            named.push((letter, about));
        }
    }

    fn end(&self, end: JobEnd) {
        self.lock().end = Some(end);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl JobKind ===

impl JobKind {
    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::DryRun => "dry run",
            Self::Redrive { .. } => "redrive",
            Self::Discard => "discard",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: u64) -> Job {
        Job {
            id,
            kind: JobKind::Discard,
            about: String::new(),
            who: Who::default(),
            begun: Time(0),
            per_second: 1,
            stop: CancellationToken::new(),
            progress: Mutex::default(),
        }
    }

    #[test]
    fn jobs_are_bounded_and_the_oldest_ended_one_is_forgotten() {
        let jobs = Jobs::default();
        for _ in 0..JOBS_GOING_MAX {
            assert!(jobs.add(job).is_ok());
        }
        assert_eq!(jobs.add(job).err(), Some(NoJob::TooMany));
        for _ in 0..2 * JOBS_MAX {
            let going = jobs.all().into_iter().find(|job| job.is_going());
            going.expect("some go on").end(JobEnd::Done);
            assert!(jobs.add(job).is_ok());
            assert!(jobs.all().len() <= JOBS_MAX);
        }
    }
}
