//! Settings: what a gate is told to do. Data only; `semel-cli` reads them from a file, flags and the
//! environment and proves that they fit together.

mod land;
mod limits;
mod otlp;
pub(crate) mod network;
mod promise;
mod redelivery;
mod tls;
mod verify;

pub use land::{LAND_WITHIN, LandRule, Lands};
pub use limits::Limits;
pub use network::{Network, NetworkError};
pub use otlp::{Otlp, OtlpProtocol, Sampler, SpanBatch};
pub use promise::{Downstream, DownstreamKeys, Promise};
pub use redelivery::Redelivery;
pub use tls::{CERTIFICATE_RELOAD_EVERY, IdentityFiles, ListenerTls};
pub use verify::{
    Algorithm, Issuer, IssuerKeys, KeyMissing, KeySetUrlError, SignatureRule, TOLERANCE_DEFAULT,
    TokenRule, Verify, Webhook, is_google_key_set, key_set_url,
};

use crate::path::{PathAllowance, PathPattern};
use http::{Method, StatusCode, Uri};
use semel::key::KeyRule;
use semel::protocol::{InDoubt, Lease};
use semel::work::{Backoff, Completes};
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// A whole gate.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where deliveries arrive.
    pub listen: SocketAddr,
    /// What senders are shown there; without it they come without TLS.
    pub tls: Option<ListenerTls>,
    /// Where operators and Prometheus ask.
    pub admin: SocketAddr,
    /// What an operator must show; needed when `admin` is not a loopback address.
    pub admin_token: Option<Secret>,
    /// What somebody must show who may look there, and not act.
    pub admin_view_token: Option<Secret>,
    /// Names under which `admin` may be asked besides its address, at a proxy for instance.
    pub admin_hosts: Vec<String>,
    /// Where a run's steps are begun and recorded.
    pub steps: SocketAddr,
    /// How handlers reach `steps`, when they are not on this host.
    pub steps_url: Option<String>,
    /// Keeps installations apart that share a store.
    pub namespace: String,
    /// This gate among others, for people: labels and histories name it.
    pub name: String,
    /// Whether the sender's own names for a delivery are written to the store, so that work can be found by them for as long
    /// as it is remembered.
    pub index: bool,
    /// The protected paths.
    pub routes: Vec<Route>,
    /// What is forwarded as it is, and where to.
    pub pass: Option<Pass>,
    /// The largest sum of all bodies in hand.
    pub bodies_bytes_max: usize,
    /// The most connections at once.
    pub connections_max: usize,
    /// Where all traffic comes from, whoever sent it (load balancers): no share is kept for one of
    /// these addresses. Loopback is one of them always.
    pub proxies: Vec<Network>,
    /// What one connection, body or address may take.
    pub limits: Limits,
    /// How long runs may take to end after the gate was told to stop.
    pub grace: Duration,
    /// How long a settled outcome is answered from memory when other processes share the store.
    pub shared_cache: Duration,
    /// How often all letters are reconciled with the records of their work.
    pub reconcile_every: Duration,
    /// Who receives spans; nobody, if it is not set.
    pub otlp: Option<Otlp>,
}

/// How often all letters are reconciled with the records of their work: a letter whose work has succeeded stays no longer than
/// that, and looking at ten thousand of them takes a store some seconds.
pub const RECONCILE_EVERY: Duration = Duration::from_secs(60);

/// Paths that are forwarded unprotected.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Which.
    pub paths: Vec<PathPattern>,
    /// Where to.
    pub upstream: Upstream,
}

