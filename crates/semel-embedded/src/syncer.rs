//! The syncer: one thread that brings the journal to disk and then answers who waited for it.
//!
//! Everybody who comes while one sync runs shares the next one. It syncs through a file handle of
//! its own, because the engine's would keep the writer out for as long as the disk takes.

use crate::call::Call;
use crate::engine::Engine;
use crate::recovery::{ActiveJournal, Frontier};
use crate::writer::refuse;
use semel::Error;
use std::sync::mpsc::Receiver;

/// What the syncer works with.
#[derive(Debug)]
pub(crate) struct Syncer {
    pub(crate) journal: ActiveJournal,
    pub(crate) frontier: Frontier,
}

// === impl Syncer ===

impl Syncer {
    /// Syncs for as long as the writer lives, then once more.
    pub(crate) fn run(mut self, engine: &Engine, waiting: &Receiver<Vec<Box<dyn Call>>>) {
        while let Ok(mut together) = waiting.recv() {
            together.extend(waiting.try_iter().flatten());
            match self.sync(engine) {
                Ok(()) => together.into_iter().for_each(Call::tell),
                Err(error) => {
                    engine.give_up(&error);
                    refuse(together, &error);
                }
            }
        }
        self.close(engine);
    }

    /// Brings everything that was written so far to disk, and notes down that it is there.
    fn sync(&mut self, engine: &Engine) -> Result<(), Error> {
        if let Some(error) = engine.gave_up() {
            return Err(error.clone());
        }
        let group = engine.progress.written();
        let journal = self.journal.sync()?;
        self.frontier.reached(journal, group)?;
        engine.progress.sync_reached(group);
        Ok(())
    }

    /// Leaves nothing behind that a power cut could take. There is nobody left to tell of a
    /// failure, and nothing was promised: all that is unsynced now is claims.
    fn close(mut self, engine: &Engine) {
        if self
            .sync(engine)
            .and_then(|()| self.frontier.sync())
            .is_err()
        {
            tracing::warn!(directory = %engine.data.display(), "the last claims may not be on disk");
        }
    }
}
