//! Landing: deliveries become rows, written in groups, and nobody hears of success before the group is durable.
//!
//! A [`Landing`] takes rows from any number of deliveries and hands them to one [`Sink`], a group at a time: everything
//! that came while the last group was written goes into the next one, without timers.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use semel_landing::{FileSettings, FileSink, Landing, Row};
//! use std::time::Duration;
//!
//! # let home = tempfile::tempdir().unwrap();
//! # let directory = home.path();
//! let landing = Landing::begin(FileSink::open(FileSettings::new(directory)).unwrap());
//! let row = Row::new("pubsub", r#"{"order": 7}"#).named("v1_7", "f0");
//! landing.land(row, Duration::from_secs(5)).await.unwrap();
//! landing.close().await;
//! let closed = std::fs::read_dir(directory).unwrap().filter_map(Result::ok);
//! let closed = closed.filter(|file| file.path().extension().is_some_and(|it| it == "jsonl"));
//! assert_eq!(closed.count(), 1);
//! # });
//! ```

mod row;
mod sink;
mod landing;
mod file;
pub mod failpoint;

pub use file::{FileSettings, FileSink};
pub use landing::{GroupWrite, Landed, Landing, NotLanded};
pub use row::{Answer, Fault, Row, written};
pub use sink::{Sink, WriteError};
