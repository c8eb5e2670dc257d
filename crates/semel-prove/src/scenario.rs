//! What is to be proved, as it is written: how to start the handler, what to deliver to it, what it promises, and how to
//! see what it did.

pub(crate) mod check;
pub(crate) mod endpoint;
pub(crate) mod gate;
pub(crate) mod template;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use template::Variables;
use url::Url;

/// A whole scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What the report calls it; the file's name unless given.
    #[serde(default)]
    pub name: String,
    /// What effects the handler owes its senders.
    pub promise: Promise,
    /// What the report may leave open and hold all the same.
    #[serde(default)]
    pub accept: Vec<Accepted>,
    /// What is started, in this order. Empty when `deliver.target` names a handler that runs already.
    #[serde(default, rename = "process")]
    pub processes: Vec<Process>,
    /// Servers that the processes talk to, each through a proxy.
    #[serde(default, rename = "dependency")]
    pub dependencies: Vec<Dependency>,
    /// What makes the world ready, before the processes start, or before each delivery.
    #[serde(default, rename = "before")]
    pub before: Vec<Before>,
    /// A gate that stands before the handler.
    pub gate: Option<Gate>,
    /// What is sent.
    pub deliver: Deliver,
    /// How effects are seen. At least one.
    #[serde(rename = "effect")]
    pub effects: Vec<Effect>,
    /// Files that are written before the processes start: where, and what.
    #[serde(skip)]
    pub(crate) files: Vec<(String, String)>,
}

/// What a delivery may cause, however often it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Promise {
    /// One effect.
    #[serde(rename = "exactly once")]
    ExactlyOnce,
    /// One effect or none: a delivery that is parked for a person is not a loss.
    #[serde(rename = "at most once")]
    AtMostOnce,
    /// One effect or more.
    #[serde(rename = "at least once")]
    AtLeastOnce,
}

/// A gap that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// No process could be killed: what a crash does was not tried.
    NoKill,
}

/// Something that is started, and can be killed and paused.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// What others call it: letters, digits, `-` and `_`.
    pub name: String,
    /// A command, split into words as a shell does. `{port}` is its own free port (also in `PORT`), `{port.NAME}` another
    /// process's, `{dir}` a directory of its own that is made new for each run, `{here}` the scenario's directory.
    pub spawn: String,
    /// A path that answers below 500 once it is ready; unless given, its port must take connections. `"none"`: it has
    /// no port and is ready at once (a worker).
    pub ready: Option<String>,
    /// Added to the environment; the same words are replaced.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether attacks may kill and pause it.
    #[serde(default = "yes")]
    pub attack: bool,
}

/// A server of the real world, reached through a proxy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// The environment variable by which the processes find it; it is pointed at the proxy.
    pub env: String,
    /// Where it really is; unless given, what the variable says where `semel prove` runs. `{port.NAME}` names a process.
    pub url: Option<String>,
}

/// A gate before the handler: `semel gate` with a configuration of the user's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The configuration, from the scenario's directory. It is copied; the file itself is left alone.
    #[serde(default = "gate_config")]
    pub config: String,
    /// The dependency that stands for its store; the only one of that kind unless given. A `dir:` store is made new.
    pub store: Option<String>,
    /// Longer leases are shortened to this, in milliseconds; 0 leaves them.
    #[serde(default = "number::<500, _>")]
    pub lease_ms: u64,
    /// Whether attacks may kill and pause it.
    #[serde(default = "yes")]
    pub attack: bool,
}

/// One thing done before the processes start. Exactly one of `sql`, `redis`, `command`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// Statements.
    pub sql: Option<String>,
    /// A Redis command, as `FLUSHDB`.
    pub redis: Option<String>,
    /// A command.
    pub command: Option<String>,
    /// On which dependency: its variable, or `sqlite:PATH`. The only one of its kind unless given.
    pub on: Option<String>,
    /// Once for each delivery, with `{id}`.
    #[serde(default)]
    pub each: bool,
}

