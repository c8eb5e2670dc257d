//! Letters, of stores that keep them.

use super::{Cursor, Error, Page, Store};
use crate::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use async_trait::async_trait;

/// A store that also keeps [letters](crate::letter): whoever acknowledges deliveries without success needs one.
///
/// Each method is one atomic step and does what the function of the same name in [`letter`](crate::letter) decides.
///
/// `list` is a method of [`Store`], too: say which is meant, `Letters::list(&store, after, limit)`.
#[async_trait]
pub trait Letters: Store {
    /// Keeps a letter, once per id, unless it was closed under this fence or a higher one; durable
    /// before it is answered.
    async fn put(&self, letter: &Letter) -> Result<Put, Error>;

    /// Lists open letters, oldest first, in pages of at most `limit`.
    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error>;

    /// Reads an open letter.
    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error>;

    /// Notes on an open letter that it is being redriven, or closes it; durable before it is answered.
    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error>;
}
