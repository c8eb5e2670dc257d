//! The races that are run, and those against what is broken on purpose.

use super::call::{Call, Request, Response, RunEnded};
use super::check::{Rule, check};
use super::history::History;
use super::racer::keys;
use super::worker::RaceSettings;
use crate::faults::{self, Defect, Trial};
use crate::harness::{
    Cell, Ledger, Processes, Profile, Report, Role, Row, StoreKind, Verdict, convict,
    firestore_emulator, side_by_side,
};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many processes race.
const PROCESSES: u32 = 8;

/// How many callers each has.
const CALLERS: u64 = 4;

/// How many calls in a hundred are an operator's, unless a fault needs more of them to show.
pub(crate) const OPERATOR_PERCENT: u32 = 6;

/// How much longer than its time a process may take.
const LATE_MAX: Duration = Duration::from_secs(20);

/// How many races against broken stores run at the same time.
const SIDE_BY_SIDE: usize = 3;

/// A race with fewer of these shows nothing: how they are called, under which head they are counted, and how many.
const NEEDED: &[(&str, &str, usize)] = &[
    ("grants", "granted", 500),
    ("runs taken over", "taken over", 50),
    ("stale calls", "stale", 50),
    ("unknown answers", "unknown", 20),
    ("operators' acts", "operator", 25),
];

/// The same where every call takes several milliseconds.
const NEEDED_SLOW: &[(&str, &str, usize)] = &[
    ("grants", "granted", 50),
    ("runs taken over", "taken over", 5),
    ("stale calls", "stale", 5),
    ("unknown answers", "unknown", 2),
    ("operators' acts", "operator", 2),
];

/// One race.
#[derive(Clone, Debug)]
struct Race {
    store: StoreKind,
    defect: Option<Defect>,
    operator_percent: u32,
    processes: u32,
    lasts: Duration,
    seed: u64,
    program: PathBuf,
}

/// Races on every store whose name contains `filter`, at the same time.
///
/// # Errors
/// When a server, a worker or a store cannot be used.
pub async fn prove(profile: Profile, program: &Path, filter: &str) -> anyhow::Result<Report> {
    let mut stores = vec![StoreKind::Postgres, StoreKind::Redis];
    if firestore_emulator().await?.is_some() {
        stores.push(StoreKind::Firestore);
    }
    let side = stores.len();
    let named = stores.into_iter().filter(|it| it.name().contains(filter));
    let races = named.map(|store| Race::honest(store, profile, program).run());
    let mut report = Report::default();
    side_by_side(side, races, |(row, _)| report.add(row)).await?;
    Ok(report)
}

/// Races against what is broken on purpose; says for each how often the checker saw its rules broken.
///
/// # Errors
/// When a server, a worker or a store cannot be used, or something broken passed.
pub async fn convict_broken_builds(
    profile: Profile,
    program: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut trials = Vec::new();
    for (fault, trial) in faults::trials() {
        let Trial::Race {
            stores,
            rules,
            operator_percent,
        } = trial
        else {
            continue;
        };
        for store in stores {
            let race = Race {
                defect: fault.defect,
                operator_percent,
                processes: PROCESSES / 2,
                lasts: Duration::from_secs(3),
                seed: profile.seed.wrapping_add(1 + trials.len() as u64),
                ..Race::honest(*store, profile, program)
            };
            trials.push(async move {
                let what = format!("{}, {}", store.name(), fault.name);
                convict(&what, rules, |again| {
                    let race = Race {
                        seed: race.seed.wrapping_add(again),
                        ..race.clone()
                    };
                    async { Ok(race.run().await?.1) }
                })
                .await
            });
        }
    }
    let mut convicted = Vec::new();
    side_by_side(SIDE_BY_SIDE, trials, |it| convicted.push(it)).await?;
    Ok(convicted)
}

// === impl Race ===

impl Race {
    fn honest(store: StoreKind, profile: Profile, program: &Path) -> Self {
        Self {
            store,
            defect: None,
            operator_percent: OPERATOR_PERCENT,
            processes: match store {
                StoreKind::Firestore => PROCESSES / 2,
                StoreKind::Embedded | StoreKind::Postgres | StoreKind::Redis => PROCESSES,
            },
            lasts: Duration::from_secs(if profile.long { 90 } else { 13 }),
            seed: profile.seed,
            program: program.to_owned(),
        }
    }

