//! Noting when a record can be swept, and sweeping what is due.
//!
//! Every incarnation has a note of when its retention ends, written with the grant that begins it. Retention may end later
//! by the time the note is due; then the note is moved. It may end sooner by `forget` alone, which adds a note.

use super::{Decided, Group};
use crate::codec::{self, Due, Incarnation, Outline, Row};
use crate::due::DueRow;
use semel::clock::Time;
use semel::protocol::{Record, State, sweepable};
use semel::{Error, Key};
use std::time::Duration;

/// How long until a parked record, which has no end, is looked at again.
const PARKED_LOOK_AGAIN: Duration = Duration::from_secs(3_600);

impl Group<'_> {
    /// Notes when this record is to be looked at, unless an earlier note does.
    pub(super) fn note_due(&mut self, key: &Key, old: Option<&Record>, new: &Record) {
        let begins = old.is_none_or(|old| old.born != new.born);
        let sooner = old.is_some_and(|old| new.expires_at < old.expires_at);
        if begins || sooner {
            let of = Incarnation {
                key: *key,
                born: new.born,
            };
            self.due.entry(new.expires_at).or_default().push(of);
        }
    }

    /// Adds the notes of this group to what it writes: one row for each time.
    pub(super) fn write_due(&mut self) {
        for (at, due) in std::mem::take(&mut self.due) {
            self.keep(codec::due(at, self.number), &Due(due));
        }
    }

    /// Takes up what was due. Each record is looked at again: it may have been claimed since it was found.
    pub(crate) fn sweep(&mut self, rows: &[DueRow]) -> Result<Decided<u64>, Error> {
        let mut removed = 0;
        for row in rows {
            for found in &row.found {
                let at = codec::record(&found.of.key);
                let Some(Row { value, group }) = self.row::<Outline>(&at)? else {
                    continue;
                };
                let Outline(record) = value;
                if record.born != found.of.born {
                    continue;
                }
                if !sweepable(&record, self.engine.grace, self.now) {
                    let again = self.look_again(&record);
                    self.due.entry(again).or_default().push(found.of);
                    continue;
                }
                if found.stepless_in != Some(group) {
                    self.remove_steps(&found.of.key, record.born)?;
                }
                self.remove(at);
                removed += 1;
            }
            // Last: a note is not lost when what it speaks of cannot be read.
            self.remove(row.at.clone());
        }
        // What a power cut brings back is swept again.
        Ok(Decided {
            answer: removed,
            after: 0,
        })
    }

    /// When a record that cannot be swept yet is looked at again.
    fn look_again(&self, record: &Record) -> Time {
        if record.state == State::Parked {
            return record.expires_at.max(self.now.plus(PARKED_LOOK_AGAIN));
        }
        record.expires_at
    }
}
