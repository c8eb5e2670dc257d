//! From the parts that somebody names to the keys that a route would give them.

use crate::label::part_name;
use crate::operate::Refused;
use crate::settings::{Caller, Route, Source};
use semel::Key;
use semel::key::{Delivered, Field, KeyRule, Part, Scope};
use serde_json::value::RawValue;

/// How many keys one question may lead to: a value that may be text or a JSON value doubles them.
const KEYS_MAX: usize = 64;

/// Where, by whom and how it was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) namespace: &'a str,
    pub(super) method: &'a str,
    pub(super) caller: Option<&'a str>,
}

// === impl Asked ===

impl Asked<'_> {
    /// The keys that the route's rules give these parts, for each of its senders whose rule has just these.
    pub(super) fn keys(
        &self,
        route: &Route,
        given: &[(String, String)],
    ) -> Result<Vec<Key>, Refused> {
        let (mut keys, mut refused) = (Vec::new(), other_parts(route));
        for source in &route.sources {
            let rule = &route.terms(*source).key;
            let Some(values) = values(rule, given) else {
                continue;
            };
            // One sender's work may be named without what another's needs.
            let scope = match self.scope(route, *source) {
                Ok(scope) => scope,
                Err(why) => {
                    refused = why;
                    continue;
                }
            };
            for fields in combinations(&values)? {
                let key = Key::of(&scope, &fields).map_err(|error| {
                    Refused::mistaken(error.to_string(), "nothing has such a key")
                })?;
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        if keys.is_empty() {
            Err(refused)
        } else {
            Ok(keys)
        }
    }

    /// The keys of these parts on a route that nobody here knows, as a function of the library or of Python: the parts in
    /// the order of its rule, members of the payload unless they say otherwise.
    pub(super) fn keys_unruled(
        &self,
        route: &str,
        given: &[(String, String)],
    ) -> Result<Vec<Key>, Refused> {
        let names = given.iter().map(|(name, _)| match name.as_str() {
            plain if !plain.starts_with('/') && !plain.contains(':') => format!("/{plain}"),
            whole => whole.to_owned(),
        });
        let names: Vec<_> = names.collect();
        let odd = |error: semel::key::KeyError| {
            Refused::mistaken(error.to_string(), "nothing has such a key")
        };
        let rule = KeyRule::new(names.iter().map(String::as_str)).map_err(odd)?;
        let parts = rule.parts().iter().zip(given);
        let values: Vec<_> = parts
            .map(|(part, (_, value))| fields(part, value))
            .collect();
        let scope = Scope::new(self.namespace, route);
        let keys = combinations(&values)?.into_iter();
        keys.map(|fields| Key::of(&scope, &fields).map_err(odd))
            .collect()
    }

    fn scope(&self, route: &Route, source: Source) -> Result<Scope, Refused> {
        let scope = Scope::new(self.namespace, &route.name);
        if source != Source::Api {
            return Ok(scope);
        }
        let caller = match (&route.caller, self.caller) {
            (Some(Caller::Shared) | None, _) => "shared".into(),
            (Some(Caller::Header(_)), Some(caller)) => format!("header:{caller}"),
            (Some(Caller::Claim(claim)), Some(caller)) => format!("jwt:{claim}:{caller}"),
            (Some(Caller::Header(_) | Caller::Claim(_)), None) => {
                return Err(Refused::mistaken(
                    format!(
                        "whose request? The route {} tells its callers apart",
                        route.name
                    ),
                    "name the caller (`--caller`), as its header or token says it",
                ));
            }
        };
        Ok(Scope {
            method: Some(self.method.to_uppercase()),
            caller: Some(caller),
            ..scope
        })
    }
}

/// What each part of the rule may be, if these are its parts.
fn values(rule: &KeyRule, given: &[(String, String)]) -> Option<Vec<Vec<Field>>> {
    if rule.parts().len() != given.len() {
        return None;
    }
    let of_part = |part: &Part| {
        let (_, value) = given.iter().find(|(name, _)| is_name_of(name, part))?;
        Some(fields(part, value))
    };
    rule.parts().iter().map(of_part).collect()
}

/// A part is named as its rule writes it, with or without what stands before its plain name.
fn is_name_of(name: &str, part: &Part) -> bool {
    let plain = match part {
        Part::Pointer(_) | Part::Form(_) | Part::Body => None,
        Part::Named(named) => named.split_once(':').map(|(_, plain)| plain),
    };
    name == part_name(part) || *name == part.to_string() || plain == Some(name)
}

/// What a value may be hashed as: text, and where it stands in a payload the JSON value that it spells.
fn fields(part: &Part, value: &str) -> Vec<Field> {
    let text = Field {
        kind: 's',
        bytes: value.as_bytes().to_vec(),
    };
    match part {
        Part::Form(_) | Part::Named(_) => vec![text],
        Part::Body => {
            let digest = hex::decode(value).ok().filter(|it| it.len() == 32);
            let field = |bytes| Field { kind: 'h', bytes };
            digest.map(field).into_iter().collect()
        }
        Part::Pointer(_) => {
            let mut fields = spelled(value);
            fields.retain(|field| *field != text);
            fields.push(text);
            fields
        }
    }
}

/// The JSON value that a text spells, as a payload would hold it; none where it spells something else, or more.
fn spelled(value: &str) -> Vec<Field> {
    if serde_json::from_str::<&RawValue>(value).is_err() {
        return Vec::new();
    }
    let payload = format!("{{\"value\":{value}}}");
    let rule = KeyRule::new(["/value?null"]).expect("this is a pointer");
    let fields = rule.fields(&Delivered::payload(payload.as_bytes()));
    fields.unwrap_or_default()
}

/// One field of each part, in every way.
fn combinations(values: &[Vec<Field>]) -> Result<Vec<Vec<Field>>, Refused> {
    let lengths = values.iter().map(Vec::len);
    let count = lengths.fold(1, usize::saturating_mul);
    if count > KEYS_MAX {
        return Err(Refused::mistaken(
            "too many of these values may be text or a JSON value",
            "ask for the key itself (`semel key` computes it from a payload)",
        ));
    }
    let mut all = vec![Vec::new()];
    for choices in values {
        let longer = |fields: &Vec<Field>| {
            let fields = fields.clone();
            let with = move |choice: &Field| {
                let mut longer = fields.clone();
                longer.push(choice.clone());
                longer
            };
            choices.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

fn other_parts(route: &Route) -> Refused {
    let rule = |source: &Source| {
        let parts = route.terms(*source).key.parts().iter().map(part_name);
        format!("{source}: {}", parts.collect::<Vec<_>>().join(" "))
    };
    let rules: Vec<_> = route.sources.iter().map(rule).collect();
    Refused::mistaken(
        format!("the route {} names its work by other parts", route.name),
        format!("give just these, each as NAME=VALUE: {}", rules.join("; ")),
    )
}
