//! The tables of `docs/broker.md` that say what is served: made of the table that requests are checked by.

use super::listing::{ListedField, ListedService, services};
use std::collections::BTreeMap;
use std::fmt::Write;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What makes them again.
const COMMAND: &str = "SEMEL_UPDATE_DOCS=1 cargo test -p semel-broker docs";

fn page_part() -> String {
    let services = services();
    let mut part = String::from("| service | served | refused |\n|---|---|---|\n");
    for service in &services {
        let methods = |standing: &str| {
            let methods = service.methods.iter().filter(|it| it.standing == standing);
            let names: Vec<_> = methods.map(|it| format!("`{}`", it.name)).collect();
            names.join(", ")
        };
        let row = format!(
            "| `{}` | {} | {} |",
            service.name,
            methods("served"),
            methods("refused")
        );
        writeln!(part, "{}", row.replace("|  |", "| – |")).unwrap();
    }
    part += "\nEvery field of these is served, but for those listed here.\n";
    for (standing, title) in [
        ("refused", "not served: who sets it is refused"),
        ("kept", "kept and shown, without effect"),
        ("ignored", "taken and forgotten"),
    ] {
        write!(part, "\n| {title} | because |\n|---|---|\n").unwrap();
        for (name, why) in fields(&services, standing) {
            writeln!(part, "| `{name}` | {why} |").unwrap();
        }
        if standing == "refused" {
            for (name, why) in refused_methods(&services) {
                writeln!(part, "| `{name}()` | {why} |").unwrap();
            }
        }
    }
    part
}

/// The fields that stand so, by the names of their messages.
fn fields(services: &[ListedService], standing: &str) -> BTreeMap<String, String> {
    let messages = services.iter().flat_map(|service| &service.messages);
    let fields = messages.flat_map(|message| {
        let is_so = |field: &&ListedField| field.standing == standing;
        let named = |field: &ListedField| {
            let name = format!("{}.{}", message.name, field.name);
            (
                name.trim_start_matches("google.").to_owned(),
                field.why.clone(),
            )
        };
        message
            .fields
            .iter()
            .filter(is_so)
            .map(named)
            .collect::<Vec<_>>()
    });
    fields.collect()
}

fn refused_methods(services: &[ListedService]) -> BTreeMap<String, String> {
    let mut refused = BTreeMap::new();
    for service in services {
        for method in service.methods.iter().filter(|it| it.standing == "refused") {
            let name = format!("{}.{}", service.name, method.name);
            refused.insert(
                name.trim_start_matches("google.").to_owned(),
                method.why.clone(),
            );
        }
    }
    refused
}

/// The table of the cases of others' tests, of `clients/cases.toml`.
fn cases_part() -> String {
    let list = std::fs::read_to_string(format!("{ROOT}/clients/cases.toml")).unwrap();
    let list: toml::Table = list.parse().unwrap();
    let differs = list["emulator"].as_table().unwrap();
    let mut part = String::new();
    for suite in list["suite"].as_array().unwrap() {
        let name = suite["name"].as_str().unwrap();
        write!(part, "| {name} | ours |\n|---|---|\n").unwrap();
        for case in suite["cases"].as_array().unwrap() {
            let theirs = case["theirs"].as_str().unwrap();
            let ours = match case.get("ours") {
                Some(ours) => format!("`{}`", there(ours.as_str().unwrap())),
                None => format!("none: {}", case["not"].as_str().unwrap()),
            };
            writeln!(part, "| {theirs} | {ours} |").unwrap();
        }
        part += "\n";
    }
    part += "Google's own emulator of Pub/Sub (0.8.20) does otherwise in these cases of `pubsub_cases.py`:\n\n";
    part += "| case | there |\n|---|---|\n";
    for (case, what) in differs {
        there(&format!("pubsub_cases.py {case}"));
        writeln!(part, "| `{case}` | {} |", what.as_str().unwrap()).unwrap();
    }
    part
}

/// A test that the list names, after a look at whether it is there and is run.
fn there(test: &str) -> &str {
    let words: Vec<_> = test.split(' ').collect();
    let read = |path: String| std::fs::read_to_string(format!("{ROOT}/clients/{path}")).unwrap();
    let runs = match words.as_slice() {
        // Each program runs a list of parts.
        ["node", file, part] => {
            let source = read(format!("node/{file}"));
            let begin = ["const CASES = [", "for (const part of ["];
            let mut lists = begin.into_iter().filter_map(|it| source.split_once(it));
            let (_, list) = lists.next().unwrap();
            let (list, _) = list.split_once(']').unwrap();
            list.split(',').any(|it| it.trim() == *part)
        }
        [file @ ("pubsub_cases.py" | "tasks_cases.py"), case] => {
            read(format!("python/{file}")).contains(&format!("\n@case\ndef {case}("))
        }
        [file, part] => {
            let source = read(format!("python/{file}"));
            let (_, end) = source.split_once("\ndef main(").unwrap();
            *part == "main" || end.contains(part)
        }
        _ => panic!("{test} is not a test"),
    };
    assert!(runs, "{test} is not there, or not run");
    test
}

/// The page with what is made between two marks.
fn with_part(page: &str, name: &str, part: &str) -> String {
    let begin = format!("<!-- {name}: begin. Made by `{COMMAND}` -->\n");
    let end = format!("<!-- {name}: end -->");
    let (before, rest) = page
        .split_once(&begin)
        .expect("the page has the first mark");
    let (_, after) = rest.split_once(&end).expect("the page has the second mark");
    format!("{before}{begin}\n{part}\n{end}{after}")
}

#[test]
fn the_tables_of_the_page_are_those_made_here() {
    let path = format!("{ROOT}/docs/broker.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let made = with_part(&page, "what is served", &page_part());
    let made = with_part(&made, "cases", &cases_part());
    if std::env::var_os("SEMEL_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == made, "docs/broker.md is out of date: run {COMMAND}");
}
