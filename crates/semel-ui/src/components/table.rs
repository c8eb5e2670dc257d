//! Rows and columns.

use maud::{Markup, html};

/// A column's head.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    name: &'a str,
    is_number: bool,
}

/// How the rows of a table come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'a> {
    live: Option<(&'a str, &'a str)>,
}

/// A table that scrolls sideways where it is narrow. `caption` is for those who do not see it.
#[must_use]
pub fn table(caption: &str, columns: &[Column<'_>], rows: &[Vec<Markup>]) -> Markup {
    Rows::default().table(caption, columns, rows)
}

// === impl Rows ===

impl<'a> Rows<'a> {
    /// A part of a live piece: only the rows are fetched anew, so the table stays scrolled as it is. While there are
    /// none it says so.
    #[must_use]
    pub const fn live(id: &'a str, none: &'a str) -> Self {
        Self {
            live: Some((id, none)),
        }
    }

    /// The table with these rows.
    #[must_use]
    pub fn table(self, caption: &str, columns: &[Column<'_>], rows: &[Vec<Markup>]) -> Markup {
        let (id, none) = self.live.unzip();
        html! {
            div.wide tabindex="0" role="region" aria-label=(caption) {
                table {
                    thead {
                        tr {
                            @for column in columns {
                                // A head without a name, over boxes to tick for instance, is a cell.
                                @if column.name.is_empty() { td {} }
                                @else { th scope="col" class=[class(Some(column))] { (column.name) } }
                            }
                        }
                    }
                    tbody id=[id] hx-swap-oob=[id.map(|_| "innerHTML")] {
                        @for row in rows { (self::row(columns, row)) }
                        @if let (Some(none), true) = (none, rows.is_empty()) {
                            tr { td.none colspan=(columns.len()) { (none) } }
                        }
                    }
                }
            }
        }
    }
}

fn row(columns: &[Column<'_>], cells: &[Markup]) -> Markup {
    html! {
        tr {
            @for (place, cell) in cells.iter().enumerate() {
                td class=[class(columns.get(place))] { (cell) }
            }
        }
    }
}

fn class(column: Option<&Column<'_>>) -> Option<&'static str> {
    column.and_then(|it| it.is_number.then_some("n"))
}

// === impl Column ===

impl<'a> Column<'a> {
    /// Of words.
    #[must_use]
    pub const fn text(name: &'a str) -> Self {
        Self {
            name,
            is_number: false,
        }
    }

    /// Of numbers, which stand below each other.
    #[must_use]
    pub const fn number(name: &'a str) -> Self {
        Self {
            name,
            is_number: true,
        }
    }
}