/// One protected path.
#[derive(Clone, Debug)]
pub struct Route {
    /// Enters every key: renaming a route forgets its keys.
    pub name: String,
    /// Which requests are this route's.
    pub path: PathPattern,
    /// Spellings of paths that are refused unless they are named here; for paths with `/*` only.
    pub path_allows: Vec<PathAllowance>,
    /// Which methods; empty for all, of which GET, HEAD and OPTIONS of API clients are then forwarded
    /// unprotected.
    pub methods: Vec<Method>,
    /// Who delivers here; with more than one, each request shows whose it is.
    pub sources: Vec<Source>,
    /// How senders show who they are.
    pub verify: Verify,
    /// How a caller is told from another, on API routes; without one, API requests are refused.
    pub caller: Option<Caller>,
    /// What becomes of an API client's request without a key.
    pub key_missing: KeyMissing,
    /// Who may ask, in the handshake of CloudEvents webhooks, to deliver here.
    pub webhook_origins: Vec<String>,
    /// What a repeat is compared by.
    pub fingerprint: FingerprintRule,
    /// Attributes of Pub/Sub messages that are not compared; a star at the end stands for any rest.
    pub fingerprint_ignores: Vec<String>,
    /// JSON pointers that a payload must have.
    pub require: Vec<String>,
    /// Whether anything is remembered of what was delivered here.
    pub record: RecordKeeping,
    /// When the platform itself ends a request, on a route without records.
    pub platform_timeout: Option<Duration>,
    /// Whether its senders keep by themselves what they give up, on a route without records.
    pub dead_letter_topic: bool,
    /// The terms for each source: those of [`Source::ALL`] in their order, then those of webhooks.
    pub terms: [Terms; 5],
    /// What becomes of a run whose effect may or may not have happened.
    pub in_doubt: InDoubt,
    /// Where the handler says whether it did; for [`InDoubt::Probe`] alone.
    pub probe: Option<Probe>,
    /// Who records success.
    pub completes: Completes,
    /// What becomes of an effect downstream that comes a second time; none: nothing is known.
    pub downstream: Option<Downstream>,
    /// What must be proved of its effects before the gate serves.
    pub promise: Option<Promise>,
    /// Whether callers that name their own Cloud Tasks never use a name again.
    pub task_names_unique: bool,
    /// Which statuses of the handler are failures for good.
    pub final_statuses: Vec<RangeInclusive<u16>>,
    /// Which statuses of the handler say that nothing happened, where doubt is parked.
    pub undone_statuses: Vec<RangeInclusive<u16>>,
    /// How many runs before the work is parked; zero is no limit.
    pub max_attempts: u32,
    /// The pause after a retryable failure.
    pub backoff: Backoff,
    /// How many runs at once: a handler mostly holds a database connection while it runs.
    pub concurrency: usize,
    /// How many deliveries may wait for a slot.
    pub queue: usize,
    /// The handler; nobody is called where only deliveries land.
    pub upstream: Upstream,
    /// What lands of its deliveries, if they do.
    pub land: Option<LandRule>,
    /// What becomes of a broker's delivery that can have no key.
    pub on_invalid: OnInvalid,
    /// What becomes of a broker's delivery that does not come again, and has not succeeded.
    pub on_exhausted: OnExhausted,
    /// Web origins whose pages may read the gate's own problem answers.
    pub cors: Vec<String>,
    /// How much of its deliveries may be kept as letters.
    pub letters: LetterLimits,
    /// The largest body that is taken in.
    pub body_bytes_max: usize,
    /// The largest answer that is kept.
    pub answer_bytes_max: usize,
    /// On a private route: the key of the digests that people see instead of what the deliveries say.
    pub private: Option<Secret>,
    /// Whether a record keeps the first delivery's payload for people, if it fits.
    pub keep_payload: bool,
    /// Whether the page shows the bodies of answers and letters.
    pub show_bodies: bool,
}

/// Whether a route keeps records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKeeping {
    /// In the store: each piece of work takes effect once.
    Store,
    /// None: each delivery runs, and whoever is behind the handler drops repeats by their key.
    None,
}

/// Where a handler says what became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How it is asked.
    pub method: Method,
    /// Where, with `{key}` for the key.
    pub path: String,
    /// Whether the handler refuses runs with a lower fence than one that it has answered about.
    pub fences: bool,
    /// How long a run in doubt may still act, its lease and its timeout aside: nobody asks before that.
    /// [`PROBE_AFTER`], but for tests that cannot wait so long.
    pub after: Duration,
}

