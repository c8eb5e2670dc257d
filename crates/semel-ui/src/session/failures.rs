//! How often somebody may try a token.

use std::collections::VecDeque;
use std::net::IpAddr;

/// How many wrong tokens one address may show in a minute.
pub(super) const BY_ADDRESS_MAX: usize = 10;
/// How many all of them may.
pub(super) const IN_ALL_MAX: usize = 100;
/// How long a failure counts.
pub(super) const SECONDS: u64 = 60;

/// The failures of the last minute, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Failures(VecDeque<(u64, Option<IpAddr>)>);

// === impl Failures ===

impl Failures {
    /// Whether this address may try again now.
    pub(super) fn may_try(&mut self, peer: Option<IpAddr>, now: u64) -> bool {
        while self
            .0
            .front()
            .is_some_and(|(at, _)| at.saturating_add(SECONDS) <= now)
        {
            self.0.pop_front();
        }
        let own = self.0.iter().filter(|(_, of)| *of == peer).count();
        own < BY_ADDRESS_MAX && self.0.len() < IN_ALL_MAX
    }

    /// Counts a failure, unless there were too many before it.
    pub(super) fn try_once(&mut self, peer: Option<IpAddr>, now: u64) -> bool {
        let may = self.may_try(peer, now);
        if may {
            self.add(peer, now);
        }
        may
    }

    fn add(&mut self, peer: Option<IpAddr>, now: u64) {
        self.0.push_back((now, peer));
        self.0.truncate(IN_ALL_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Option<IpAddr> {
        Some([10, 0, 0, last].into())
    }

    #[test]
    fn an_address_waits_after_ten_and_others_do_not() {
        let mut failures = Failures::default();
        for _ in 0..BY_ADDRESS_MAX {
            assert!(failures.may_try(peer(1), 100));
            failures.add(peer(1), 100);
        }
        assert!(!failures.may_try(peer(1), 159) && failures.may_try(peer(2), 159));
        assert!(failures.may_try(peer(1), 160));
    }

    #[test]
    fn all_together_are_bounded() {
        let mut failures = Failures::default();
        for number in 0..=255 {
            failures.add(peer(number), 100);
        }
        assert_eq!(failures.0.len(), IN_ALL_MAX);
        assert!(!failures.may_try(Some([11, 0, 0, 1].into()), 100));
    }
}
