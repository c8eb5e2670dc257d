//! For tests: tables of cases as text.

/// The rows of a table, a line each, with bars between their cells.
pub(crate) fn rows<const CELLS: usize>(table: &str) -> Vec<[&str; CELLS]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let cells = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let rows = cells.map(|row| row.try_into().expect("a cell for each column"));
    rows.collect()
}
