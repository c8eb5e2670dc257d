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

use serde_json::Value;
use std::collections::BTreeSet;
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
    "hash-key",
    "inner-retry",
    "last-one",
    "memory-set",
    "message-key",
    "redis-lock",
    "seen-marker",
    "short-memory",
    "webhook",
];

/// How much of the wrong forms the quick profile convicts, and in how many seconds: each, and half of them.
const QUICK_CONVICTS: f64 = 0.9;
const QUICK_SECONDS: f64 = 30.0;
const QUICK_MEDIAN_SECONDS: f64 = 15.0;

/// A scenario and what its first lines expect.
#[derive(Clone, Debug)]
struct Specimen {
    path: PathBuf,
    /// `held`, or `broken ATTACK HOW PATTERN`.
    expected: Vec<String>,
}

// === impl Specimen ===

impl Specimen {
    /// Nothing for a scenario that expects nothing.
    fn read(path: PathBuf) -> Option<Self> {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter_map(|it| it.strip_prefix("# expect: "));
        let expected: Vec<String> = lines.map(str::to_owned).collect();
        (!expected.is_empty()).then_some(Self { path, expected })
    }

    /// Its directory.
    fn mistake(&self) -> &str {
        let directory = self.path.parent().and_then(Path::file_name);
        directory.unwrap().to_str().unwrap()
    }

    fn is_right(&self) -> bool {
        self.expected == ["held"]
    }

    /// The attacks that convict it.
    fn attacks(&self) -> impl Iterator<Item = &str> {
        let broken = self
            .expected
            .iter()
            .filter_map(|it| it.strip_prefix("broken "));
        broken.filter_map(|it| it.split(' ').next())
    }

    fn name(&self) -> String {
        let directory = self.mistake();
        let file = self.path.file_stem().unwrap();
        format!("{directory}/{}", file.display())
    }

    /// What is wrong with the verdict, if anything is.
    fn complaint(&self, environment: &SpecimenEnvironment) -> Option<String> {
        let output = environment.prove(&self.path, is_long());
        let said = String::from_utf8_lossy(&output.stdout);
        let Ok(report) = serde_json::from_str::<Value>(&said) else {
            return Some(format!("no report: {output:?}"));
        };
        println!(
            "{} took {:.1} s",
            self.name(),
            report["took_ms"].as_f64().unwrap() / 1e3
        );
        let missing: Vec<_> = self
            .expected
            .iter()
            .filter(|it| !came(it, &report, output.status.code()))
            .collect();
        (!missing.is_empty()).then(|| format!("expected {missing:?}, got {}", summary(&report)))
    }
}

/// Whether an expectation was met.
fn came(expected: &str, report: &Value, code: Option<i32>) -> bool {
    let words: Vec<&str> = expected.split(' ').collect();
    match words.as_slice() {
        ["held"] => code == Some(0),
        ["broken", attack, how, pattern @ ..] => {
            let attacks = report["attacks"].as_array().unwrap();
            let pattern = pattern.join(" ");
            let named = |it: &Value| pattern.is_empty() || it["pattern"]["name"] == *pattern;
            code == Some(1)
                && attacks.iter().any(|it| {
                    it["attack"] == *attack
                        && it["verdict"] == "broken"
                        && it["how"] == *how
                        && named(it)
                })
        }
        _ => panic!("{expected:?} is not an expectation"),
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
        }
    }

    fn prove(&self, scenario: &Path, in_full: bool) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        command.arg("prove").arg(scenario).arg("--json");
        if in_full {
            command.arg("--full");
        }
        let database = testbed::fresh_database("specimen").unwrap();
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("PYTHONPATH", root().join("python"))
            .env("DATABASE_URL", database)
            .env("REDIS_URL", &self.redis)
            .output()
            .unwrap()
    }

    /// Judges all of them; nobody may be judged wrongly.
    fn judge(&self, specimens: &[Specimen]) {
        let judged = at_once(specimens, |it| Some((it.name(), it.complaint(self)?)));
        let complaints = judged.iter().map(|(name, why)| format!("{name}: {why}"));
        let complaints: Vec<String> = complaints.collect();
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }

    /// Whether the quick profile convicts it, and in how many seconds.
    fn convicts_quickly(&self, specimen: &Specimen) -> (bool, f64) {
        let began = Instant::now();
        let output = self.prove(&specimen.path, false);
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

/// All of them in a long run, otherwise a pair for each attack.
fn chosen() -> Vec<Specimen> {
    let mut all = specimens(&root().join("examples"));
    all.retain(|it| is_long() || QUICK.contains(&it.mistake()));
    all
}

#[test]
fn every_attack_that_convicts_a_specimen_is_tried_quickly() {
    let all = specimens(&root().join("examples"));
    let mistakes: BTreeSet<&str> = all.iter().map(Specimen::mistake).collect();
    assert!(mistakes.len() >= 30, "{mistakes:?}");
    for mistake in mistakes {
        let mut forms = all.iter().filter(|it| it.mistake() == mistake);
        let right = forms.clone().any(Specimen::is_right);
        assert!(right && !forms.all(Specimen::is_right), "{mistake}");
    }
    let quick = all.iter().filter(|it| QUICK.contains(&it.mistake()));
    let quick: BTreeSet<&str> = quick.flat_map(Specimen::attacks).collect();
    let named: BTreeSet<&str> = all.iter().flat_map(Specimen::attacks).collect();
    assert_eq!(quick, named);
}

#[test]
fn wrong_forms_are_convicted_and_right_forms_acquitted() {
    SpecimenEnvironment::new().judge(&chosen());
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
    SpecimenEnvironment::new().judge(&all);
}
