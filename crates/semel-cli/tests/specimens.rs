//! `semel prove` on the specimens of `examples/`: every wrong form is convicted by the attack it names, every right form
//! is acquitted. Quick; with `SEMEL_TEST_LONG=1` in full.
//!
//! This target is not part of a plain `cargo test`: it has a step of its own in `cargo xtask test`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop at the first surprise, and tells how long each specimen took"
)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// How many are judged at once. Most of their time is waiting.
const AT_ONCE: usize = 3;

/// A scenario and what its first lines expect.
#[derive(Clone, Debug)]
struct Specimen {
    path: PathBuf,
    /// `held`, or `broken ATTACK HOW`.
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

    fn name(&self) -> String {
        let directory = self.path.parent().and_then(Path::file_name).unwrap();
        let file = self.path.file_stem().unwrap();
        format!("{}/{}", directory.display(), file.display())
    }

    /// Whether it is a Celery task behind the package's own server.
    fn is_of_celery(&self) -> bool {
        self.name().starts_with("celery-")
    }

    /// What is wrong with the verdict, if anything is.
    fn complaint(&self, environment: &SpecimenEnvironment) -> Option<String> {
        let output = environment.prove(&self.path);
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
        ["broken", attack, how] => {
            let attacks = report["attacks"].as_array().unwrap();
            code == Some(1)
                && attacks.iter().any(|it| {
                    it["attack"] == *attack && it["verdict"] == "broken" && it["how"] == *how
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
            "\n    {} {} {}",
            it["attack"],
            it["verdict"],
            why.unwrap_or(&Value::Null)
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

    fn prove(&self, scenario: &Path) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        command.arg("prove").arg(scenario).arg("--json");
        if std::env::var_os("SEMEL_TEST_LONG").is_some() {
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
        let next = Mutex::new(specimens.iter());
        let worker = || {
            let specimens = std::iter::from_fn(|| next.lock().unwrap().next());
            let judged = specimens.filter_map(|it| Some((it.name(), it.complaint(self)?)));
            judged.map(|(name, why)| format!("{name}: {why}")).collect()
        };
        let complaints: Vec<String> = std::thread::scope(|scope| {
            let workers = [(); AT_ONCE].map(|()| scope.spawn(worker));
            let complaints = workers.map(|worker| -> Vec<_> { worker.join().unwrap() });
            complaints.concat()
        });
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
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

#[test]
fn wrong_forms_are_convicted_and_right_forms_acquitted() {
    judge_whole(|specimen| !specimen.is_of_celery(), 13, 13);
}

#[test]
fn mistakes_of_celery_guides_are_convicted_and_their_once_forms_acquitted() {
    judge_whole(Specimen::is_of_celery, 8, 7);
}

fn judge_whole(which: impl Fn(&Specimen) -> bool, right_min: usize, wrong_min: usize) {
    let mut all = specimens(&root().join("examples"));
    all.retain(which);
    let (right, wrong): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.expected == ["held"]);
    assert!(
        right.len() >= right_min && wrong.len() >= wrong_min,
        "{all:#?}"
    );
    SpecimenEnvironment::new().judge(&all);
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
