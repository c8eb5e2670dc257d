//! `semel prove` on the specimens of `examples/`: every wrong form is convicted by the attack it names, every right form
//! is acquitted. Quickly, a pair for each attack; with `SEMEL_TEST_LONG=1` all of them in full, and then the wrong forms
//! quickly, too.
//!
//! This target is not part of a plain `cargo test`: it has a step of its own in `cargo xtask test`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop at the first surprise, and tells how long each specimen took"
)]

use semel_prove::Attack;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Instant;

/// How many are judged at once. Most of their time is waiting.
const AT_ONCE: usize = 3;

/// What is judged quickly: for each attack a mistake that it convicts.
const QUICK: &[&str] = &[
    "address",
    "celery-hash-key",
    "counter",
    "half-answer",
    "hash-key",
    "hung-up",
    "inner-retry",
    "insert-unless",
    "last-one",
    "lease-row",
    "memory-set",
    "message-key",
    "poison",
    "redis-lock",
    "seen-marker",
    "short-memory",
    "sqlite-marker",
    "webhook",
];

/// Judged by a test of its own: it needs the emulator.
const ON_FIRESTORE: &str = "order-function";

/// How much of the wrong forms the quick profile convicts, and in how many seconds: each, and half of them.
const QUICK_CONVICTS: f64 = 0.9;
const QUICK_SECONDS: f64 = 30.0;
const QUICK_MEDIAN_SECONDS: f64 = 15.0;

/// A scenario and what its first lines expect.
#[derive(Clone, Debug)]
struct Specimen {
    path: PathBuf,
    expected: Vec<Expectation>,
}

/// What a line `# expect: …` says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expectation {
    /// `held`
    Held,
    /// `held otherwise`: no attack convicts it but those that are named.
    HeldOtherwise,
    /// `broken ATTACK HOW PATTERN`
    Broken {
        attack: Attack,
        how: String,
        pattern: String,
    },
    /// `boundaries N`: it was killed at so many of them at least, so its exchanges were recognised.
    Boundaries(u64),
    /// `ATTACK needs N`: the smallest timeline has so many attempts.
    Needs { attack: Attack, attempts: usize },
}

// === impl Specimen ===

impl Specimen {
    /// Nothing for a scenario that expects nothing.
    fn read(path: PathBuf) -> Option<Self> {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter_map(|it| it.strip_prefix("# expect: "));
        let expected: Vec<Expectation> = lines.map(Expectation::read).collect();
        (!expected.is_empty()).then_some(Self { path, expected })
    }

    /// Its directory.
    fn mistake(&self) -> &str {
        let directory = self.path.parent().and_then(Path::file_name);
        directory.unwrap().to_str().unwrap()
    }

    fn is_right(&self) -> bool {
        self.expected.contains(&Expectation::Held)
    }

    /// The attacks that convict it.
    fn attacks(&self) -> impl Iterator<Item = Attack> {
        self.expected.iter().filter_map(Expectation::convicts)
    }

    /// Whether one attack convicts it, and no other does.
    fn needs_one(&self) -> bool {
        self.expected.contains(&Expectation::HeldOtherwise) && self.attacks().count() == 1
    }

    fn name(&self) -> String {
        let directory = self.mistake();
        let file = self.path.file_stem().unwrap();
        format!("{directory}/{}", file.display())
    }

    /// What is wrong with the verdict, if anything is.
    fn complaint(&self, output: &Output) -> Option<String> {
        let said = String::from_utf8_lossy(&output.stdout);
        let Ok(report) = serde_json::from_str::<Value>(&said) else {
            return Some(format!("no report: {output:?}"));
        };
        println!(
            "{} took {:.1} s",
            self.name(),
            report["took_ms"].as_f64().unwrap() / 1e3
        );
        let code = if self.is_right() { 0 } else { 1 };
        let missing: Vec<_> = self
            .expected
            .iter()
            .filter(|it| output.status.code() != Some(code) || !self.came(it, &report))
            .collect();
        (!missing.is_empty()).then(|| format!("expected {missing:?}, got {}", summary(&report)))
    }

