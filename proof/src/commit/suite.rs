//! The attacks that are made, and those on what is broken on purpose.

use super::caller::{Told, What, call};
use super::check::{Change, Rule, check};
use super::handler::{EFFECTS, Handler};
use super::proxy::{LATE_MAX, Met, Proxy};
use super::tamper::{HISTORY, Spoiled};
use crate::faults::{Defect, plant};
use crate::harness::{
    Cell, FirestoreDatabase, Profile, Report, Row, Verdict, convict, firestore_emulator,
    side_by_side,
};
use anyhow::Context;
use rand::SeedableRng;
use rand::rngs::StdRng;
use semel::store::Letters;
use semel_firestore::{FirestoreSettings, FirestoreStore};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How many stores, each behind a proxy of its own, as many gates would have. Every other one guesses.
const STORES: u64 = 4;

/// How many callers each has.
const CALLERS: u64 = 4;

/// How long an emulator that has just started may take for its first answer, on a machine with other things to do.
const FIRST_ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// An attack with fewer of these shows nothing.
const NEEDED: &[(&str, &str, usize)] = &[
    ("grants", "granted", 40),
    ("completions", "completed", 10),
    ("effects", "effects", 5),
    ("acts", "acts", 3),
    ("requests lost", "requests lost", 3),
    ("answers lost", "answers lost", 3),
    ("late commits", "late", 3),
];

/// Rounds of a sound store's attack at most: on a slow machine one round may see too little of something.
const ROUNDS_MAX: u64 = 12;

/// What the emulator knows an attack by.
static PROJECTS: AtomicU64 = AtomicU64::new(0);

/// One attack.
#[derive(Clone, Debug)]
struct Attack {
    emulator: String,
    seed: u64,
    lasts: Duration,
    /// Rounds at most; another one follows while something that is needed was not seen often enough.
    rounds_max: u64,
    /// What is wrong with each store's way to Firestore.
    spoiled: fn(u64) -> Option<Spoiled>,
    defect: Option<Defect>,
}

/// A broken build: how it is called, what its proxies and its stores do wrong, and which rule must be seen broken.
type Broken = (
    &'static str,
    fn(u64) -> Option<Spoiled>,
    Option<Defect>,
    Rule,
);

const BROKEN: &[Broken] = &[
    (
        "no condition",
        |_| Some(Spoiled::NoCondition),
        None,
        Rule::NothingBetween,
    ),
    (
        "no exists=false",
        |_| Some(Spoiled::NoExists),
        None,
        Rule::NothingBetween,
    ),
    (
        "the client's clock",
        |n| Some(Spoiled::ClientsClock(if n % 2 == 0 { 400 } else { -400 })),
        None,
        Rule::LeaseHolds,
    ),
    (
        "a commit repeated without deciding",
        |_| Some(Spoiled::RepeatsBlindly),
        None,
        Rule::NothingBetween,
    ),
    (
        "no fence",
        |_| None,
        Some(Defect::CompleteWithoutFence),
        Rule::ToldIsTrue,
    ),
    (
        "effect outside",
        |_| None,
        Some(Defect::CompletesApart),
        Rule::EffectOnce,
    ),
];

/// Attacks the store, where there is an emulator and the filter asks for it.
///
/// # Errors
/// When the emulator or the store cannot be used.
pub async fn prove(profile: Profile, filter: &str) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let Some(emulator) = firestore_emulator()
        .await?
        .filter(|_| "firestore".contains(filter))
    else {
        return Ok(report);
    };
    let attack = Attack {
        emulator,
        seed: profile.seed,
        lasts: Duration::from_secs(if profile.long { 90 } else { 8 }),
        rounds_max: ROUNDS_MAX,
        spoiled: |_| None,
        defect: None,
    };
    let (row, _) = attack.run().await?;
    report.add(row);
    Ok(report)
}

/// Attacks what is broken on purpose; says for each how often its rule was seen broken.
///
/// # Errors
/// When the emulator or the store cannot be used, or something broken passed.
pub async fn convict_broken_builds(profile: Profile) -> anyhow::Result<Vec<String>> {
    let Some(emulator) = firestore_emulator().await? else {
        return Ok(Vec::new());
    };
    let trials = BROKEN.iter().map(|(name, spoiled, defect, rule)| {
        let attack = Attack {
            emulator: emulator.clone(),
            seed: profile.seed,
            lasts: Duration::from_secs(5),
            rounds_max: 1,
            spoiled: *spoiled,
            defect: *defect,
        };
        async move {
            convict(&format!("firestore, {name}"), &[*rule], |again| {
                let attack = Attack {
                    seed: attack.seed.wrapping_add(again),
                    ..attack.clone()
                };
                async { Ok(attack.run().await?.1) }
            })
            .await
        }
    });
    let mut convicted = Vec::new();
    side_by_side(2, trials.collect::<Vec<_>>(), |it| convicted.push(it)).await?;
    Ok(convicted)
}

