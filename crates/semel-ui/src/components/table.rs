//! Rows and columns.

use maud::{Markup, html};

/// A column's head.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    name: &'a str,
    is_number: bool,
}

/// A table that scrolls sideways where it is narrow. `caption` is for those who do not see it.
#[must_use]
pub fn table(caption: &str, columns: &[Column<'_>], rows: &[Vec<Markup>]) -> Markup {
    let class = |column: Option<&Column<'_>>| column.and_then(|it| it.is_number.then_some("n"));
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
                tbody {
                    @for row in rows {
                        tr {
                            @for (place, cell) in row.iter().enumerate() {
                                td class=[class(columns.get(place))] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
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
