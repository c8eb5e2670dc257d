//! Reports: a table of what was tried and counted, and what speaks against it.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write};
use std::time::Duration;

/// What all parts of a run came to.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    /// The named points that faults were met at.
    pub(crate) points: BTreeSet<String>,
    /// What makes the run as a whole too easy to mean anything, or too slow to end.
    pub(crate) invalid: Vec<String>,
}

/// What one part came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) store: &'static str,
    pub(crate) mode: &'static str,
    /// What was counted, under the heads of the table.
    pub(crate) cells: Vec<(&'static str, Cell)>,
    /// What was broken, spelt out.
    pub(crate) complaints: Vec<String>,
}

/// One number of a row.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Count(usize),
    /// A time, or something else that has no sum.
    Plain(String),
}

// === impl Report ===

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// What speaks against the run.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let broken = self.rows.iter().flat_map(|row| {
            let named = |complaint| format!("{} {}: {complaint}", row.store, row.mode);
            row.complaints.iter().map(named)
        });
        let invalid = self.invalid.iter().map(|why| format!("invalid: {why}"));
        broken.chain(invalid).collect()
    }

    /// The sums over all rows.
    pub(crate) fn total(&self) -> Row {
        let mut total = Row {
            store: "**all**",
            ..Row::default()
        };
        for row in &self.rows {
            total.add(row);
        }
        total
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        write!(f, "| store | mode |")?;
        for (head, _) in &total.cells {
            write!(f, " {head} |")?;
        }
        writeln!(f, "\n|---|---|{}", "---:|".repeat(total.cells.len()))?;
        for row in &self.rows {
            row.fmt(f)?;
        }
        total.fmt(f)?;
        writeln!(f, "{} points met", self.points.len())
    }
}

// === impl Row ===

impl Row {
    fn add(&mut self, other: &Self) {
        if self.cells.is_empty() {
            self.cells.clone_from(&other.cells);
            return;
        }
        for ((_, cell), (_, more)) in self.cells.iter_mut().zip(&other.cells) {
            cell.add(more);
        }
    }

    /// Which of these, each called so and counted under this head, are fewer than so many.
    pub(crate) fn too_few(&self, needed: &[(&str, &str, usize)]) -> Vec<String> {
        let counted = |head: &str| {
            let mut cells = self.cells.iter().filter(|(its, _)| *its == head);
            cells.next().map_or(0, |(_, cell)| cell.count())
        };
        let few = needed.iter().filter(|(_, head, min)| counted(head) < *min);
        few.map(|(what, head, min)| format!("{} {what}, {min} are needed", counted(head)))
            .collect()
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = format!("| {} | {} |", self.store, self.mode);
        for (_, cell) in &self.cells {
            write!(line, " {cell} |")?;
        }
        writeln!(f, "{line}")
    }
}

// === impl Cell ===

impl Cell {
    fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Count(sum), Self::Count(more)) => *sum += more,
            (this, _) => *this = Self::Plain(String::new()),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count,
            Self::Plain(_) => 0,
        }
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Plain(text) => f.write_str(text),
        }
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count)
    }
}

impl From<Duration> for Cell {
    fn from(time: Duration) -> Self {
        Self::Plain(format!("{} ms", time.as_millis()))
    }
}