    /// Whether an expectation was met.
    fn came(&self, expected: &Expectation, report: &Value) -> bool {
        let attacks = report["attacks"].as_array().unwrap().iter();
        let mut broken = attacks.filter(|it| it["verdict"] == "broken");
        let is = |it: &Value, attack: Attack| it["attack"] == attack.name();
        match expected {
            Expectation::Held => broken.next().is_none(),
            Expectation::HeldOtherwise => broken.all(|it| self.attacks().any(|one| is(it, one))),
            Expectation::Broken {
                attack,
                how,
                pattern,
            } => broken.any(|it| {
                is(it, *attack) && it["how"] == **how && it["pattern"]["name"] == **pattern
            }),
            Expectation::Boundaries(least) => {
                report["attacks"].as_array().unwrap().iter().any(|it| {
                    is(it, Attack::CrashSweep)
                        && it["coverage"]["of"].as_u64().is_some_and(|of| of >= *least)
                })
            }
            Expectation::Needs { attack, attempts } => broken.any(|it| {
                let timeline = it["timeline"].as_array().unwrap().iter();
                let sent = timeline.filter(|event| event["event"] == "sent");
                is(it, *attack) && sent.count() == *attempts
            }),
        }
    }
}

// === impl Expectation ===

impl Expectation {
    fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["held"] => Self::Held,
            ["held", "otherwise"] => Self::HeldOtherwise,
            ["boundaries", least] => Self::Boundaries(least.parse().unwrap()),
            ["broken", attack, how, pattern @ ..] if !pattern.is_empty() => Self::Broken {
                attack: attack.parse().unwrap(),
                how: (*how).to_owned(),
                pattern: pattern.join(" "),
            },
            [attack, "needs", attempts] => Self::Needs {
                attack: attack.parse().unwrap(),
                attempts: attempts.parse().unwrap(),
            },
            _ => {
                panic!("{line:?} is not an expectation: broken ATTACK HOW PATTERN names all three")
            }
        }
    }

    fn convicts(&self) -> Option<Attack> {
        match self {
            Self::Broken { attack, .. } => Some(*attack),
            Self::Held | Self::HeldOtherwise | Self::Boundaries(_) | Self::Needs { .. } => None,
        }
    }
}

fn summary(report: &Value) -> String {
    let attacks = report["attacks"].as_array().unwrap().iter();
    let said = attacks.map(|it| {
        let why = it.get("seen").or_else(|| it.get("why"));
        format!(
            "\n    {} {} {} {}",
            it["attack"],
            it["verdict"],
            why.unwrap_or(&Value::Null),
            it["pattern"]["name"]
        )
    });
    said.collect()
}

/// What the specimens need around them.
struct SpecimenEnvironment {
    /// Python with its packages, `semel`, and the Rust specimens, then the default places.
    path: String,
    redis: String,
    /// Google's emulator; none where it is not installed.
    firestore: Option<String>,
}

// === impl SpecimenEnvironment ===

impl SpecimenEnvironment {
    fn new() -> Self {
        // With their own tests, as `cargo xtask` compiles them: nothing is compiled in a second way.
        let built = Command::new(env!("CARGO"))
            .args("test --workspace --features semel/conformance,semel/tower --quiet --no-run --test receive"
                    .split(' '))
            .current_dir(root())
            .status();
        assert!(
            built.unwrap().success(),
            "the Rust specimens do not compile"
        );
        let python = testbed::python().unwrap();
        let programs = Path::new(env!("CARGO_BIN_EXE_semel")).parent().unwrap();
        Self {
            path: format!(
                "{}:{}:/usr/local/bin:/usr/bin:/bin",
                python.parent().unwrap().display(),
                programs.display()
            ),
            redis: testbed::redis_url().unwrap(),
            firestore: testbed::firestore_host().unwrap(),
        }
    }

    fn prove(&self, scenario: &Path, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        command.arg("prove").arg(scenario).arg("--json").args(more);
        let database = testbed::fresh_database("specimen").unwrap();
        let landing = format!("{database}/landing");
        let project = database.rsplit('/').next().unwrap().replace('_', "-");
        command
            .env_clear()
            .envs(
                self.firestore
                    .iter()
                    .map(|it| ("FIRESTORE_EMULATOR_HOST", it)),
            )
            .env("GOOGLE_CLOUD_PROJECT", project)
            .env("PATH", &self.path)
            .env("PYTHONPATH", root().join("python"))
            .env("DATABASE_URL", database)
            .env("LANDING_URL", landing)
            .env("REDIS_URL", &self.redis)
            .output()
            .unwrap()
    }

