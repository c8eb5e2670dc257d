//! Why a run is in doubt: kept beside what the run came to, and told when the work runs again.

use super::HandlerCall;
use semel::Outcome;
use semel::protocol::{Lease, Record};
use semel::store::StoreExt;
use std::time::Duration;
use tokio::time::timeout;

/// Why a run may or may not have had its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Its lease ran out without a word: its gate died, lost its store, or an operator took the run away.
    Lapsed,
    /// Its handler did not answer within `timeout`.
    TimedOut,
    /// The connection to its handler broke.
    Cut,
    /// Its handler answered, and the answer leaves it open (`park` and `probe`).
    Answered,
    /// The gate itself failed.
    GateBroken,
    /// Nobody can say: the store did not answer, or another run has begun.
    Unknown,
}

/// The member of a stored outcome's headers that says it. It is the gate's own and never sent.
pub(crate) const DOUBT: &str = "semel-doubt";

/// How long the store may take to say it, before the work runs anyway.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

// === impl Doubt ===

impl Doubt {
    pub(crate) const ALL: [Self; 6] = [
        Self::Lapsed,
        Self::TimedOut,
        Self::Cut,
        Self::Answered,
        Self::GateBroken,
        Self::Unknown,
    ];

    /// The word for it in log lines and metrics.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Lapsed => "lapsed",
            Self::TimedOut => "timeout",
            Self::Cut => "connection_cut",
            Self::Answered => "answered",
            Self::GateBroken => "gate_broken",
            Self::Unknown => "unknown",
        }
    }

    /// What a run came to that ended so.
    pub(super) fn named_in(self, outcome: Outcome) -> Outcome {
        outcome.with_header(DOUBT, self.word())
    }

    /// Why the run before this one is in doubt, by the record of this one.
    fn before(lease: &Lease, record: &Record) -> Self {
        if !record.is_of(lease) {
            return Self::Unknown;
        }
        let Some(result) = &record.result else {
            return Self::Lapsed;
        };
        let Ok(outcome) = Outcome::decode(result) else {
            return Self::Unknown;
        };
        let said = outcome.headers.get(DOUBT).and_then(|words| words.first());
        said.map_or(Self::Answered, |word| {
            let mut all = Self::ALL.into_iter();
            all.find(|doubt| doubt.word() == word)
                .unwrap_or(Self::Unknown)
        })
    }
}

// === impl HandlerCall ===

impl HandlerCall {
    /// The effect may happen a second time: says so, and why.
    pub(super) async fn tell_repeat(&self, lease: &Lease) {
        let looked = timeout(LOOK_WITHIN, self.gate.semel.store().look(&lease.key)).await;
        let doubt = match looked {
            Ok(Ok(Some(record))) => Doubt::before(lease, &record),
            Ok(Ok(None) | Err(_)) | Err(_) => Doubt::Unknown,
        };
        let route = &self.route.settings.name;
        self.gate.metrics.doubt.repeated(route, doubt);
        tracing::warn!(
            route,
            key = %lease.key,
            fence = lease.fence.0,
            attempt = lease.attempt,
            reason = doubt.word(),
            "running again: the run before ended in doubt, and may have taken effect"
        );
    }
}
