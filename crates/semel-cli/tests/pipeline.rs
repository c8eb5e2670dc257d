//! The invoice pipeline of `examples/invoice-warehouse`, started by its one command.

use crate::support::python::example;
use crate::support::root;
use crate::support::said::Said;
use std::path::Path;
use std::process::Command;

/// What brings DuckDB.
const REQUIREMENTS: &str = include_str!("../../../warehouse/requirements.txt");

const README_MARK: &str = "<!-- run.py -->";
const INVOICES: u32 = 12;

/// A line of what it prints.
#[derive(Debug)]
struct Counts {
    deliveries: u32,
    rows: u32,
    effects: u32,
    other_answers: u32,
    bills: u32,
}

fn counts(said: &str, way: &str) -> Counts {
    let line = said.lines().find_map(|line| line.strip_prefix(way));
    let numbers = line.unwrap_or_else(|| panic!("no line for {way}: {said}"));
    let mut numbers = numbers.split_whitespace().map(|it| it.parse().unwrap());
    let [deliveries, rows, effects, other_answers, bills] =
        [(); 5].map(|()| numbers.next().unwrap());
    Counts {
        deliveries,
        rows,
        effects,
        other_answers,
        bills,
    }
}

fn run() -> String {
    let python = testbed::python_with("python-warehouse", REQUIREMENTS).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_semel")).parent().unwrap();
    let output = Command::new(python)
        .arg(example("invoice-warehouse/run.py"))
        .env_clear()
        .env("PATH", programs)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    Said::from(output.unwrap()).good()
}

#[test]
fn stateless_every_delivery_is_billed_and_recorded_every_invoice_and_both_have_one_row_each() {
    let said = run();
    let (stateless, recorded) = (counts(&said, "stateless"), counts(&said, "recorded"));
    let delivered = stateless.deliveries;
    assert_eq!(delivered, recorded.deliveries, "the same misfortunes");
    assert!(delivered > 15, "more deliveries than messages: {said}");

    assert_eq!((stateless.rows, stateless.bills), (delivered, delivered));
    assert_eq!(stateless.effects, INVOICES);
    assert_eq!(stateless.other_answers, delivered - INVOICES);

    assert_eq!((recorded.rows, recorded.bills), (INVOICES, INVOICES));
    assert_eq!((recorded.effects, recorded.other_answers), (INVOICES, 0));

    let readme = std::fs::read_to_string(example("invoice-warehouse/README.md")).unwrap();
    let (_, after) = readme.split_once(README_MARK).expect("it has the mark");
    let shown = after.split("```").nth(1).expect("a block follows the mark");
    assert_eq!(shown.trim_start(), said);
    let documentation = std::fs::read_to_string(root().join("docs/warehouse.md")).unwrap();
    for line in said.lines().filter(|line| line.contains("  ")) {
        assert!(documentation.contains(line), "{line}");
    }
}
