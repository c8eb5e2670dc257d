//! A job at work: it gathers its letters, then takes one after the other at its pace.

use super::became::{Became, broken, discarded, may_have_run, redriven};
use super::works::Works;
use super::{Job, JobEnd, JobKind, Jobs, LETTERS_MAX, NoJob, PACE_MAX, Selection};
use crate::census::Census;
use crate::gate::{Gate, Phase};
use crate::operate::{Operator, Refused};
use crate::redrive::{Foreseen, IfUnknown, foresee, redrive};
use semel::letter::LetterId;
use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How many letters of a job are in hand at once: slow handlers must not stop the rest, nor be buried.
const IN_HAND_MAX: usize = 8;

/// How often in a row the store, or the gate, cannot be asked before a job ends: once may be the matter of one letter.
const AWAY_IN_A_ROW_MAX: u32 = 3;

/// What a job works with.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) operator: Operator,
    pub(crate) census: Census,
    /// Who runs handlers; without a gate nothing is redriven.
    pub(crate) gate: Option<Arc<Gate>>,
}

/// Begins a job; it goes on by itself.
///
/// # Errors
/// When too many go on.
pub(crate) fn begin(
    jobs: &Jobs,
    desk: Desk,
    kind: JobKind,
    selection: Selection,
    about: String,
    per_second: u32,
) -> Result<Arc<Job>, NoJob> {
    let job = jobs.add(|id| Job {
        id,
        kind,
        about,
        who: desk.operator.who().clone(),
        begun: desk.census.now(),
        per_second: per_second.clamp(1, PACE_MAX),
        stop: CancellationToken::new(),
        progress: std::sync::Mutex::default(),
    })?;
    if kind != JobKind::DryRun {
        job.audit("begin", &desk.operator, "begun");
    }
    let own = Arc::clone(&job);
    drop(tokio::spawn(async move {
        let end = work(&own, &desk, selection).await;
        desk.census.letters_changed();
        own.end(end);
    }));
    Ok(job)
}

