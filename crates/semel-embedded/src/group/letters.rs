//! Letters of a group: put, marked, and their tombstones swept.

use super::{Decided, Group};
use crate::codec::{self, KeptLetter, Nothing, Row};
use semel::Error;
use semel::letter::{self, Letter, LetterDecision, LetterId, Mark, Marked, Put, Stored};

impl Group<'_> {
    pub(crate) fn put_letter(&mut self, letter: &Letter) -> Result<Decided<Put>, Error> {
        let row = self.row::<KeptLetter>(&codec::letter(&letter.id))?;
        let stored = row.as_ref().map(|row| &row.value.stored);
        let decision = letter::put(stored, letter, self.now);
        Ok(self.shelve(&letter.id, row, decision))
    }

    pub(crate) fn mark_letter(
        &mut self,
        id: &LetterId,
        mark: Mark,
    ) -> Result<Decided<Marked>, Error> {
        let row = self.row::<KeptLetter>(&codec::letter(id))?;
        let stored = row.as_ref().map(|row| &row.value.stored);
        let decision = letter::mark(stored, mark, self.now);
        Ok(self.shelve(id, row, decision))
    }

    /// Looks at each letter again: it may have been reopened since it was found.
    pub(crate) fn sweep_letters(&mut self, ids: &[LetterId]) -> Result<Decided<u64>, Error> {
        let mut removed = 0;
        for id in ids {
            let at = codec::letter(id);
            // A damaged one stays, and must not keep the others from being swept.
            let Ok(Some(Row { value: kept, .. })) = self.row::<KeptLetter>(&at) else {
                continue;
            };
            if kept.stored.sweepable(self.now) {
                self.unlist(id, &kept);
                self.remove(at);
                removed += 1;
            }
        }
        // What a power cut brings back is swept again.
        Ok(Decided {
            answer: removed,
            after: 0,
        })
    }

    /// Writes what was decided. A letter that stays open keeps its place; one that is new, or reopened,
    /// comes last.
    fn shelve<A>(
        &mut self,
        id: &LetterId,
        row: Option<Row<KeptLetter>>,
        decision: LetterDecision<A>,
    ) -> Decided<A> {
        let Some(stored) = decision.write else {
            return Decided {
                answer: decision.answer,
                after: row.map_or(0, |row| row.group),
            };
        };
        let old = row.map(|row| row.value);
        if let Some(old) = &old {
            self.unlist(id, old);
        }
        let place = old.filter(|old| old.stored.open().is_some());
        let (number, created_at) = match place {
            Some(old) => (old.number, old.created_at),
            None => {
                self.letters += 1;
                (self.letters, self.now)
            }
        };
        let kept = KeptLetter {
            stored,
            number,
            created_at,
        };
        match &kept.stored {
            Stored::Open(letter) => self.keep(codec::order(number), &letter.head(created_at)),
            Stored::Closed(tombstone) => {
                self.keep(codec::tombstone(tombstone.expires_at, id), &Nothing);
            }
        }
        self.keep(codec::letter(id), &kept);
        self.written(decision.answer)
    }

    /// Removes the row that lists a letter, or says when its tombstone expires.
    fn unlist(&mut self, id: &LetterId, kept: &KeptLetter) {
        self.remove(match &kept.stored {
            Stored::Open(_) => codec::order(kept.number),
            Stored::Closed(tombstone) => codec::tombstone(tombstone.expires_at, id),
        });
    }
}