    /// Judges all of them; nobody may be judged wrongly.
    fn judge(&self, specimens: &[Specimen], more: &[&str]) {
        let judged = at_once(specimens, |it| {
            let output = self.prove(&it.path, more);
            Some((it.name(), it.complaint(&output)?))
        });
        let complaints = judged.iter().map(|(name, why)| format!("{name}: {why}"));
        let complaints: Vec<String> = complaints.collect();
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }

    /// Whether the quick profile convicts it, and in how many seconds.
    fn convicts_quickly(&self, specimen: &Specimen) -> (bool, f64) {
        let began = Instant::now();
        let output = self.prove(&specimen.path, &[]);
        (
            output.status.code() == Some(1),
            began.elapsed().as_secs_f64(),
        )
    }
}

/// What becomes of each, a few of them at once.
fn at_once<T: Send>(
    specimens: &[Specimen],
    what: impl Fn(&Specimen) -> Option<T> + Sync,
) -> Vec<T> {
    let next = Mutex::new(specimens.iter());
    let worker = || {
        let specimens = std::iter::from_fn(|| next.lock().unwrap().next());
        specimens.filter_map(&what).collect::<Vec<T>>()
    };
    std::thread::scope(|scope| {
        let workers = [(); AT_ONCE].map(|()| scope.spawn(worker));
        let done = workers.map(|worker| worker.join().unwrap());
        done.into_iter().flatten().collect()
    })
}

fn is_long() -> bool {
    std::env::var_os("SEMEL_TEST_LONG").is_some()
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap()
}

fn specimens(directory: &Path) -> Vec<Specimen> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(specimens(&path));
        } else if path.extension().is_some_and(|it| it == "toml") {
            found.extend(Specimen::read(path));
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Copies a specimen with other words for its tables, fields and paths.
fn renamed(name: &str, words: &[(&str, &str)], to: &Path) {
    std::fs::create_dir(to.join(name)).unwrap();
    for entry in std::fs::read_dir(root().join("examples").join(name)).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let text = words.iter().fold(text, |text, (from, into)| {
            assert_ne!(from, into);
            text.replace(from, into)
        });
        std::fs::write(to.join(name).join(path.file_name().unwrap()), text).unwrap();
    }
}

/// All specimens of the repository.
fn all() -> Vec<Specimen> {
    specimens(&root().join("examples"))
}

/// All of them in a long run, otherwise a pair for each attack.
fn chosen() -> Vec<Specimen> {
    let mut chosen = all();
    chosen.retain(|it| is_long() && it.mistake() != ON_FIRESTORE || QUICK.contains(&it.mistake()));
    chosen
}

/// How thorough the run is that was asked for.
fn profile() -> &'static [&'static str] {
    if is_long() { &["--full"] } else { &[] }
}

fn documentation() -> String {
    std::fs::read_to_string(root().join("docs/prove.md")).unwrap()
}

/// The mistakes that each attack convicts; in bold those that no other does.
fn convicted() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut convicted: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for specimen in all() {
        for attack in specimen.attacks() {
            let mistake = specimen.mistake();
            let shown = if specimen.needs_one() {
                format!("**{mistake}**")
            } else {
                mistake.to_owned()
            };
            convicted.entry(attack.name()).or_default().insert(shown);
        }
    }
    convicted
}

#[test]
fn every_mistake_has_a_right_form() {
    let all = all();
    let mistakes: BTreeSet<&str> = all.iter().map(Specimen::mistake).collect();
    assert!(mistakes.len() >= 44, "{mistakes:?}");
    for mistake in mistakes {
        let mut forms = all.iter().filter(|it| it.mistake() == mistake);
        let right = forms.clone().any(Specimen::is_right);
        assert!(right && !forms.all(Specimen::is_right), "{mistake}");
    }
}