async fn work(job: &Arc<Job>, desk: &Desk, selection: Selection) -> JobEnd {
    let letters = match gather(desk, selection).await {
        Ok(letters) => job.gathered(letters),
        Err(error) => return JobEnd::Broken(error.to_string()),
    };
    let mut ticks = interval(Duration::from_secs(1) / job.per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let works = Arc::new(Works::default());
    let mut in_hand: JoinSet<Result<(), Refused>> = JoinSet::new();
    let mut away = 0;
    let mut ended = |done: Result<(), Refused>| {
        away = if done.is_err() { away + 1 } else { 0 };
        let refused = done.err().filter(|_| away >= AWAY_IN_A_ROW_MAX)?;
        Some(JobEnd::Broken(refused.to_string()))
    };
    let mut end = JobEnd::Done;
    for letter in letters.iter().copied() {
        let paced = job.kind != JobKind::DryRun;
        tokio::select! {
            () = job.stop.cancelled() => {}
            _ = ticks.tick(), if paced => {}
            () = tokio::task::yield_now(), if !paced => {}
        }
        if in_hand.len() >= IN_HAND_MAX
            && let Some(Ok(done)) = in_hand.join_next().await
            && let Some(broken) = ended(done)
        {
            end = broken;
        }
        if job.stop.is_cancelled() && end == JobEnd::Done {
            end = JobEnd::Stopped;
        }
        if desk.is_draining() && end == JobEnd::Done {
            end = JobEnd::Broken("the gate is draining".into());
        }
        if end != JobEnd::Done {
            break;
        }
        let (job, desk, works) = (Arc::clone(job), desk.clone(), Arc::clone(&works));
        in_hand.spawn(async move { one(&job, &desk, &works, letter).await });
    }
    while let Some(done) = in_hand.join_next().await {
        if let Ok(done) = done
            && let Some(broken) = ended(done)
            && end == JobEnd::Done
        {
            end = broken;
        }
    }
    end
}

async fn gather(desk: &Desk, selection: Selection) -> Result<Vec<LetterId>, semel::Error> {
    let mut letters = match selection {
        Selection::Letters(letters) => letters,
        Selection::Groups(groups) => {
            let is_meant = |id: &str| groups.iter().any(|group| group == id);
            let heads = desk.census.letters_of(is_meant).await?;
            heads.into_iter().map(|head| head.id).collect()
        }
    };
    // A form may name a letter twice; the order stays.
    let mut seen = HashSet::new();
    letters.retain(|letter| seen.insert(*letter));
    letters.truncate(LETTERS_MAX);
    Ok(letters)
}

/// Does one letter, and counts it.
///
/// # Errors
/// When the store is away, or the gate drains, or what became of its last run still waits for the store.
async fn one(job: &Job, desk: &Desk, works: &Works, letter: LetterId) -> Result<(), Refused> {
    match done(job, desk, works, letter).await {
        Ok(became) => {
            job.count(letter, became.word, became.stays);
            Ok(())
        }
        Err(refused) => {
            let why = Some(refused.error.clone());
            job.count(
                letter,
                "could not be looked at or recorded just now: they stay",
                why,
            );
            Err(refused)
        }
    }
}

async fn done(job: &Job, desk: &Desk, works: &Works, letter: LetterId) -> Result<Became, Refused> {
    let id = letter.to_string();
    Ok(match (job.kind, &desk.gate) {
        (JobKind::Discard, _) => discarded(desk.operator.discard(&id).await)?,
        (JobKind::DryRun, Some(gate)) => {
            let foretold = foresee(
                gate,
                &desk.operator,
                &id,
                IfUnknown::Refuse,
                desk.census.now(),
            );
            let foretold = foretold.await?;
            let foreseen = match (foretold.foreseen, foretold.work) {
                (Foreseen::Runs, Some(work))
                    if mem::replace(&mut *works.turn(work).await, true) =>
                {
                    Foreseen::RunsBefore
                }
                (foreseen, _) => foreseen,
            };
            job.name(letter, foreseen.says(), foretold.about);
            Became::new(foreseen.says())
        }
        (JobKind::Redrive { run_again }, Some(gate)) => {
            let if_unknown = if run_again {
                IfUnknown::RunAgain
            } else {
                IfUnknown::Refuse
            };
            redriven_once(desk, gate, works, id, if_unknown).await?
        }
        (JobKind::DryRun | JobKind::Redrive { .. }, None) => Became::new("need a gate"),
    })
}

/// Redrives a letter, unless this job has run its work for another letter. What came of that run is news to whoever chose
/// the letters: the other ones are only closed by it.
async fn redriven_once(
    desk: &Desk,
    gate: &Arc<Gate>,
    works: &Works,
    id: String,
    if_unknown: IfUnknown,
) -> Result<Became, Refused> {
    let work = match desk.operator.find(&id).await {
        Ok(letter) => letter.work_key(),
        Err(refused) => return redriven(Err(refused)),
    };
    let mut has_run = works.turn(work).await;
    let if_unknown = if *has_run {
        let now = desk.census.now();
        let foretold = foresee(gate, &desk.operator, &id, IfUnknown::Refuse, now).await?;
        if !matches!(foretold.foreseen, Foreseen::Closes | Foreseen::Gone) {
            return Ok(Became::of_work_that_ran());
        }
        IfUnknown::Refuse
    } else {
        if_unknown
    };
    // A delivery in hand: a gate that goes down waits for it.
    let (gate, operator) = (Arc::clone(gate), desk.operator.clone());
    let tasks = gate.deliveries.clone();
    let told = tasks.spawn(async move { redrive(&gate, &operator, &id, if_unknown).await });
    let told = told.await;
    *has_run |= told.as_ref().map_or(true, may_have_run);
    redriven(told.unwrap_or_else(|_| Err(broken())))
}

// === impl Desk ===

impl Desk {
    fn is_draining(&self) -> bool {
        let gate = self.gate.as_ref();
        gate.is_some_and(|gate| *gate.phase.borrow() != Phase::Serving)
    }
}
