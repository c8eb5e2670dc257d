//! `semel warehouse sql`: what removes duplicates for certain, in the words of a database.
//!
//! Per event the winner is the minimum of a total order over facts of its deliveries. A minimum does not care how
//! deliveries are divided, ordered or repeated, so every merge and the view agree. The statements are files beside this
//! one; here are the lists that all of them share.

mod dialect;

use crate::args::warehouse::{Dialect, Part, SqlArgs, WarehouseArgs, WarehouseCommand};
use crate::out::to_stdout;
use clap::ValueEnum;
use std::time::Duration;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
struct Column {
    name: &'static str,
    kind: Kind,
    null: Null,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Compared by its bytes.
    Name,
    Text,
    Bytes,
    Time,
    Integer,
    Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Null {
    Never,
    Allowed,
}

/// Of landing and effects, as docs/warehouse.md has them.
const COLUMNS: [Column; 10] = [
    column("event_id", Kind::Name, Null::Never),
    column("fingerprint", Kind::Name, Null::Never),
    column("message_id", Kind::Name, Null::Never),
    column("source", Kind::Name, Null::Never),
    column("published_at", Kind::Time, Null::Never),
    column("received_at", Kind::Time, Null::Never),
    column("delivery_id", Kind::Name, Null::Never),
    column("attempt", Kind::Integer, Null::Allowed),
    column(VERSION, Kind::Integer, Null::Never),
    column("payload", Kind::Text, Null::Never),
];

/// With the handler's answer.
const ANSWER: [Column; 2] = [
    column("answer_status", Kind::Status, Null::Never),
    column("answer", Kind::Text, Null::Never),
];

/// Of what could not land.
const FAULTS: [Column; 13] = [
    column("event_id", Kind::Name, Null::Allowed),
    column("fingerprint", Kind::Name, Null::Allowed),
    column("message_id", Kind::Name, Null::Never),
    column("source", Kind::Name, Null::Never),
    column("published_at", Kind::Time, Null::Never),
    column("received_at", Kind::Time, Null::Never),
    column("delivery_id", Kind::Name, Null::Never),
    column("attempt", Kind::Integer, Null::Allowed),
    column("fault", Kind::Name, Null::Never),
    column("detail", Kind::Text, Null::Never),
    column("payload", Kind::Bytes, Null::Never),
    column("answer_status", Kind::Status, Null::Allowed),
    column("answer", Kind::Bytes, Null::Allowed),
];

/// Comes first in the order, and the greatest wins.
const VERSION: &str = "version";

/// Then these, and the least wins. The last two are of the arrival, so no two deliveries are equal.
const ORDER: [&str; 5] = [
    "published_at",
    "message_id",
    "fingerprint",
    "received_at",
    "delivery_id",
];

pub(crate) fn run(args: &WarehouseArgs) -> anyhow::Result<()> {
    match &args.command {
        WarehouseCommand::Sql(args) => to_stdout(&sql(args)),
    }
}

fn sql(args: &SqlArgs) -> String {
    let parts: Vec<String> = match args.part {
        Some(part) => vec![part_sql(part, args)],
        None => {
            let all = Part::value_variants().iter();
            all.map(|part| part_sql(*part, args)).collect()
        }
    };
    parts.join("\n")
}

fn part_sql(part: Part, args: &SqlArgs) -> String {
    let dialect = args.dialect;
    let text = match part {
        Part::Ddl => {
            filled(include_str!("warehouse/ddl.sql"), &dialect.layout(), args)
                + &version_function(args)
        }
        Part::Merge => filled(dialect.merge(), &merge_words(args), args),
        Part::View => filled(dialect.view(), &[], args),
        Part::Conflicts => filled(include_str!("warehouse/conflicts.sql"), &[], args),
        Part::Report => filled(
            include_str!("warehouse/report.sql"),
            &report_words(args),
            args,
        ),
        Part::Key => dialect.key(),
    };
    text.trim_end().to_owned() + "\n"
}

const fn column(name: &'static str, kind: Kind, null: Null) -> Column {
    Column { name, kind, null }
}

/// A statement with its own words in place, and those that all share.
fn filled(template: &str, own: &[(&str, String)], args: &SqlArgs) -> String {
    let (landing, effects) = args.dialect.tables();
    let landing = args.landing.as_deref().unwrap_or(landing);
    let effects = args.effects.as_deref().unwrap_or(effects);
    let shared = [
        ("{source}", source(args)),
        ("{columns}", names(args).join(", ")),
        ("{order}", order()),
        ("{declarations}", declarations(&columns(args), args.dialect)),
        ("{faults}", declarations(&FAULTS, args.dialect)),
        ("{index}", landing.replace('.', "_") + "_received_at"),
        ("{landing}", landing.into()),
        ("{effects}", effects.into()),
    ];
    let words = own.iter().chain(&shared);
    words.fold(template.to_owned(), |text, (word, meaning)| {
        text.replace(word, meaning)
    })
}

fn merge_words(args: &SqlArgs) -> Vec<(&'static str, String)> {
    let dialect = args.dialect;
    let incoming = dialect.incoming();
    let others = names(args).into_iter().filter(|name| *name != "event_id");
    let assignments: Vec<_> = others
        .map(|name| format!("{name} = {incoming}.{name}"))
        .collect();
    let values: Vec<_> = names(args)
        .iter()
        .map(|name| format!("{incoming}.{name}"))
        .collect();
    let within = match args.horizon {
        Some(_) => dialect.within(),
        None => "",
    };
    let bounds = args.horizon.map(|horizon| dialect.bounds(seconds(horizon)));
    vec![
        ("{bounds}", bounds.unwrap_or_default()),
        ("{within}", within.into()),
        ("{since}", dialect.since().into()),
        ("{variable}", dialect.variable().into()),
        ("{precedes}", dialect.precedes()),
        ("{assignments}", assignments.join(",\n  ")),
        ("{values}", values.join(", ")),
    ]
}

fn report_words(args: &SqlArgs) -> Vec<(&'static str, String)> {
    let mut words = args.dialect.times();
    let held = args.horizon.map(|horizon| {
        let ms = horizon.as_millis();
        format!(",\n       max(repeat_ms) <= {ms} AS within_horizon")
    });
    words.push(("{held}", held.unwrap_or_default()));
    words
}

/// Where deliveries are read from: the table, or its rows with the version that their payload has.
fn source(args: &SqlArgs) -> String {
    if args.version.is_none() {
        return "{landing}".into();
    }
    let read = names(args).into_iter().map(|name| {
        if name == VERSION {
            format!("{{landing}}_version(payload) AS {VERSION}")
        } else {
            name.to_owned()
        }
    });
    let read: Vec<_> = read.collect();
    format!("(SELECT {} FROM {{landing}}) AS delivery", read.join(", "))
}

/// Named after the table whose payloads it reads: another table's may have their version elsewhere.
fn version_function(args: &SqlArgs) -> String {
    let Some(names) = &args.version else {
        return String::new();
    };
    let (template, path) = args.dialect.version(&names.0);
    format!("\n{}", filled(template, &[("{path}", path)], args))
}

fn columns(args: &SqlArgs) -> Vec<Column> {
    let answer: &[Column] = if args.answer { &ANSWER } else { &[] };
    [&COLUMNS, answer].concat()
}

fn names(args: &SqlArgs) -> Vec<&'static str> {
    columns(args).iter().map(|column| column.name).collect()
}

fn order() -> String {
    format!("{VERSION} DESC, {}", ORDER.join(", "))
}

fn declarations(columns: &[Column], dialect: Dialect) -> String {
    let lines = columns.iter().map(|column| {
        let null = match column.null {
            Null::Allowed => "",
            Null::Never => " NOT NULL",
        };
        format!("  {} {}{null}", column.name, dialect.type_of(column.kind))
    });
    lines.collect::<Vec<_>>().join(",\n")
}

/// Whole seconds, none too few.
fn seconds(horizon: Duration) -> u128 {
    horizon.as_millis().div_ceil(1000)
}
