//! What is tried: acts on a few keys by runs old and new, drawn at random.

use crate::record::InDoubt;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// All leases, delays and retentions are multiples of this, so that the time the calls themselves
/// take cannot change an answer.
const SPAN: Duration = Duration::from_secs(3_600);

/// What each passing of time has beyond its spans, so that it hardly ever ends on an edge.
const BEYOND: Duration = Duration::from_secs(300);

/// Older than any case gets.
pub(super) const NEVER: Duration = Duration::from_secs(10_000 * 24 * 3_600);

/// How many keys a case has.
pub(super) const KEYS: usize = 3;

/// A number of [`SPAN`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spans(u8);

/// An act on one of the keys.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) key: usize,
    pub(super) verb: Verb,
}

#[derive(Clone, Debug)]
pub(super) enum Verb {
    Look,
    Claim(Asking),
    Renew(By, Spans, Spans),
    Complete(By, Spans),
    Fail(By, Failing),
    Release(By, Option<Duration>),
    StepBegin(By, &'static str),
    StepComplete(By, &'static str),
    StepRestart(By, &'static str),
    ResolveSucceeded,
    ResolveFailed,
    ResolveRetry,
    /// By its fence, which is that of the run, or nearly.
    ResolveRun(By),
    Redrive,
    Retain(Spans),
    ReleaseByOperator,
    Forget,
    Sweep,
}

/// A claim.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    /// The owner of the grant so many grants back; `None` is a new one.
    pub(super) again: Option<usize>,
    pub(super) same_payload: bool,
    pub(super) lease: Spans,
    pub(super) retention_beyond_lease: Spans,
    /// At most its retention.
    pub(super) acts_for: Option<Spans>,
    pub(super) policy: Policy,
}

/// A failure.
#[derive(Clone, Debug)]
pub(super) struct Failing {
    pub(super) kind: Kind,
    pub(super) delay: Spans,
    pub(super) retention: Spans,
    pub(super) policy: Policy,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Final,
    Retryable,
    InDoubt,
    StillInDoubt,
}

#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) in_doubt: InDoubt,
    pub(super) max_attempts: Option<NonZeroU32>,
    pub(super) max_in_doubt: Option<MaxInDoubt>,
    /// None at all or none that is ever reached: `born` does not age with records.
    pub(super) park_after: Option<Duration>,
}

/// A limit on runs in doubt, which ages as time passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxInDoubt {
    pub(super) runs: NonZeroU32,
    pub(super) age: Spans,
}

/// Whose word it is: the run of the grant so many grants back, or nearly.
#[derive(Clone, Debug)]
pub(super) struct By {
    pub(super) back: usize,
    pub(super) forged: Forged,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Forged {
    No,
    Owner,
    Fence,
}

/// One draw: what time passes before each act, and what each case does.
pub(super) struct Draw {
    pub(super) passes: Vec<Spans>,
    pub(super) cases: Vec<Vec<Acts>>,
}

/// An act, and simpler acts in its place.
pub(super) type Acts = Box<dyn ValueTree<Value = Act>>;

/// Draws `cases` sequences of `acts` acts that share the passing of time.
pub(super) fn draw(seed: u64, round: u32, cases: usize, acts: usize) -> Draw {
    let mut bytes = [0; 32];
    let numbers = seed.to_be_bytes().into_iter().chain(round.to_be_bytes());
    bytes.iter_mut().zip(numbers).for_each(|(b, n)| *b = n);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, rng);
    let (act, pass) = (act().boxed(), pass().boxed());
    let act = |runner: &mut TestRunner| act.new_tree(runner).expect("no act is rejected");
    let mut sequence = || (0..acts).map(|_| act(&mut runner)).collect();
    let cases = (0..cases).map(|_| sequence()).collect();
    let pass = |_| pass.new_tree(&mut runner).expect("no pass is rejected");
    let passes = (0..acts).map(pass).map(|pass| pass.current()).collect();
    Draw { passes, cases }
}

fn pass() -> impl Strategy<Value = Spans> {
    prop_oneof![10 => Just(Spans(0)), 5 => spans(1..=3), 1 => spans(4..=12)]
}

fn spans(range: std::ops::RangeInclusive<u8>) -> impl Strategy<Value = Spans> + Clone {
    range.prop_map(Spans)
}

fn act() -> impl Strategy<Value = Act> {
    let key = prop_oneof![6 => Just(0), 3 => Just(1), 1 => Just(KEYS - 1)];
    (key, verb()).prop_map(|(key, verb)| Act { key, verb })
}

