//! The page, screen by screen, over HTTP: a real gate on the embedded store, and what a person would see and send.

mod bed;
mod acts;
mod duplicates;
mod letters;
mod lists;
mod looks;
mod markup;
mod million;
mod search;
mod store;
