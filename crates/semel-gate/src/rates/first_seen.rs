//! When each piece of work was first seen by this gate, for as many as there is room for.

use semel::Key;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many pieces of work are remembered: some 6 MiB.
pub(crate) const FIRST_SEEN_MAX: usize = 131_072;

/// When work was first seen.
#[derive(Debug, Default)]
pub(crate) struct FirstSeen(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// By the first 8 bytes of a key: two keys that share them spoil one sample.
    at: HashMap<u64, Instant>,
    /// Oldest first.
    order: VecDeque<u64>,
}

// === impl FirstSeen ===

impl FirstSeen {
    /// How long ago the work was first seen; `None` if that is now.
    pub(super) fn since(&self, key: &Key, now: Instant) -> Option<Duration> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let short = shortened(key);
        if let Some(first) = seen.at.get(&short) {
            return Some(now.saturating_duration_since(*first));
        }
        seen.at.insert(short, now);
        seen.order.push_back(short);
        if seen.order.len() > FIRST_SEEN_MAX
            && let Some(oldest) = seen.order.pop_front()
        {
            seen.at.remove(&oldest);
        }
        None
    }

    /// Drops what is remembered of one key.
    pub(super) fn forget(&self, key: &Key) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let short = shortened(key);
        seen.at.remove(&short);
        seen.order.retain(|it| *it != short);
    }
}

fn shortened(key: &Key) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *key.as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        Key::from_bytes(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeat_is_as_late_as_its_first_is_old() {
        let (seen, begun) = (FirstSeen::default(), Instant::now());
        let later = begun + Duration::from_secs(90);
        assert_eq!(seen.since(&key(1), begun), None);
        assert_eq!(seen.since(&key(1), later), Some(Duration::from_secs(90)));
        seen.forget(&key(1));
        assert_eq!(seen.since(&key(1), later), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_are_given_up_first() {
        let (seen, now) = (FirstSeen::default(), Instant::now());
        for number in 0..=FIRST_SEEN_MAX {
            assert_eq!(seen.since(&key(number), now), None);
        }
        assert!(seen.since(&key(FIRST_SEEN_MAX), now).is_some());
        assert_eq!(seen.since(&key(0), now), None);
        let held = seen.0.lock().unwrap();
        assert_eq!(held.at.len(), FIRST_SEEN_MAX);
        assert_eq!(held.order.len(), FIRST_SEEN_MAX);
    }
}