fn verb() -> impl Strategy<Value = Verb> {
    let step = || prop_oneof![3 => Just("charge"), 1 => Just("mail")];
    let operator = prop_oneof![
        Just(Verb::ResolveSucceeded),
        Just(Verb::ResolveFailed),
        Just(Verb::ResolveRetry),
        by().prop_map(Verb::ResolveRun),
        Just(Verb::Redrive),
        spans(1..=12).prop_map(Verb::Retain),
        Just(Verb::ReleaseByOperator),
        Just(Verb::Forget),
    ];
    prop_oneof![
        1 => Just(Verb::Look),
        30 => asking().prop_map(Verb::Claim),
        7 => (by(), spans(1..=2), spans(2..=4)).prop_map(|(by, l, r)| Verb::Renew(by, l, r)),
        9 => (by(), spans(1..=4)).prop_map(|(by, r)| Verb::Complete(by, r)),
        14 => (by(), failing()).prop_map(|(by, how)| Verb::Fail(by, how)),
        4 => (by(), age()).prop_map(|(by, age)| Verb::Release(by, age)),
        14 => (by(), step()).prop_map(|(by, name)| Verb::StepBegin(by, name)),
        9 => (by(), step()).prop_map(|(by, name)| Verb::StepComplete(by, name)),
        4 => (by(), step()).prop_map(|(by, name)| Verb::StepRestart(by, name)),
        14 => operator,
        2 => Just(Verb::Sweep),
    ]
}

fn asking() -> impl Strategy<Value = Asking> {
    let again = prop_oneof![5 => Just(None), 1 => (0_usize..3).prop_map(Some)];
    let same_payload = prop_oneof![9 => Just(true), 1 => Just(false)];
    let acts_for = prop_oneof![2 => Just(None), 3 => spans(1..=4).prop_map(Some)];
    let spans = (spans(1..=2), spans(0..=2), acts_for);
    (again, same_payload, spans, policy()).prop_map(
        |(again, same_payload, (lease, retention_beyond_lease, acts_for), policy)| Asking {
            again,
            same_payload,
            lease,
            retention_beyond_lease,
            acts_for: acts_for.map(|acts| acts.min(lease.plus(retention_beyond_lease))),
            policy,
        },
    )
}

fn failing() -> impl Strategy<Value = Failing> {
    let kind = prop_oneof![
        Just(Kind::Final),
        Just(Kind::Retryable),
        Just(Kind::InDoubt),
        Just(Kind::StillInDoubt),
    ];
    let delay = prop_oneof![Just(Spans(0)), spans(1..=2)];
    (kind, delay, spans(1..=4), policy()).prop_map(|(kind, delay, retention, policy)| Failing {
        kind,
        delay,
        retention,
        policy,
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let max = prop_oneof![3 => Just(0), 2 => 1_u32..=3];
    let doubts = prop_oneof![3 => Just(0), 2 => 1_u32..=3];
    let doubts = (doubts, spans(0..=3));
    let in_doubt = prop_oneof![
        2 => Just(InDoubt::Retry),
        1 => Just(InDoubt::Park),
        2 => Just(InDoubt::Probe),
    ];
    (in_doubt, max, doubts, age()).prop_map(|(in_doubt, max, (runs, age), park_after)| Policy {
        in_doubt,
        max_attempts: NonZeroU32::new(max),
        max_in_doubt: NonZeroU32::new(runs).map(|runs| MaxInDoubt { runs, age }),
        park_after,
    })
}

fn age() -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(Duration::ZERO)), 1 => Just(Some(NEVER))]
}

fn by() -> impl Strategy<Value = By> {
    let back = prop_oneof![7 => Just(0_usize), 2 => Just(1), 1 => 2_usize..4];
    let forged =
        prop_oneof![18 => Just(Forged::No), 1 => Just(Forged::Owner), 1 => Just(Forged::Fence)];
    (back, forged).prop_map(|(back, forged)| By { back, forged })
}

// === impl Spans ===

impl Spans {
    pub(super) const NONE: Self = Self(0);

    /// As long as it is.
    pub(super) fn exactly(self) -> Duration {
        SPAN * u32::from(self.0)
    }

    /// A bit longer, unless it is nothing.
    pub(super) fn and_beyond(self) -> Duration {
        match self.0 {
            0 => Duration::ZERO,
            _ => self.exactly() + BEYOND,
        }
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} h", self.exactly().as_secs() / 3_600)
    }
}
