//! The frame of Semel's pages: how they look, how they are put together, and who may see and use them.
//!
//! Pages are made on the server and can be read without JavaScript. Every address in them is relative, so that they
//! work behind a path prefix, and nothing in them is inline, so that the Content-Security-Policy can be strict.

mod base;
mod frame;
mod headers;
mod assets;
mod components;
mod chart;
mod visitor;
mod session;
mod span;

pub use assets::{Asset, assets};
pub use base::Base;
pub use chart::{Chart, Series, sparkline};
pub use components::{
    Act, Column, Moment, Rows, Tile, Tone, breakable, copyable, copyable_text, copyable_text_and,
    empty, facts, live, note, part, refused, state, table, tiles, timeline,
};
pub use frame::{Frame, NavItem, Search, fragment, page, page_with, see};
pub use maud::{Markup, PreEscaped, html};
pub use session::{Access, AccessSettings, Denied, Hosts, WAIT_SECONDS, bearer, mount};
pub use span::span;
pub use visitor::{Role, Visitor};
