//! The reference pages have every name that the code has: of headers, SQL functions, roles and log fields.

use crate::support::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The crates whose log lines a gate writes.
const LOGGING: [&str; 8] = [
    "semel",
    "semel-ui",
    "semel-gate",
    "semel-cli",
    "semel-postgres",
    "semel-redis",
    "semel-embedded",
    "semel-landing",
];

/// The words in backticks of a page.
fn page(name: &str) -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/reference").join(name)).unwrap();
    let words = page.split('`').skip(1).step_by(2);
    words.map(str::to_lowercase).collect()
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found
}

/// What the product says in these files, without their tests.
fn product(directory: &str, ending: &str) -> Vec<String> {
    let files = files(&root().join(directory), ending);
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    files
        .iter()
        .map(|path| text(path).split("#[cfg(test)]").next().unwrap().to_owned())
        .collect()
}

/// What stands between these, everywhere.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    let rests = text.split(before).skip(1);
    rests.map(move |rest| rest.split(after).next().unwrap())
}

#[test]
fn every_header_that_the_gate_sets_is_on_its_page() {
    let page = page("headers.md");
    let sources = product("crates/semel-gate/src", "rs");
    let names = |text| between(text, "HeaderName::from_static(\"", '"');
    let names: BTreeSet<_> = sources.iter().flat_map(|text| names(text)).collect();
    assert!(names.len() > 10, "{names:?}");
    let kept = semel::outcome::HEADERS_KEPT;
    let all = names.into_iter().chain(kept);
    let missing: Vec<_> = all.filter(|name| !page.contains(*name)).collect();
    assert!(
        missing.is_empty(),
        "not in docs/reference/headers.md: {missing:?}"
    );
}

#[test]
fn every_sql_function_and_role_is_on_its_page() {
    let (page, roles) = (page("sql.md"), self::page("roles.md"));
    let migrations = product("crates/semel-postgres/migrations", "sql");
    let mut functions = BTreeSet::new();
    for text in &migrations {
        functions.extend(between(text, "CREATE OR REPLACE FUNCTION ", '('));
        for role in between(text, "CREATE ROLE ", ' ') {
            assert!(
                roles.contains(role),
                "{role} is not in docs/reference/roles.md"
            );
        }
        for state in between(text, "ERRCODE = '", '\'') {
            assert!(
                page.contains(&state.to_lowercase()),
                "{state} is not in docs/reference/sql.md"
            );
        }
    }
    assert!(functions.len() > 15, "{functions:?}");
    for name in functions {
        let with_arguments = format!("{name}(");
        let has = |word: &String| word == name || word.starts_with(&with_arguments);
        assert!(
            page.iter().any(has),
            "{name} is not in docs/reference/sql.md"
        );
    }
}

#[test]
fn every_log_field_is_on_its_page() {
    let page = page("log.md");
    let mut fields = BTreeSet::new();
    for name in LOGGING {
        for text in product(&format!("crates/{name}/src"), "rs") {
            for level in ["info", "warn", "error", "$level"] {
                for rest in text.split(&format!("tracing::{level}!(")).skip(1) {
                    fields.extend(fields_of(rest));
                }
            }
        }
    }
    assert!(fields.len() > 40, "{fields:?}");
    let missing: Vec<_> = fields.difference(&page).collect();
    assert!(
        missing.is_empty(),
        "not in docs/reference/log.md: {missing:?}"
    );
}

/// The names of a macro's fields: what stands first in each of its arguments.
fn fields_of(rest: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    let mut arguments = vec![String::new()];
    for c in rest.chars() {
        match (quoted, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => {
                quoted = !quoted;
                arguments.last_mut().unwrap().push('"');
            }
            (true, _) => {}
            (false, '(' | '[' | '{') => depth += 1,
            (false, ')' | ']' | '}') => depth -= 1,
            (false, ',') if depth == 1 => arguments.push(String::new()),
            (false, _) if depth == 1 => arguments.last_mut().unwrap().push(c),
            (false, _) => {}
        }
        if depth == 0 {
            break;
        }
    }
    let field = |argument: &String| {
        let argument = argument.trim().trim_start_matches(['%', '?']);
        let name: String = argument
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '_')
            .collect();
        let other = argument.starts_with('"') || argument.starts_with("target:");
        (!other && !name.is_empty()).then_some(name)
    };
    arguments.iter().filter_map(field).collect()
}

/// Links of the pages lead somewhere.
#[test]
fn every_link_of_these_pages_leads_to_a_file() {
    for name in [
        "README.md",
        "deploy/README.md",
        "docs/deploy.md",
        "docs/telemetry.md",
        "docs/reference/headers.md",
        "docs/reference/sql.md",
        "docs/reference/roles.md",
        "docs/reference/log.md",
    ] {
        let path = root().join(name);
        let page = std::fs::read_to_string(&path).unwrap();
        for link in between(&page, "](", ')') {
            let file = link.split('#').next().unwrap();
            let there = path.parent().unwrap().join(file).exists();
            assert!(there, "{name} leads to {link}");
        }
    }
}

/// PostgreSQL's `search_path` begins with a schema of the user's own name, and ours is `semel`.
#[test]
fn no_example_has_a_user_of_the_schemas_name() {
    let mut pages = files(&root().join("deploy"), "toml");
    pages.extend(files(&root().join("deploy"), "yaml"));
    pages.extend(["README.md", "docs/config.md", "docs/deploy.md"].map(|name| root().join(name)));
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for wrong in ["//semel@", "//semel:"] {
            assert!(!text.contains(wrong), "{page:?} has a user semel");
        }
    }
}
