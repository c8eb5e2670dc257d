//! Counting records: how many stand how, and which of them are the oldest that have not come to an end.

use super::PAGE_ITEMS;
use semel::clock::Time;
use semel::protocol::{Fence, Record, State};
use semel::store::Store;
use semel::{Error, Key};
use std::time::Duration;

/// How many records of a kind are kept by name: the oldest.
pub(crate) const LIST_ITEMS_MAX: usize = 1000;

/// What a walk through all records found.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordCensus {
    /// When it ended, and how long it took.
    pub(crate) at: Time,
    pub(crate) took: Duration,
    counts: [u64; State::ALL.len()],
    /// How many of those without an end may or may not have had their effect.
    pub(crate) in_doubt: u64,
    /// When the last run of the oldest of these was granted.
    pub(crate) oldest_in_doubt: Option<Time>,
    pub(crate) running: Oldest,
    pub(crate) waiting: Oldest,
    pub(crate) parked: Oldest,
    /// In doubt and not parked: nobody has to act yet.
    pub(crate) doubtful: Oldest,
    doubtful_total: u64,
}

/// What the census keeps of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenRecord {
    pub(crate) key: Key,
    pub(crate) state: State,
    pub(crate) fence: Fence,
    pub(crate) lease_until: Time,
}

/// The oldest of many, the oldest first once they are all seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oldest(Vec<SeenRecord>);

/// Walks through all records; tells now and then how many were seen.
///
/// # Errors
/// Those of the store.
pub(super) async fn walk(store: &dyn Store, counting: impl Fn(u64)) -> Result<RecordCensus, Error> {
    let (mut census, mut after) = (RecordCensus::default(), None);
    loop {
        let page = store.list(None, after.as_ref(), PAGE_ITEMS).await?;
        for (key, record) in &page.items {
            census.count(*key, record);
        }
        counting(census.total());
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
        // Deliveries go first.
        tokio::task::yield_now().await;
    }
    census.end();
    Ok(census)
}

// === impl RecordCensus ===

impl RecordCensus {
    /// How many stand so.
    pub(crate) fn of(&self, state: State) -> u64 {
        let counts = State::ALL.into_iter().zip(self.counts);
        counts.filter(|(it, _)| *it == state).map(|(_, n)| n).sum()
    }

    /// How many of those in doubt are parked.
    pub(crate) const fn parked_in_doubt(&self) -> u64 {
        self.in_doubt.saturating_sub(self.doubtful_total)
    }

    /// How many are parked, in doubt, or both.
    pub(crate) fn parked_or_in_doubt(&self) -> u64 {
        self.of(State::Parked) + self.doubtful_total
    }

    /// How many are in doubt, the parked ones aside.
    pub(crate) const fn doubtful_count(&self) -> u64 {
        self.doubtful_total
    }

    /// How many there are.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn count(&mut self, key: Key, record: &Record) {
        for (state, count) in State::ALL.into_iter().zip(&mut self.counts) {
            *count += u64::from(state == record.state);
        }
        let seen = SeenRecord {
            key,
            state: record.state,
            fence: record.fence,
            lease_until: record.lease_until,
        };
        let doubt = record.in_doubt && record.state.ending().is_none();
        if doubt {
            self.in_doubt += 1;
            let oldest = self.oldest_in_doubt.unwrap_or(Time(u64::MAX));
            self.oldest_in_doubt = Some(oldest.min(seen.granted()));
        }
        match record.state {
            State::Running => self.running.push(seen),
            State::Waiting => self.waiting.push(seen),
            State::Parked => self.parked.push(seen),
            State::Succeeded | State::Failed => {}
        }
        if doubt && record.state != State::Parked {
            self.doubtful_total += 1;
            self.doubtful.push(seen);
        }
    }

    fn end(&mut self) {
        for list in [
            &mut self.running,
            &mut self.waiting,
            &mut self.parked,
            &mut self.doubtful,
        ] {
            list.trim();
        }
    }
}

// === impl Oldest ===

impl Oldest {
    pub(crate) fn all(&self) -> &[SeenRecord] {
        &self.0
    }

    fn push(&mut self, seen: SeenRecord) {
        self.0.push(seen);
        if self.0.len() >= 2 * LIST_ITEMS_MAX {
            self.trim();
        }
    }

    fn trim(&mut self) {
        self.0.sort_unstable_by_key(|it| (it.fence, it.key));
        self.0.truncate(LIST_ITEMS_MAX);
    }
}

// === impl SeenRecord ===

impl SeenRecord {
    /// When its last run was granted, nearly: fences follow the store's clock.
    pub(crate) const fn granted(&self) -> Time {
        Time(self.fence.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_kept_however_many_there_are() {
        let mut oldest = Oldest::default();
        let count = u64::try_from(5 * LIST_ITEMS_MAX).expect("a small number");
        for number in (0..count).rev() {
            oldest.push(SeenRecord {
                key: Key::from_bytes([0; 32]),
                state: State::Running,
                fence: Fence(number),
                lease_until: Time(0),
            });
            assert!(oldest.0.len() < 2 * LIST_ITEMS_MAX);
        }
        oldest.trim();
        assert_eq!(oldest.all().len(), LIST_ITEMS_MAX);
        assert_eq!(oldest.all()[0].granted(), Time(0));
        assert_eq!(oldest.all()[999].fence, Fence(999));
    }
}