/// What depends on who delivers.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Which deliveries are the same work.
    pub key: KeyRule,
    /// How long the right to run lasts unless renewed.
    pub lease: Duration,
    /// How long the handler may take; longer than the deadline, and the run goes on without its sender.
    pub timeout: Duration,
    /// When the sender gives up on one delivery.
    pub deadline: Option<Duration>,
    /// How often the sender delivers before it gives up for good.
    pub sender_attempts: SenderAttempts,
    /// How long an outcome is remembered.
    pub retention: Duration,
    /// Longest time from the first delivery of a piece of work to its last possible one, pauses and seeks included. A promise
    /// needs outcomes to be remembered for that long.
    pub horizon: Option<Duration>,
    /// Shortest time for which the sender delivers again, as far as it is known. Unfinished work becomes a letter at half of it.
    pub delivers_for: Option<Duration>,
    /// Longest pause between two deliveries: work is overdue after it. Says nothing about how long outcomes must be remembered.
    pub gap: Option<Duration>,
    /// How long a duplicate waits for the running one.
    pub wait: Duration,
    /// How many runs may end in doubt before the work is parked; zero is no limit.
    pub max_in_doubt: u32,
    /// Minimum age of the first doubt before `max_in_doubt` parks: [`DOUBT_AGE_MIN`](semel::work::DOUBT_AGE_MIN), but for tests
    /// that cannot wait for it.
    pub doubt_age: Duration,
    /// How old the work may get before it is parked, if it was tried a few times.
    pub park_after: Option<Duration>,
}

/// How often a sender delivers before it gives up for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderAttempts {
    /// Maximum deliveries; `None`: no limit in number, or a schedule whose number of deliveries is not documented.
    pub most: Option<u32>,
    /// Whether the route declares it; otherwise it is the sender's default.
    pub declared: bool,
}

/// Who delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A client that asks and waits for the answer.
    Api,
    /// Google Cloud Tasks.
    CloudTasks,
    /// Google Cloud Pub/Sub, by push.
    PubSub,
    /// CloudEvents over HTTP, Eventarc among them.
    CloudEvents,
    /// A sender of signed webhooks; it has its route to itself.
    Webhook(Webhook),
}

/// How a caller is told from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// All requests are one trusted client's.
    Shared,
    /// By a header that something trusted in front sets; its name in lower case.
    Header(String),
    /// By this claim of the verified token.
    Claim(String),
}

/// What a repeat of a key is compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FingerprintRule {
    /// All that makes it other work: method, path (with the query for Cloud Tasks and API clients), an
    /// event's type, subject and dataschema, a message's attributes, and the payload.
    Full,
    /// The same and these named values beside it.
    With(Vec<String>),
    /// The payload alone.
    Payload,
    /// Nothing: every repeat is honest.
    Off,
}

/// What becomes of a broker's delivery that can have no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalid {
    /// It is kept as a letter and acknowledged.
    Letter,
    /// It is refused, and the broker tries again.
    Reject,
    /// It lands among the faults, and is acknowledged.
    Land,
}

/// What becomes of a broker's delivery that does not come again, and has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExhausted {
    /// It is kept as a letter and acknowledged.
    Letter,
    /// The broker is told the truth, and does with it what it does: its own dead-letter topic, or nothing.
    Nack,
}

/// How much of a route's deliveries may be kept as letters. Invalid and mismatched ones together get at
/// most half of each: whoever can deliver can make those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterLimits {
    /// How many letters.
    pub count_max: u64,
    /// How many bytes of them all.
    pub bytes_max: u64,
}

/// Where a handler listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// `http://host:port` or `https://host:port`, without a path.
    pub base: Uri,
    /// The PEM file of the roots that are believed of a handler with `https`; without it, those that this
    /// machine believes.
    pub ca: Option<PathBuf>,
    /// Whether it speaks HTTP/2 without TLS.
    pub h2c: bool,
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

// === impl Route ===

impl Route {
    /// The terms for deliveries of this source.
    #[must_use]
    pub const fn terms(&self, source: Source) -> &Terms {
        let [api, cloud_tasks, pubsub, cloudevents, webhook] = &self.terms;
        match source {
            Source::Api => api,
            Source::CloudTasks => cloud_tasks,
            Source::PubSub => pubsub,
            Source::CloudEvents => cloudevents,
            Source::Webhook(_) => webhook,
        }
    }

