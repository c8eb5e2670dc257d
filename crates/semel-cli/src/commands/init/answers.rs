//! What a first configuration must know, and the file that says it.

use crate::args::InitArgs;
use crate::config::{default_horizon, written};
use semel_gate::settings::{Source, Webhook};
use std::time::Duration;

pub(super) const UPSTREAM: &str = "http://127.0.0.1:3000";
pub(super) const STORE: &str = "dir:./semel-data";
pub(super) const PATH: &str = "/orders";
const NAME: &str = "orders";
const HORIZON_OF_CLIENTS: Duration = Duration::from_secs(24 * 3600);

/// The answers to `semel init`; what is not given has a default, or is left to the gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) upstream: Option<String>,
    pub(super) store: Option<String>,
    pub(super) name: Option<String>,
    pub(super) path: Option<String>,
    pub(super) source: Option<String>,
    pub(super) key: Vec<String>,
    pub(super) caller: Option<String>,
    pub(super) horizon: Option<String>,
    pub(super) secrets: Vec<String>,
    pub(super) verify: Option<String>,
    pub(super) keys_url: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) emails: Vec<String>,
}

// === impl Answers ===

impl Answers {
    pub(super) fn of(args: &InitArgs) -> Self {
        Self {
            upstream: args.upstream.clone(),
            store: args.store.clone(),
            name: args.name.clone(),
            path: args.path.clone(),
            source: args.source.clone(),
            key: args.key.clone(),
            caller: args.caller.clone(),
            horizon: args.horizon.clone(),
            secrets: args.secrets.clone(),
            verify: args.verify.clone(),
            keys_url: args.keys_url.clone(),
            audience: args.audience.clone(),
            emails: args.emails.clone(),
        }
    }

    pub(super) fn is_some_given(&self) -> bool {
        *self != Self::default()
    }

    pub(super) fn is_api(&self) -> bool {
        self.source.as_deref() == Some("api")
    }

    /// The sender that signs its deliveries, if it is one.
    pub(super) fn webhook(&self) -> Option<Webhook> {
        let source = self.source.as_deref()?;
        Webhook::ALL.into_iter().find(|it| it.word() == source)
    }

    pub(super) fn verifies(&self) -> bool {
        self.verify.is_some() || self.webhook().is_some()
    }

    /// The short file.
    pub(super) fn file(&self) -> String {
        let upstream = self.upstream.as_deref().unwrap_or(UPSTREAM);
        let store = self.store.as_deref().unwrap_or(STORE);
        let mut file = String::from(
            "# For `semel gate`; `semel check` judges it, docs/config.md has every setting.\n",
        );
        file.push_str(&setting("upstream", upstream, "your handler"));
        file.push_str(&setting(
            "store",
            store,
            "dir: is for one process; postgres://, redis:// and firestore:// for many",
        ));
        file.push_str("\n[[route]]\n");
        file.push_str(&self.route());
        file
    }

    fn route(&self) -> String {
        let path = self.path.as_deref().unwrap_or(PATH);
        let name = self.name.clone().unwrap_or_else(|| name_of(path));
        let or_example =
            |name: &str, given: &Option<String>, example: &str, comment: &str| match given {
                Some(value) => setting(name, value, comment),
                None => commented(&format!("# {name} = {example}"), comment),
            };
        let mut route = setting("name", &name, "enters every key: renaming it forgets them");
        route.push_str(&setting("path", path, "what takes effect once"));
        route.push_str(&or_example(
            "source",
            &self.source,
            "\"cloud-tasks\"",
            "who delivers; every broker, unless given",
        ));
        route.push_str(&self.key());
        if self.caller.is_some() || self.webhook().is_none() {
            route.push_str(&or_example(
                "caller",
                &self.caller,
                "\"header:x-client-id\"",
                "how API clients are told apart",
            ));
        }
        route.push_str(&self.verification(or_example));
        route.push_str(&or_example(
            "horizon",
            &self.horizon,
            &format!("\"{}\"", written(self.horizon())),
            "how late the sender may deliver the same again; a shorter one is an assumption",
        ));
        route
    }

    /// The key: a text of one part or preset, or a list of parts.
    fn key(&self) -> String {
        let comment = "parts that make deliveries the same work; default: the sender's own id";
        let between = |c: char| c == ',' || c.is_whitespace();
        let parts = self.key.iter().flat_map(|text| text.split(between));
        let parts: Vec<_> = parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        match parts.as_slice() {
            [] if self.key.is_empty() => commented("# key = \"/order_id\"", comment),
            [] | [_] => setting("key", &parts.concat(), comment),
            _ => list("key", &parts, comment),
        }
    }

    /// The span of the sender's deliveries, or an example of how long clients may repeat a request.
    fn horizon(&self) -> Duration {
        let word = self.source.as_deref();
        let webhooks = Webhook::ALL.into_iter().map(Source::Webhook);
        let mut sources = Source::ALL.into_iter().chain(webhooks);
        let source = sources.find(|source| Some(source.word()) == word);
        default_horizon(source.unwrap_or(Source::CloudTasks)).unwrap_or(HORIZON_OF_CLIENTS)
    }

    /// How senders show who they are.
    fn verification(
        &self,
        or_example: impl Fn(&str, &Option<String>, &str, &str) -> String,
    ) -> String {
        let mut lines = list(
            "secrets",
            &self.secrets,
            "where the secret is that the sender signs with",
        );
        if self.verify.is_some() || self.webhook().is_none() {
            lines.push_str(&or_example(
                "verify",
                &self.verify,
                "\"google\"",
                "who signs the senders' tokens; nobody is asked for one, unless given",
            ));
        }
        for (name, given, comment) in [
            ("keys_url", &self.keys_url, "the issuer's `jwks_uri`"),
            ("audience", &self.audience, "for whom the tokens are signed"),
        ] {
            if let Some(value) = given {
                lines.push_str(&setting(name, value, comment));
            }
        }
        lines.push_str(&list("emails", &self.emails, "the accounts that deliver"));
        lines
    }
}

fn setting(name: &str, value: &str, comment: &str) -> String {
    commented(&format!("{name} = {}", toml::Value::from(value)), comment)
}

/// A list, if there is something in it.
fn list(name: &str, values: &[String], comment: &str) -> String {
    if values.is_empty() {
        return String::new();
    }
    let values = toml::Value::from(values.to_vec());
    commented(&format!("{name} = {values}"), comment)
}

fn commented(line: &str, comment: &str) -> String {
    format!("{line:<40} # {comment}\n")
}

/// The first name of a path, to begin with.
fn name_of(path: &str) -> String {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    let name = names.next().filter(|name| !name.contains(['*', '{', '%']));
    name.unwrap_or(NAME).into()
}