// === impl Attack ===

impl Attack {
    async fn run(self) -> anyhow::Result<(Row, Verdict<Rule>)> {
        let number = PROJECTS.fetch_add(1, Ordering::Relaxed);
        let project = format!("attack-{}-{number}", std::process::id());
        let met = Arc::new(Met::default());
        // An emulator's first answer is slow; it is waited for before the attack begins.
        let mut patient = FirestoreSettings::new(&project);
        patient.emulator_host = Some(self.emulator.clone());
        patient.timeout = FIRST_ANSWER_WITHIN;
        drop(FirestoreStore::connect(patient).await?);
        let mut stores = Vec::new();
        for n in 0..STORES {
            let seed = self.seed.wrapping_add(1_000 * n);
            let proxy = Proxy::start(&self.emulator, (self.spoiled)(n), seed, Arc::clone(&met));
            let proxy = proxy.await?;
            let handler = Handler {
                database: FirestoreDatabase::open(&proxy, &project).await?,
                completes_apart: self.defect == Some(Defect::CompletesApart),
            };
            let mut settings = FirestoreSettings::new(&project);
            settings.emulator_host = Some(proxy);
            settings.guess = n % 2 == 0;
            let store = FirestoreStore::connect(settings).await?;
            stores.push((plant(self.defect, Arc::new(store)), handler));
        }
        let past_the_proxies = FirestoreDatabase::open(&self.emulator, &project).await?;
        let mut told = Vec::new();
        for round in 0..self.rounds_max {
            told.extend(self.round(&stores, round).await?);
            // What is still late arrives before it is judged.
            sleep(LATE_MAX).await;
            let effects = past_the_proxies.all(EFFECTS).await?.len();
            let row = row(
                &[],
                &told,
                effects,
                &met,
                &Verdict {
                    violations: Vec::new(),
                },
            );
            if row.complaints.is_empty() {
                break;
            }
        }
        let changes = past_the_proxies.all(HISTORY).await?;
        let changes: Option<Vec<_>> = changes.iter().map(Change::read).collect();
        let changes = changes.context("a history that cannot be read")?;
        let effects = past_the_proxies.all(EFFECTS).await?;
        let effects = effects.iter().filter_map(|it| it.name.rsplit('/').next());
        let effects: BTreeSet<_> = effects.map(str::to_owned).collect();
        let verdict = check(changes.clone(), &told, &effects);
        let row = row(&changes, &told, effects.len(), &met, &verdict);
        Ok((row, verdict))
    }

    /// All callers at once, for as long as a round lasts.
    async fn round(
        &self,
        stores: &[(Arc<dyn Letters>, Handler)],
        round: u64,
    ) -> anyhow::Result<Vec<Told>> {
        let until = Instant::now() + self.lasts;
        let mut callers = JoinSet::new();
        for n in 0..STORES * CALLERS {
            let store = stores.iter().cycle().nth(usize::try_from(n)?);
            let number = 1 + n + round * STORES * CALLERS;
            let rng = StdRng::seed_from_u64(self.seed.wrapping_add(number));
            let (store, handler) = store.context("there are stores")?;
            callers.spawn(call(Arc::clone(store), handler.clone(), rng, until));
        }
        Ok(callers.join_all().await.into_iter().flatten().collect())
    }
}

fn row(
    changes: &[Change],
    told: &[Told],
    effects: usize,
    met: &Met,
    verdict: &Verdict<Rule>,
) -> Row {
    let granted = told.iter().filter(|it| matches!(it.what, What::Granted(_)));
    let completed = told
        .iter()
        .filter(|it| matches!(it.what, What::Completed(_)));
    let acted = told.iter().filter(|it| matches!(it.what, What::Acted(_)));
    let count = |it: &std::sync::atomic::AtomicUsize| it.load(Ordering::Relaxed);
    let cells: Vec<(&'static str, Cell)> = vec![
        ("commits", changes.len().into()),
        ("granted", granted.count().into()),
        ("completed", completed.count().into()),
        ("effects", effects.into()),
        ("acts", acted.count().into()),
        ("requests lost", count(&met.requests_lost).into()),
        ("answers lost", count(&met.answers_lost).into()),
        ("late", count(&met.late).into()),
        ("violations", verdict.violations.len().into()),
    ];
    let mut row = Row {
        store: "firestore",
        mode: "commits",
        cells,
        complaints: verdict.complaints("key"),
    };
    let too_few = row.too_few(NEEDED).into_iter();
    row.complaints
        .extend(too_few.map(|it| format!("invalid: {it}")));
    row
}