    /// Longest retention of its sources.
    #[must_use]
    pub fn retention(&self) -> Duration {
        let terms = self
            .sources
            .iter()
            .map(|source| self.terms(*source).retention);
        terms.max().unwrap_or_default()
    }

    /// Longest pause between two deliveries of a piece of work; zero where no sender delivers twice.
    #[must_use]
    pub fn gap(&self) -> Duration {
        let gaps = self
            .sources
            .iter()
            .filter_map(|source| self.terms(*source).gap);
        gaps.max().unwrap_or_default()
    }

    /// Whether it claims, remembers and keeps letters; otherwise each delivery runs.
    #[must_use]
    pub const fn keeps_records(&self) -> bool {
        match self.record {
            RecordKeeping::Store => true,
            RecordKeeping::None => false,
        }
    }

    /// Whether the handler's answer is a failure for good, by the route's rule.
    #[must_use]
    pub fn is_final(&self, status: StatusCode) -> bool {
        among(&self.final_statuses, status)
    }

    /// Whether the handler's answer says that nothing happened.
    #[must_use]
    pub fn is_undone(&self, status: StatusCode) -> bool {
        among(&self.undone_statuses, status)
    }

    /// Whether an answer that is not a success leaves it open whether the effect happened. Where doubt is tried again
    /// it makes no difference, and where the handler completes by itself nothing is in doubt.
    #[must_use]
    pub const fn doubts_failures(&self) -> bool {
        match (self.in_doubt, self.completes) {
            (InDoubt::Park | InDoubt::Probe, Completes::Run) => true,
            (InDoubt::Park | InDoubt::Probe, Completes::Handler) | (InDoubt::Retry, _) => false,
        }
    }

    /// Whether a run in doubt is parked. Where the handler completes by itself nothing is in doubt: what
    /// is not recorded did not commit.
    #[must_use]
    pub const fn parks_doubt(&self) -> bool {
        match (self.in_doubt, self.completes) {
            (InDoubt::Park, Completes::Run) => true,
            (InDoubt::Park, Completes::Handler) | (InDoubt::Retry | InDoubt::Probe, _) => false,
        }
    }
}

fn among(ranges: &[RangeInclusive<u16>], status: StatusCode) -> bool {
    ranges.iter().any(|range| range.contains(&status.as_u16()))
}

// === impl Probe ===

impl Probe {
    /// What stands for the key in a path.
    pub const KEY: &'static str = "{key}";

    pub(crate) fn path_for(&self, lease: &Lease) -> String {
        self.path.replace(Self::KEY, &lease.key.to_string())
    }
}

// === impl Terms ===

/// How long a run in doubt may still act, its lease and its timeout aside: long enough for a handler that was given up to
/// end.
pub const PROBE_AFTER: Duration = Duration::from_secs(12);

/// Senders are answered so long before they give up.
pub const DEADLINE_MARGIN: Duration = Duration::from_secs(1);

impl Terms {
    /// When a sender must have its reply, after its delivery came.
    #[must_use]
    pub fn replies_within(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_sub(DEADLINE_MARGIN))
    }

    /// Whether a run may go on when its sender has given up on the delivery.
    #[must_use]
    pub fn outlasts_sender(&self) -> bool {
        self.replies_within()
            .is_some_and(|within| within < self.timeout)
    }
}

// === impl Source ===

impl Source {
    /// Whether it delivers again until it hears a success code, and forgets the delivery then.
    #[must_use]
    pub const fn is_broker(self) -> bool {
        match self {
            Self::Api => false,
            Self::CloudTasks | Self::PubSub | Self::CloudEvents | Self::Webhook(_) => true,
        }
    }

    /// Whether its operators read the status of an attempt: Cloud Tasks shows the last one.
    pub(crate) const fn shows_status(self) -> bool {
        matches!(self, Self::CloudTasks)
    }

    /// Those that can share a route, because each request shows whose it is.
    pub const ALL: [Self; 4] = [Self::Api, Self::CloudTasks, Self::PubSub, Self::CloudEvents];

    /// The word for it, in settings, headers and log lines.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::CloudTasks => "cloud-tasks",
            Self::PubSub => "pubsub",
            Self::CloudEvents => "cloudevents",
            Self::Webhook(webhook) => webhook.word(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

// === impl Secret ===

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
