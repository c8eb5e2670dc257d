//! A racer: what is done to the keys, drawn from its dice.

use super::caller::Caller;
use super::transaction::TransactionHandler;
use super::worker::RaceSettings;
use crate::harness::{Ledger, ProcessConfig, StoreKind};
use rand::Rng;
use rand::rngs::StdRng;
use semel::key::{Field, Scope};
use semel::protocol::{
    Answer, Claim, Claimed, DoubtLimit, Fail, FailKind, InDoubt, Lease, Operation,
};
use semel::{Fingerprint, Key, Store};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The keys that everybody wants.
pub(super) const HOT: u32 = 12;

/// All keys.
pub(super) const KEYS: u32 = 72;

/// Leases, in ms.
const LEASE_MS: std::ops::Range<u64> = 25..50;

/// Retentions, in ms: short, so that keys begin anew.
const RETENTION_MS: std::ops::Range<u64> = 50..300;

/// How many times longer all that takes on Firestore, whose every call takes several milliseconds.
const FIRESTORE_PACE: u32 = 6;

/// How long runs that are probed may act, in leases, unless their retention is shorter.
const ACTS_LEASES: u32 = 3;

/// Age of a first doubt from which doubts park, in ms: around that of a few leases.
const DOUBT_AGE_MS: std::ops::Range<u64> = 20..120;

/// Age of work that a release parks, in ms: around that of a key's retention.
const OLD_MS: std::ops::Range<u64> = 50..300;

/// The pause after a claim that was not granted, in ms.
const PAUSE_MS: std::ops::Range<u64> = 1..8;

/// How often the sweeper goes round.
const SWEEP_EVERY: Duration = Duration::from_millis(60);

/// Somebody who attacks the keys.
pub(super) struct Racer {
    caller: Caller,
    handler: Option<TransactionHandler>,
    operator_percent: u32,
    /// How many times longer leases and retentions are, where calls take longer.
    pace: u32,
    sweeps: bool,
}

/// A run that was granted, and the terms of its claim.
pub(super) struct GrantedRun {
    pub(super) key: u32,
    pub(super) lease: Lease,
    pub(super) terms: Claim,
}

// === impl Racer ===

impl Racer {
    pub(super) async fn new(
        config: &ProcessConfig<RaceSettings>,
        store: Arc<dyn Store>,
        ledger: Ledger,
        rng: StdRng,
    ) -> anyhow::Result<Self> {
        let settings = &config.settings;
        Ok(Self {
            caller: Caller::new(store, keys(&settings.name), ledger, rng),
            handler: TransactionHandler::at(&settings.location).await?,
            operator_percent: settings.operator_percent,
            pace: match settings.location.kind {
                StoreKind::Firestore => FIRESTORE_PACE,
                StoreKind::Embedded | StoreKind::Postgres | StoreKind::Redis => 1,
            },
            sweeps: config.number == 0,
        })
    }

    pub(super) async fn race(mut self, until: Instant) -> anyhow::Result<()> {
        let mut sweep_at = Instant::now();
        while Instant::now() < until {
            if self.sweeps && Instant::now() > sweep_at {
                sweep_at = Instant::now() + SWEEP_EVERY;
                self.sweep().await;
            }
            let key = self.key();
            if self.caller.rng.random_ratio(self.operator_percent, 100) {
                self.caller.operate(key).await;
            } else {
                self.claim(key).await?;
            }
        }
        Ok(())
    }

    fn key(&mut self) -> u32 {
        if self.caller.rng.random_ratio(4, 5) {
            self.caller.rng.random_range(0..HOT)
        } else {
            self.caller.rng.random_range(HOT..KEYS)
        }
    }

    /// Claims, now and then twice, as whoever lost the first answer does; runs what is granted.
    async fn claim(&mut self, key: u32) -> anyhow::Result<()> {
        let Some(claim) = self.terms(key) else {
            return Ok(());
        };
        let mut answer = self.caller.call(key, Operation::Claim(claim.clone())).await;
        if self.caller.rng.random_ratio(5, 100) {
            answer = self.caller.call(key, Operation::Claim(claim.clone())).await;
        }
        if let Some(Answer::Claimed(Claimed::Granted(lease))) = answer {
            let terms = claim;
            return self.run(&GrantedRun { key, lease, terms }).await;
        }
        let pause = self.caller.rng.random_range(PAUSE_MS);
        sleep(Duration::from_millis(pause)).await;
        Ok(())
    }