/// What is sent, and by what kind of sender.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deliver {
    /// The process that receives; the last one unless given.
    pub to: Option<String>,
    /// A handler that runs already, instead of a process: attacks on processes are then not run. It may name a path.
    pub target: Option<String>,
    /// Who sends.
    #[serde(rename = "as")]
    pub sender: SenderKind,
    /// Where to; the path of `target`, or `/`, unless given.
    pub path: Option<String>,
    /// POST unless given.
    pub method: Option<String>,
    /// Added to what the sender sends.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The payload; `{id}` is the delivery's own, `{n}` its number, `{entity}` what it is about: its own id, but the
    /// same for two deliveries that come in the wrong order, `{version}` which state of it this is, `{tenant}` on whose
    /// behalf, `{message}` the message that carries it. For Pub/Sub it is the message's data.
    #[serde(default)]
    pub body: String,
    /// Another payload under the same key; without it that attack is not run.
    pub other_body: Option<String>,
    /// A payload whose key part is missing or malformed; without it that attack is not run.
    pub bad_body: Option<String>,
    /// The command that delivers, for senders of another kind: it ends with 0 when the delivery was accepted.
    pub command: Option<String>,
    /// A recorded file, instead of a template: HAR, or JSON lines of method, url, headers, body.
    pub recorded: Option<String>,
    /// How long the sender waits for an answer, in milliseconds.
    #[serde(default = "number::<5_000, _>")]
    pub deadline_ms: u64,
    /// How often it delivers before it gives up.
    #[serde(default = "number::<20, _>")]
    pub attempts: u32,
    /// How long it waits between attempts, in milliseconds.
    #[serde(default = "number::<200, _>")]
    pub pause_ms: u64,
    /// How long a lock or lease of the handler lasts, in milliseconds: a pause must outlast it.
    #[serde(default = "number::<2_000, _>")]
    pub lease_ms: u64,
    /// The member of a JSON body that says what is the same, whatever message carries it, as `order.id`. It is `{id}`.
    pub domain_id: Option<String>,
    /// After how long a delivery comes once more, in milliseconds: the run takes at least that long.
    pub redeliver_after_ms: Option<u64>,
    /// Whether the queue itself puts away what always fails.
    #[serde(default)]
    pub dead_letters: bool,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderKind {
    /// Headers of Cloud Tasks; any 2xx is a success.
    CloudTasks,
    /// A push envelope; 102, 200, 201, 202, 204 acknowledge.
    Pubsub,
    /// Binary CloudEvents.
    Cloudevents,
    /// An API client with `Idempotency-Key`; anything below 500 but 409, 425 and 429 ends its retries, and repeats must be
    /// answered the same.
    Http,
    /// A command.
    Command,
}

/// One way to see effects. Exactly one of `sql`, `http`, `command`, `redis`, `firestore`, `calls`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// What the report calls it; each has its own.
    pub name: String,
    /// Rows of two columns: the delivery's id (or a text that contains it), and how often.
    pub sql: Option<String>,
    /// A URL that answers a JSON object of counts by id. `{port.NAME}` names a process.
    pub http: Option<String>,
    /// A command that prints lines of an id and a count.
    pub command: Option<String>,
    /// A pattern of Redis keys that contain the id: a number counts as it is, a list, set, hash or stream by its members,
    /// any other text as one.
    pub redis: Option<String>,
    /// Documents of a collection in Firestore: `orders` counts those that name the id, `taken in stock` and
    /// `100 - n in stock` what a field of theirs holds.
    pub firestore: Option<String>,
    /// A dependency that is spoken to in HTTP: every request that names the id is one, unless it only reads (GET, HEAD,
    /// OPTIONS, TRACE).
    pub calls: Option<String>,
    /// For `calls`: whether the service honours idempotency keys, so that calls under one key are one effect. Unless given,
    /// they are as long as all of them are answered the same.
    pub honours_key: Option<bool>,
    /// On which dependency, or `sqlite:PATH` from the scenario's directory; the only one of its kind unless given.
    pub on: Option<String>,
    /// How often one delivery is to be seen; 1 unless given. Not 0 for all: who sees nothing cannot tell work from none.
    #[serde(default = "number::<1, _>")]
    pub expected: u64,
    /// The number is not a count: it is the `{version}` that stands for an `{entity}`, and the newest must win.
    #[serde(default)]
    pub newest: bool,
}

// === impl Deliver ===

impl Deliver {
    /// The path that is delivered to, with the query.
    pub(crate) fn path(&self) -> String {
        let target = self.target.as_ref().and_then(|url| Url::parse(url).ok());
        match (&self.path, target) {
            (Some(path), _) => path.clone(),
            (None, Some(url)) => endpoint::path_and_query(&url).to_owned(),
            (None, None) => "/".to_owned(),
        }
    }

    /// Whether what is delivered contains this word.
    pub(crate) fn names(&self, word: &str) -> bool {
        let texts = [Some(&self.body), self.path.as_ref(), self.command.as_ref()];
        let mut texts = texts.into_iter().flatten().chain(self.headers.values());
        texts.any(|text| text.contains(word))
    }

    /// The payload of some delivery, to see what it is.
    pub(crate) fn sample_body(&self) -> String {
        let words = Variables::default().with("n", 1).with("version", 1);
        words.expand(&self.body)
    }

    /// After how long a delivery comes once more.
    pub(crate) fn redeliver_after(&self) -> Option<Duration> {
        self.redeliver_after_ms.map(Duration::from_millis)
    }

    /// How long the sender waits between attempts.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms)
    }

    /// How long a lock or lease of the handler lasts.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// How long the sender waits for an answer.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}

fn yes() -> bool {
    true
}

fn gate_config() -> String {
    "semel.toml".to_owned()
}

/// A default that is a number.
fn number<const N: u32, T: From<u32>>() -> T {
    N.into()
}
