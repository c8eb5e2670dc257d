//! The limits have teeth: each kind of growth is seen and named.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::examine;
use super::modules::{self, File};
use super::phrases::{self, DocComment};

const PHRASES: &str = "[[phrase]]\nfind = [\"by and by\"]\nwrite = \"soon\"\n";

/// A small repository within its limits.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().expect("a temporary directory"));
        repository.write("xtask/tidy/phrases.toml", PHRASES);
        repository.write("xtask/tidy/limits.toml", "");
        repository.write("crates/shop/Cargo.toml", "[package]\n");
        repository.write("crates/shop/src/lib.rs", "mod cart;\nmod till;\n");
        repository.write("crates/shop/src/cart.rs", "use crate::till::Till;\n");
        repository.write(
            "crates/shop/src/till.rs",
            "/// Takes money.\nstruct Till;\n",
        );
        repository.write(
            "README.md",
            "# Shop\n\n[here](#shop) and [there](crates/shop)\n",
        );
        let git = Command::new("git")
            .arg("init")
            .arg("-q")
            .current_dir(repository.0.path())
            .status();
        assert!(git.expect("git runs").success());
        repository.lower();
        repository
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.0.path().join(path)).expect("a file")
    }

    fn findings(&self) -> String {
        examine(self.0.path(), false)
            .expect("readable")
            .findings
            .join("\n")
    }

    fn lower(&self) {
        let report = examine(self.0.path(), true).expect("readable");
        assert_eq!(report.findings, Vec::<String>::new());
    }

    fn raise(&self, from: &str, to: &str) {
        let limits = self.read("xtask/tidy/limits.toml");
        assert!(limits.contains(from), "{limits}");
        self.write("xtask/tidy/limits.toml", &limits.replace(from, to));
    }
}

#[track_caller]
fn names(findings: &str, parts: &[&str]) {
    for part in parts {
        assert!(findings.contains(part), "no {part:?} in:\n{findings}");
    }
}

#[test]
fn a_cycle_is_named_with_its_edges() {
    let shop = Repository::new();
    shop.write(
        "crates/shop/src/till.rs",
        "/// Takes money.\nfn pay(_: crate::cart::Cart) {}\n",
    );
    names(
        &shop.findings(),
        &[
            "crates/shop/src/cart.rs:1: cart uses till",
            "crates/shop/src/till.rs:2: till uses cart",
            "crates/shop has a cycle of 2 modules, above its limit of 1",
        ],
    );
}

#[test]
fn a_phrase_is_named_with_its_place_and_a_suggestion() {
    let shop = Repository::new();
    shop.write(
        "crates/shop/src/till.rs",
        "/// Takes money.\nstruct Till;\n// Coins by and by.\n",
    );
    names(
        &shop.findings(),
        &[
            "crates/shop/src/till.rs:3: \"by and by\": soon",
            "1 lines with phrases",
        ],
    );
}

#[test]
fn the_places_of_an_area_are_listed() {
    let shop = Repository::new();
    shop.write("docs/a.md", "# A\n\nBy and by.\n");
    let counts = examine(shop.0.path(), false).expect("readable").counts;
    let places: Vec<_> = counts.places("docs").collect();
    assert_eq!(places, ["docs/a.md:3: \"by and by\": soon"]);
}

#[test]
fn a_phrase_counts_in_names_and_documents() {
    let shop = Repository::new();
    shop.write("README.md", "# Shop\n\nCoins **By and by**.\n");
    shop.write(
        "crates/shop/src/till.rs",
        "/// Takes money.\nstruct Till;\nfn coins_by_and_by() {}\n",
    );
    names(
        &shop.findings(),
        &["README.md:3:", "crates/shop/src/till.rs:3:"],
    );
}

#[test]
fn a_file_too_many_is_named_with_its_folder() {
    let shop = Repository::new();
    shop.write("crates/shop/src/coin.rs", "");
    names(
        &shop.findings(),
        &[
            "crates/shop/src\n",
            "4 files in one folder, above its limit of 3",
        ],
    );
}

#[test]
fn a_dead_link_is_named_with_its_place() {
    let shop = Repository::new();
    shop.write(
        "README.md",
        "# Shop\n\n[gone](docs/gone.md) [no](#nowhere)\n\n`[a](b)`\n```\n[c](d)\n```\n",
    );
    let findings = shop.findings();
    names(
        &findings,
        &[
            "README.md:3: dead link docs/gone.md",
            "README.md:3: dead link #nowhere",
        ],
    );
    assert_eq!(findings.matches("dead link").count(), 2, "{findings}");
}

#[test]
fn a_clause_at_the_start_of_a_doc_comment_is_named() {
    let shop = Repository::new();
    shop.write(
        "crates/shop/src/till.rs",
        "/// What takes money.\nstruct Till;\n",
    );
    names(
        &shop.findings(),
        &["crates/shop/src/till.rs:1: begins with \"What\"", "100 %"],
    );
}

