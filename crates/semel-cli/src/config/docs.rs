//! Text for people that is made of the tables: `semel init`'s file, `docs/config.md`, and the table of sources in
//! `docs/promises.md`.

use super::fields::{Fallback, Field, Level};
use super::terms::{RouteTerms, defaults, terms};
use super::values::written;
use crate::args::RunArgs;
use clap::Args;
use semel_gate::settings::{Promise, Redelivery, Source, Terms, Webhook};
use std::time::Duration;

/// The text of `docs/config.md`, with a word in braces for each table.
const PAGE: &str = include_str!("page.md");

/// Fields that a first file sets; all others stand there as comments.
const SET_AT_FIRST: [&str; 3] = ["upstream", "name", "path"];

/// A commented `semel.toml` that is good as it is.
pub(crate) fn commented_file() -> String {
    let head = "# The configuration of `semel gate`. `semel check` judges it; docs/config.md explains it.\n\
                # What is commented out shows the default, or an example where there is none.\n\n";
    let top = Level::Gate.fields().iter();
    let top = top
        .filter(|field| field.name != "route")
        .map(|field| setting(field, true));
    let route = Level::Route.fields().iter();
    let route = route.map(|field| setting(field, field.name != "upstream"));
    let mut file = String::from(head);
    file.extend(top);
    file.push_str("[[route]]\n");
    file.extend(route);
    file.truncate(file.trim_end().len());
    file + "\n"
}

fn setting(field: &Field, may_be_set: bool) -> String {
    let Field { name, doc, .. } = field;
    let set = may_be_set && SET_AT_FIRST.contains(&name.as_str());
    let comment = if set { "" } else { "# " };
    format!("# {doc}\n{comment}{name} = {}\n\n", field.example())
}

/// `docs/config.md`.
pub(crate) fn page() -> String {
    let webhooks = Webhook::ALL.into_iter().map(Source::Webhook);
    let sources = Source::ALL.into_iter().chain(webhooks);
    let sources: String = sources.map(source_row).collect();
    let tables = [
        ("{gate}\n", rows(Level::Gate)),
        ("{route}\n", rows(Level::Route)),
        ("{sources}\n", sources),
        ("{flags}\n", flags()),
    ];
    let fill = |page: String, (word, rows): (&str, String)| page.replace(word, &rows);
    tables.into_iter().fold(PAGE.to_owned(), fill)
}

fn rows(level: Level) -> String {
    level.fields().iter().map(row).collect()
}

fn row(field: &Field) -> String {
    let Field {
        name, value, doc, ..
    } = field;
    let default = match field.fallback() {
        Fallback::Required => "must be given".into(),
        Fallback::Value(toml) => format!("`{toml}`"),
        Fallback::Words(words) => words.into(),
    };
    format!("| `{name}` | {value} | {default} | {doc} |\n")
}

fn source_row(source: Source) -> String {
    let nothing = RouteTerms {
        lease: Duration::from_secs(30),
        ..RouteTerms::default()
    };
    let demands = RouteTerms {
        promise: Some(Promise::AtMostOnce),
        ..nothing.clone()
    };
    let demanded = terms(source, &demands).retention;
    let terms = terms(source, &nothing);
    let some = |duration: Option<Duration>| duration.map_or_else(|| "–".into(), written);
    format!(
        "| `{source}` | `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        defaults(source).key,
        some(terms.deadline),
        attempts(source, &terms),
        written(terms.timeout),
        written(terms.retention),
        some(terms.horizon.map(|_| demanded)),
        some(terms.horizon),
        some(terms.delivers_for),
        some(terms.gap),
        written(terms.wait),
    )
}

fn attempts(source: Source, terms: &Terms) -> String {
    match terms.sender_attempts.most {
        _ if !source.is_broker() => "–".into(),
        None if terms.redelivery(source) == Redelivery::Uncounted => "its schedule".into(),
        None => "unlimited".into(),
        Some(most) => most.to_string(),
    }
}

fn flags() -> String {
    let command = RunArgs::augment_args(clap::Command::new("gate"));
    let row = |flag: &clap::Arg| {
        let long = flag.get_long()?;
        let variable = flag.get_env()?.to_string_lossy().into_owned();
        let help = flag.get_help()?;
        Some(format!("| `--{long}` | `{variable}` | {help} |\n"))
    };
    command.get_arguments().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sources::markdown;

    /// The head of the table of sources, which ends at the next empty line.
    const HEAD: &str = "| source | kind | attempts | span | gap | unfinished work becomes a letter |\n|---|---|---|---|---|---|\n";

    #[test]
    fn the_table_of_sources_is_the_one_made_here() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/promises.md");
        let kept = std::fs::read_to_string(path).unwrap();
        let (before, rest) = kept.split_once(HEAD).expect("the table's head");
        let end = rest.find("\n\n").map(|at| at + 1).expect("the table's end");
        let made = format!("{before}{}{}{}", HEAD, markdown(), &rest[end..]);
        if std::env::var_os("SEMEL_UPDATE_DOCS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(
            kept == made,
            "docs/promises.md is out of date: run SEMEL_UPDATE_DOCS=1 cargo test -p semel-cli"
        );
    }

    #[test]
    fn the_page_of_the_repository_is_the_one_made_here() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        if std::env::var_os("SEMEL_UPDATE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == page(),
            "docs/config.md is out of date: run SEMEL_UPDATE_DOCS=1 cargo test -p semel-cli"
        );
    }
}
