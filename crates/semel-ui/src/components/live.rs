//! What is fetched anew while somebody looks.

use maud::{Markup, html};

/// A piece of the page whose parts are fetched anew every few seconds, where there is JavaScript; its reader can stop
/// that. `path` is relative and answers with the inside alone; `id` names the piece.
#[must_use]
pub fn live(id: &str, path: &str, seconds: u32, inside: &Markup) -> Markup {
    html! {
        div.live id=(id) hx-get=(path) hx-trigger={ "every " (seconds) "s" } hx-swap="none" {
            div.refreshes hidden {
                "Refreshes every " (seconds) " s "
                button.quiet type="button" aria-pressed="false" data-pause=(id) { "Pause" }
            }
            (inside)
        }
    }
}

/// A part of a live piece: what is fetched takes the place of what is in the part of the same name, which itself
/// stays. A part that holds the reader's focus or selection is left alone until they leave it.
#[must_use]
pub fn part(id: &str, inside: &Markup) -> Markup {
    html! { div id=(id) hx-swap-oob="innerHTML" { (inside) } }
}