#[test]
fn lines_are_limited_in_hundreds() {
    let shop = Repository::new();
    let lines = |count: usize| "struct Till;\n".repeat(count);
    shop.write("crates/shop/src/till.rs", &lines(97));
    assert_eq!(shop.findings(), "");
    shop.write("crates/shop/src/till.rs", &lines(98));
    names(
        &shop.findings(),
        &[
            "200 product lines, above its limit of 100",
            "200 lines of Rust",
        ],
    );
}

#[test]
fn tests_are_no_product() {
    let shop = Repository::new();
    shop.write("crates/shop/src/till/tests.rs", &"// coin\n".repeat(100));
    let findings = shop.findings();
    names(&findings, &["200 lines of Rust"]);
    assert!(!findings.contains("product"), "{findings}");
}

#[test]
fn a_count_below_its_limit_asks_for_a_lower_limit() {
    let shop = Repository::new();
    shop.raise("cycle = 1", "cycle = 2");
    names(
        &shop.findings(),
        &["a cycle of 1 modules, below its limit of 2", "tidy --lower"],
    );
    shop.lower();
    assert!(shop.read("xtask/tidy/limits.toml").contains("cycle = 1"));
}

#[test]
fn lowering_raises_nothing() {
    let shop = Repository::new();
    shop.write("crates/shop/src/coin.rs", "");
    let report = examine(shop.0.path(), true).expect("readable");
    names(&report.findings.join("\n"), &["above its limit of 3"]);
}

#[test]
fn an_area_needs_limits_until_it_is_gone() {
    let shop = Repository::new();
    shop.write("docs/a.md", "# A\n");
    names(
        &shop.findings(),
        &["docs has 0 lines with phrases that the field does not use and no limit"],
    );
    shop.lower();
    fs::remove_file(shop.0.path().join("docs/a.md")).expect("removed");
    names(&shop.findings(), &["there is no docs any more"]);
}

#[test]
fn the_table_shows_today_limit_and_target() {
    let shop = Repository::new();
    let table = examine(shop.0.path(), false).expect("readable").table;
    names(
        &table,
        &[
            "today/limit/target",
            "crates/shop",
            "1/1/3",
            "100/100/105000",
        ],
    );
}

fn cycle_of(files: &[(&str, &str)]) -> Vec<String> {
    let file = |&(path, text)| File {
        path,
        shown: path,
        text,
    };
    modules::largest_cycle(&files.iter().map(file).collect::<Vec<_>>()).modules
}

#[test]
fn a_reexport_leads_to_the_module_behind_it() {
    let root = (
        "lib.rs",
        "mod a; mod b; mod c; pub use c::Deep; pub use crate::a::{Thing as Name};",
    );
    let through_root = [
        root,
        ("a.rs", "use crate::Deep;"),
        ("c.rs", "fn f(_: crate::Name) {}"),
    ];
    assert_eq!(cycle_of(&through_root), ["a", "c"]);
    let through_module = [
        root,
        ("a.rs", "use crate::b::Far;"),
        ("b.rs", "pub(crate) use crate::c::Far;"),
        ("c/inner.rs", "use super::super::a::Thing;"),
    ];
    assert_eq!(cycle_of(&through_module), ["a", "c"]);
}

#[test]
fn text_and_tests_lead_nowhere() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b;"),
        (
            "b.rs",
            "// crate::a\n/* crate::a /* */ crate::a */ const A: &str = \"crate::a\"; const B: &str = r#\"\"crate::a\"#;\n\
             const C: char = '\"'; fn f<'a>() {} #[cfg(test)] mod tests { use crate::a; }",
        ),
    ];
    assert_eq!(cycle_of(&files).len(), 1);
    let with_code = [
        files[0],
        files[1],
        (
            "b.rs",
            "const C: char = '\\''; fn f() { crate::a::g::<u8>() }",
        ),
    ];
    assert_eq!(cycle_of(&with_code), ["a", "b"]);
}

#[test]
fn super_within_an_inline_module_stays_in_its_file() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "use crate::b::X; mod inner { use super::b::Y; use super::super::b::Z; }",
        ),
        ("b.rs", "mod inner { use super::a::Y; }"),
    ];
    assert_eq!(cycle_of(&files).len(), 1);
    let out = [
        files[0],
        files[1],
        ("b.rs", "mod inner { use super::super::a::Y; }"),
    ];
    assert_eq!(cycle_of(&out), ["a", "b"]);
}

#[test]
fn a_doc_comment_is_its_lines_together() {
    let text = "//! Which.\n//! Who.\n\n/// Returns.\n/// Where.\nfn f() {}\n//// How.\n// When.\n";
    let comments = phrases::doc_comments(text);
    let first = |line, first_word| DocComment { line, first_word };
    assert_eq!(comments, [first(1, "Which"), first(4, "Returns")]);
    assert!(comments[0].begins_with_clause() && !comments[1].begins_with_clause());
}