#[test]
fn every_attack_convicts_a_specimen_and_is_tried_quickly() {
    let all = all();
    let quick = all.iter().filter(|it| QUICK.contains(&it.mistake()));
    let quick: BTreeSet<&str> = quick
        .flat_map(Specimen::attacks)
        .map(Attack::name)
        .collect();
    assert_eq!(quick, BTreeSet::from(Attack::ALL.map(Attack::name)));
}

#[test]
fn documentation_says_which_attack_convicts_what() {
    let documentation = documentation();
    for (attack, mistakes) in convicted() {
        let mistakes = Vec::from_iter(mistakes).join(", ");
        let row = format!("| `{attack}` | {mistakes} |");
        assert!(documentation.lines().any(|line| line == row), "{row}");
    }
}

#[test]
fn documentation_knows_every_expected_pattern() {
    let documentation = documentation();
    for Specimen { path, expected } in all() {
        for one in expected {
            if let Expectation::Broken { pattern, .. } = one {
                let known = documentation.contains(&format!("\n| {pattern} |"));
                assert!(known, "{}: {pattern}", path.display());
            }
        }
    }
}

#[test]
#[should_panic(expected = "is not an expectation")]
fn expectation_names_the_pattern() {
    Expectation::read("broken repeat effect-twice");
}

#[test]
fn wrong_forms_are_convicted_and_right_forms_acquitted() {
    SpecimenEnvironment::new().judge(&chosen(), profile());
}

/// Firestore keeps the locks of a process that was killed inside a transaction for a minute, so those that use one are
/// killed in long runs only.
#[test]
fn function_on_firestore_is_convicted_and_acquitted() {
    let environment = SpecimenEnvironment::new();
    if environment.firestore.is_none() {
        println!("NOT RUN: {ON_FIRESTORE}: {}", testbed::FIRESTORE_NOT_RUN);
        return;
    }
    let all = all().into_iter().filter(|it| it.mistake() == ON_FIRESTORE);
    let locks = |it: &Specimen| !it.is_right() || it.name().ends_with("transaction");
    let (locking, other): (Vec<_>, Vec<_>) = all.partition(locks);
    environment.judge(&other, profile());
    let without_kills = ["--only", "repeat,answer-lost,bad-key"];
    environment.judge(&locking, if is_long() { profile() } else { &without_kills });
}

#[test]
fn slow_dependency_is_tried_in_full() {
    let mut slow = all();
    slow.retain(|it| it.mistake() == "slow-bank");
    let more = ["--full", "--only", "dependency-fails"];
    SpecimenEnvironment::new().judge(&slow, &more);
}

#[test]
fn quick_profile_convicts_most_of_the_wrong_forms_soon() {
    if !is_long() {
        return;
    }
    let environment = SpecimenEnvironment::new();
    let mut wrong = chosen();
    wrong.retain(|it| !it.is_right());
    let tried = at_once(&wrong, |it| {
        let (convicted, seconds) = environment.convicts_quickly(it);
        println!(
            "{}: convicted quickly: {convicted}, {seconds:.1} s",
            it.name()
        );
        Some((convicted, seconds))
    });
    let convicted = tried.iter().filter(|(convicted, _)| *convicted).count();
    let mut seconds: Vec<f64> = tried.iter().map(|(_, seconds)| *seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let (median, longest) = (seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
    println!(
        "{convicted} of {} convicted, median {median:.1} s, longest {longest:.1} s",
        tried.len()
    );
    assert!(convicted as f64 >= QUICK_CONVICTS * tried.len() as f64);
    assert!(median <= QUICK_MEDIAN_SECONDS && longest <= QUICK_SECONDS);
}

#[test]
fn other_words_change_no_verdict() {
    let elsewhere = tempfile::tempdir().unwrap();
    let counter = [("players", "folk"), ("score", "tally"), ("player", "soul")];
    renamed("counter", &counter, elsewhere.path());
    let row = [
        ("row_task", "work_list"),
        ("row_shipped", "gone_out"),
        ("parcel", "bundle"),
        ("processing", "underway"),
    ];
    renamed("processing-row", &row, elsewhere.path());
    let marker = [("marker_seen", "noticed"), ("marker_payout", "paid_out")];
    renamed("seen-marker", &marker, elsewhere.path());
    let all = specimens(elsewhere.path());
    assert!(all.len() >= 6, "{all:#?}");
    SpecimenEnvironment::new().judge(&all, profile());
}
