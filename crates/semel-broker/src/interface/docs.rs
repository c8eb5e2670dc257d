//! The tables of `docs/broker.md` that say what is served: made of the table that requests are checked by.

use super::listing::{ListedField, ListedService, services};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What stands around them on the page.
const BEGIN: &str = "<!-- what is served: begin. Made by `SEMEL_UPDATE_DOCS=1 cargo test -p semel-broker docs` -->\n";
const END: &str = "<!-- what is served: end -->";

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

#[test]
fn the_tables_of_the_page_are_those_made_here() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/broker.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first mark");
    let (_, after) = rest.split_once(END).expect("the page has the second mark");
    let made = format!("{before}{BEGIN}\n{}\n{END}{after}", page_part());
    if std::env::var_os("SEMEL_UPDATE_DOCS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(
        kept == made,
        "docs/broker.md is out of date: run SEMEL_UPDATE_DOCS=1 cargo test -p semel-broker docs"
    );
}