    /// Runs the race and judges it.
    async fn run(self) -> anyhow::Result<(Row, Verdict<Rule>)> {
        let dir = tempfile::tempdir().context("cannot make a directory for the ledgers")?;
        let location = self.store.fresh("race", dir.path()).await?;
        // Whoever opens the store first prepares it; the others then find it ready.
        drop(location.open().await?);
        let settings = RaceSettings {
            seed: self.seed,
            location,
            defect: self.defect,
            name: format!("race {} {}", std::process::id(), self.seed),
            operator_percent: self.operator_percent,
            callers: CALLERS,
            lasts: self.lasts,
            dir: dir.path().to_owned(),
        };
        let (calls, history) = match settings.location.database() {
            Some(url) => {
                let (calls, history) = self.drive_with_history(url, &settings).await?;
                (calls, Some(history))
            }
            None => (self.drive(&settings).await?, None),
        };
        let verdict = check(&calls, history.as_ref());
        let mut row = Row {
            store: self.store.name(),
            mode: "mixed",
            cells: self.cells(&calls, history.as_ref(), &verdict),
            complaints: verdict.complaints("key"),
        };
        let needed = match self.store {
            StoreKind::Firestore => NEEDED_SLOW,
            StoreKind::Embedded | StoreKind::Postgres | StoreKind::Redis => NEEDED,
        };
        let too_few = row.too_few(needed).into_iter();
        row.complaints
            .extend(too_few.map(|it| format!("invalid: {it}")));
        Ok((row, verdict))
    }

    async fn drive_with_history(
        &self,
        url: &str,
        settings: &RaceSettings,
    ) -> anyhow::Result<(Vec<Call>, History)> {
        History::begin(url).await?;
        if let Some(defect) = self.defect {
            defect.plant_in_database(url).await?;
        }
        let calls = tokio::select! {
            calls = self.drive(settings) => calls?,
            aged = History::age(url) => {
                aged?;
                anyhow::bail!("ageing never ends by itself")
            }
        };
        let history = History::read(url, &keys(&settings.name)).await?;
        Ok((calls, history))
    }

    /// Runs the processes to their end, and reads what they wrote.
    async fn drive(&self, settings: &RaceSettings) -> anyhow::Result<Vec<Call>> {
        let mut processes = Processes::new(&self.program, &settings.dir);
        for _ in 0..self.processes {
            processes.start(Role::Worker, None, settings, false)?;
        }
        processes.finish(self.lasts + LATE_MAX).await?;
        let mut calls = Vec::new();
        for process in 0..self.processes {
            calls.extend(Ledger::read::<Call>(&settings.dir, process)?);
        }
        Ok(calls)
    }

    fn cells(
        &self,
        calls: &[Call],
        history: Option<&History>,
        verdict: &Verdict<Rule>,
    ) -> Vec<(&'static str, Cell)> {
        let count = |is: fn(&Call) -> bool| calls.iter().filter(|call| is(call)).count();
        let response = |is: fn(&Response) -> bool| {
            let responses = calls.iter().map(|call| &call.response);
            responses.filter(|response| is(response)).count()
        };
        let changes = || {
            let changes = history.iter().flat_map(|it| it.changes.values());
            changes.flatten()
        };
        let taken_over = |it: &Response| matches!(it, Response::Granted(run) if run.attempt > 1);
        let replayed = |it: &Response| matches!(it, Response::Replayed(_));
        let rolled_back = |it: &Response| matches!(it, Response::RolledBack(_));
        let parked = |it: &Call| is_claim(it) && it.response == Response::Parked;
        let numbers = [
            ("processes", self.processes as usize),
            ("calls", calls.len()),
            ("claims", count(is_claim)),
            ("granted", response(|it| matches!(it, Response::Granted(_)))),
            ("taken over", response(taken_over)),
            ("replayed", response(replayed)),
            ("stale", response(|it| *it == Response::Stale)),
            ("parked", count(parked)),
            ("mismatched", response(|it| *it == Response::Mismatched)),
            ("operator", response(|it| *it == Response::Acted)),
            ("unknown", response(|it| matches!(it, Response::Unknown(_)))),
            ("tx committed", count(commits)),
            ("tx rolled back", response(rolled_back)),
            ("changes", changes().filter(|it| !it.aged).count()),
            ("swept", changes().filter(|it| it.new.is_none()).count()),
            ("violations", verdict.violations.len()),
        ];
        numbers.map(|(head, number)| (head, number.into())).into()
    }
}

const fn is_claim(call: &Call) -> bool {
    matches!(call.request, Request::Claim(_))
}

const fn commits(call: &Call) -> bool {
    matches!(call.request, Request::End(_, RunEnded::CompleteIn(_)))
        && matches!(call.response, Response::Applied(_))
}
