//! Finding work: by its key, by the parts that name it, by a client's `Idempotency-Key`, or by what its sender called a
//! delivery of it. The parts lead to the key through the route's own rule, so no index is needed for them.

mod answer;
mod parts;
mod text;

use crate::operate::Refused;
use crate::settings::{Route, Source};
use http::{HeaderMap, HeaderValue};
use parts::Asked;
use semel::Key;
use semel::key::Part;
pub(crate) use text::{KEYS_LOOKED_MAX, keys_of_text, named_parts};

/// What somebody looks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// A key, an order or whatever else names work, the name of a task, the id of a message, event or trace.
    pub text: Option<String>,
    /// The route whose rule names the work; needed with parts.
    pub route: Option<String>,
    /// Parts of a key by their names: `order_id`, `header:x-id`.
    pub parts: Vec<(String, String)>,
    /// What an API client sent.
    pub idempotency_key: Option<String>,
    /// Which client, as the route tells them apart.
    pub caller: Option<String>,
    /// By which method it asked.
    pub method: Option<String>,
}

/// The member of a query that names a part.
const PART: &str = "part";

/// What an API client mostly uses.
const METHOD_DEFAULT: &str = "POST";

const WHAT_TO_ASK: &str = "ask for `q` (a key, an order, a task's name, the id of a message, event or trace), or for `route` and \
                           `part=NAME=VALUE`, or for `idempotency_key` and `caller`";

// === impl Question ===

impl Question {
    /// Reads a query.
    ///
    /// # Errors
    /// When a member is unknown, or nothing is asked for.
    pub fn of_pairs(pairs: Vec<(String, String)>) -> Result<Self, Refused> {
        let mut question = Self::default();
        for (name, value) in pairs {
            match name.as_str() {
                "q" => question.text = Some(value.trim().to_owned()),
                "route" => question.route = Some(value),
                "idempotency_key" => question.idempotency_key = Some(value),
                "caller" => question.caller = Some(value),
                "method" => question.method = Some(value),
                PART => match value.split_once('=') {
                    Some((name, value)) => question.parts.push((name.into(), value.into())),
                    None => {
                        let wrong = format!("the part {value:?} is not of the form NAME=VALUE");
                        return Err(Refused::mistaken(wrong, WHAT_TO_ASK));
                    }
                },
                other => {
                    let wrong = format!("{other:?} is not something to find by");
                    return Err(Refused::mistaken(wrong, WHAT_TO_ASK));
                }
            }
        }
        question.judged()
    }

    /// The same as a query.
    #[must_use]
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let named = [
            ("q", &self.text),
            ("route", &self.route),
            ("idempotency_key", &self.idempotency_key),
            ("caller", &self.caller),
            ("method", &self.method),
        ];
        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        let parts = self.parts.iter();
        let parts = parts.map(|(name, value)| (PART, format!("{name}={value}")));
        named.chain(parts).collect()
    }

    /// Whether it asks for one thing.
    ///
    /// # Errors
    /// When it asks for nothing, or for several things at once.
    pub fn judged(self) -> Result<Self, Refused> {
        let asked = [
            self.text.is_some(),
            !self.parts.is_empty(),
            self.idempotency_key.is_some(),
        ];
        match asked.into_iter().filter(|it| *it).count() {
            1 if self.parts.is_empty() || self.route.is_some() => Ok(self),
            1 => Err(Refused::mistaken(
                "which route's rule names the work by these parts?",
                "name it with `route` (`semel find --route NAME order_id=A-1`)",
            )),
            0 => Err(Refused::mistaken("nothing is asked for", WHAT_TO_ASK)),
            _ => Err(Refused::mistaken(
                "several things are asked for at once",
                WHAT_TO_ASK,
            )),
        }
    }

    /// The keys that the work may have: by text, parts or `Idempotency-Key`. A value that may be text or a JSON value, like
    /// `7`, leads to more than one. Names of deliveries lead to none here: those who remember them are asked.
    ///
    /// # Errors
    /// When a route is unknown, or the parts are not those of its rule.
    pub fn keys<'a>(
        &self,
        namespace: &str,
        routes: impl Iterator<Item = &'a Route> + Clone,
    ) -> Result<Vec<Key>, Refused> {
        if let Some(text) = &self.text {
            let mut keys = keys_of_text(namespace, routes, text);
            keys.truncate(KEYS_LOOKED_MAX);
            return Ok(keys);
        }
        let named = |route: &&Route| self.route.as_ref().is_none_or(|name| *name == route.name);
        let meant: Vec<_> = routes.clone().filter(named).collect();
        if meant.is_empty() {
            let known: Vec<_> = routes.map(|route| route.name.as_str()).collect();
            return Err(Refused::mistaken(
                format!(
                    "there is no route {:?}",
                    self.route.as_deref().unwrap_or("")
                ),
                format!("the routes are: {}", known.join(", ")),
            ));
        }
        let asked = Asked {
            namespace,
            method: self.method.as_deref().unwrap_or(METHOD_DEFAULT),
            caller: self.caller.as_deref(),
        };
        match &self.idempotency_key {
            Some(sent) => by_idempotency_key(&asked, &meant, sent),
            None => {
                let route = meant.first().expect("one was found");
                asked.keys(route, &self.parts)
            }
        }
    }
}

impl Question {
    /// The keys of its parts where no route's rule is known: the library's and Python's routes, by name and namespace.
    ///
    /// # Errors
    /// When it names no route and parts, or parts that no rule has.
    pub fn keys_unruled(&self, namespace: &str) -> Result<Vec<Key>, Refused> {
        let asked = Asked {
            namespace,
            method: METHOD_DEFAULT,
            caller: None,
        };
        match &self.route {
            Some(route) if !self.parts.is_empty() => asked.keys_unruled(route, &self.parts),
            Some(_) | None => Err(Refused::mistaken(
                "without a configuration, work is named by its route and its parts",
                "name them (`semel find --store URL --route NAME order_id=A-1`)",
            )),
        }
    }
}

/// The keys of what a client sent, on every route that names work by it.
fn by_idempotency_key(
    asked: &Asked<'_>,
    routes: &[&Route],
    sent: &str,
) -> Result<Vec<Key>, Refused> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_str(sent);
    let value = value.map_err(|_| {
        Refused::mistaken(
            "this is not an Idempotency-Key: a header cannot hold it",
            "copy it as the client sent it",
        )
    })?;
    headers.insert("idempotency-key", value);
    let read = crate::source::api::idempotency_key(&headers);
    let read =
        read.map_err(|invalid| Refused::mistaken(invalid.detail, "nothing has such a key"))?;
    let part = Part::Named("header:idempotency-key".into());
    let by_it = |route: &&&Route| {
        let takes = route.sources.contains(&Source::Api);
        takes && route.terms(Source::Api).key.parts() == [part.clone()]
    };
    let mut keys = Vec::new();
    for route in routes.iter().filter(by_it) {
        let given = [(part.to_string(), read.as_deref().unwrap_or(sent).to_owned())];
        keys.extend(asked.keys(route, &given)?);
    }
    if keys.is_empty() {
        return Err(Refused::mistaken(
            "no route here names work by an Idempotency-Key alone",
            "name the parts of its rule (`semel find --route NAME PART=VALUE`)",
        ));
    }
    Ok(keys)
}