    fn terms(&mut self, key: u32) -> Option<Claim> {
        let rng = &mut self.caller.rng;
        let payload = u8::from(rng.random_ratio(3, 100));
        let in_doubt = match rng.random_range(0..5) {
            0 => InDoubt::Park,
            1 | 2 => InDoubt::Probe,
            _ => InDoubt::Retry,
        };
        let lease = Duration::from_millis(rng.random_range(LEASE_MS)) * self.pace;
        let retention = Duration::from_millis(rng.random_range(RETENTION_MS)) * self.pace;
        let key = *self.caller.keys.get(key as usize)?;
        Some(Claim {
            lease,
            retention,
            in_doubt,
            max_attempts: NonZeroU32::new(if rng.random_ratio(1, 5) { 3 } else { 0 }),
            max_in_doubt: rng.random_ratio(1, 5).then(|| doubt_limit(rng)),
            acts_for: (in_doubt == InDoubt::Probe).then_some(retention.min(lease * ACTS_LEASES)),
            ..Claim::new(key, Fingerprint::of(&[payload]))
        })
    }

    /// A run: steps, a while, perhaps a renewal, an end; sometimes far too late, sometimes twice.
    async fn run(&mut self, run: &GrantedRun) -> anyhow::Result<()> {
        for name in ["charge", "ship"] {
            if self.caller.rng.random_ratio(1, 4) {
                self.caller.step(run, name).await;
            }
        }
        let leases = match self.caller.rng.random_range(0..10) {
            0..6 => 0.0..0.5,
            6..8 => 0.5..1.3,
            _ => 1.0..3.0,
        };
        sleep(
            run.terms
                .lease
                .mul_f64(self.caller.rng.random_range(leases)),
        )
        .await;
        if self.caller.rng.random_ratio(1, 4) {
            self.caller.call(run.key, run.renewal()).await;
        }
        let end = self.caller.rng.random_range(0..100);
        self.end(run, end).await?;
        if self.caller.rng.random_ratio(1, 10) {
            self.end(run, end).await?;
        }
        Ok(())
    }

    async fn end(&mut self, run: &GrantedRun, end: u32) -> anyhow::Result<()> {
        if let Some(handler) = self.handler.as_mut().filter(|_| end < 20) {
            return handler.complete(&mut self.caller, run).await;
        }
        let delay = Duration::from_millis(self.caller.rng.random_range(0..30));
        let (lease, result) = (run.lease.clone(), self.caller.result());
        let Claim {
            retention,
            in_doubt,
            max_attempts,
            max_in_doubt,
            ..
        } = run.terms;
        let kind = match end {
            // Nothing at all: its lease lapses.
            53..63 => return Ok(()),
            0..53 => None,
            63..70 => Some(FailKind::Final),
            70..88 => Some(FailKind::Retryable { delay }),
            88..95 => Some(FailKind::InDoubt { delay }),
            _ => Some(FailKind::StillInDoubt { delay }),
        };
        let operation = match kind {
            None if end < 45 => Operation::Complete {
                lease,
                result,
                retention,
            },
            None => {
                let parks = self.caller.rng.random_ratio(1, 4);
                let age = Duration::from_millis(self.caller.rng.random_range(OLD_MS));
                Operation::Release {
                    lease,
                    park_after: parks.then_some(age),
                }
            }
            Some(kind) => {
                let how = Fail {
                    kind,
                    in_doubt,
                    max_attempts,
                    max_in_doubt,
                    park_after: None,
                    retention,
                    result,
                };
                Operation::Fail { lease, how }
            }
        };
        self.caller.call(run.key, operation).await;
        Ok(())
    }

    /// A store that cannot be reached is swept another time.
    async fn sweep(&mut self) {
        let mut after = None;
        while let Ok(swept) = self.caller.store.sweep(after.as_ref()).await {
            after = swept.next;
            if after.is_none() {
                return;
            }
        }
    }
}

/// Two runs in doubt: at once, or when the first of them is a little old.
fn doubt_limit(rng: &mut StdRng) -> DoubtLimit {
    let age = if rng.random_bool(0.5) {
        rng.random_range(DOUBT_AGE_MS)
    } else {
        0
    };
    DoubtLimit {
        runs: NonZeroU32::new(2).expect("two is not zero"),
        age: Duration::from_millis(age),
    }
}

/// The keys of a race, by number.
pub(super) fn keys(name: &str) -> Arc<[Key]> {
    let scope = Scope::new(name, "race");
    let field = |number: u32| Field {
        kind: 'd',
        bytes: number.to_string().into_bytes(),
    };
    let key = |number| Key::of(&scope, &[field(number)]).expect("a race has a short name");
    (0..KEYS).map(key).collect()
}

// === impl GrantedRun ===

impl GrantedRun {
    pub(super) fn renewal(&self) -> Operation {
        Operation::Renew {
            lease: self.lease.clone(),
            lease_for: self.terms.lease,
            retention: self.terms.retention,
        }
    }
}
