//! Reads a scenario critically: everything that cannot be meant is said before anything is started.

mod delivery;
mod template;

use crate::error::Error;
use crate::options::Options;
use crate::scenario::endpoint::{Endpoint, find};
use crate::scenario::{Before, Effect, Process, Scenario};
use crate::world::protocol::Protocol;
use std::collections::BTreeSet;

/// What is wrong, in sentences.
type Mistakes = Vec<String>;

/// All mistakes of a scenario together; where its dependencies are.
pub(crate) fn check(scenario: &Scenario, options: &Options) -> Result<Vec<Endpoint>, Error> {
    let mut mistakes = Mistakes::new();
    processes(scenario, &mut mistakes);
    delivery::check(scenario, &mut mistakes);
    let endpoints = endpoints(scenario, options, &mut mistakes);
    for before in &scenario.before {
        one_before(before, &endpoints, &mut mistakes);
    }
    effects(scenario, &endpoints, &mut mistakes);
    template::ports(scenario, &mut mistakes);
    if options.crash_points_max == 0 {
        mistakes.push("--crash-points must be at least 1".to_owned());
    }
    match mistakes.as_slice() {
        [] => Ok(endpoints),
        [only] => Err(Error::Scenario(only.clone())),
        [..] => Err(Error::Scenario(format!("\n  {}", mistakes.join("\n  ")))),
    }
}

fn endpoints(scenario: &Scenario, options: &Options, mistakes: &mut Mistakes) -> Vec<Endpoint> {
    let names = scenario.dependencies.iter().map(|it| &it.env);
    twice(names, "[[dependency]] is named by the variable", mistakes);
    let endpoints = Endpoint::all(scenario, options).into_iter();
    endpoints
        .filter_map(|endpoint| endpoint.map_err(|mistake| mistakes.push(mistake)).ok())
        .collect()
}

fn processes(scenario: &Scenario, mistakes: &mut Mistakes) {
    let names = scenario.processes.iter().map(|process| &process.name);
    twice(names, "[[process]] is called", mistakes);
    for process in &scenario.processes {
        one_process(process, mistakes);
    }
}

/// Its name is part of a path, so it may not lead anywhere else.
fn one_process(process: &Process, mistakes: &mut Mistakes) {
    let name = &process.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        mistakes.push(format!(
            "a [[process]] is called {name:?}: a name has letters, digits, `-` and `_` only"
        ));
    }
    if shlex::split(&process.spawn).is_none_or(|words| words.is_empty()) {
        mistakes.push(format!("`spawn` of `{name}` is not a command"));
    }
    if let Some(ready) = process.ready.as_deref().filter(|ready| *ready != "none") {
        template::path(&format!("`ready` of `{name}`"), ready, mistakes);
    }
}

fn one_before(before: &Before, endpoints: &[Endpoint], mistakes: &mut Mistakes) {
    let given = [&before.sql, &before.redis, &before.command];
    if given.iter().filter(|given| given.is_some()).count() != 1 {
        mistakes.push("a [[before]] needs exactly one of sql, redis, command".to_owned());
    }
    let protocol = match (&before.sql, &before.redis) {
        (Some(_), _) => Protocol::Postgres,
        (None, Some(_)) => Protocol::Redis,
        (None, None) if before.on.is_some() => {
            mistakes.push("a [[before]]: `on` is only for sql and redis".to_owned());
            return;
        }
        (None, None) => return,
    };
    if let Err(mistake) = find(before.on.as_deref(), protocol, endpoints) {
        mistakes.push(format!("a [[before]]: {mistake}"));
    }
}

fn effects(scenario: &Scenario, endpoints: &[Endpoint], mistakes: &mut Mistakes) {
    let effects = &scenario.effects;
    if effects.is_empty() {
        mistakes.push("no [[effect]] says how to see what the handler did".to_owned());
    } else if effects.iter().all(|effect| effect.expected == 0) {
        mistakes.push(
            "every [[effect]] has `expected = 0`: a handler that does nothing would hold; name one that is to be seen"
                .to_owned(),
        );
    }
    let names = effects.iter().map(|effect| &effect.name);
    twice(names, "[[effect]] is called", mistakes);
    for effect in effects {
        if let Err(mistake) = one_effect(effect, endpoints) {
            mistakes.push(format!("effect `{}`: {mistake}", effect.name));
        }
    }
}

fn one_effect(effect: &Effect, endpoints: &[Endpoint]) -> Result<(), String> {
    let given = [
        &effect.sql,
        &effect.http,
        &effect.command,
        &effect.redis,
        &effect.calls,
    ];
    if given.iter().filter(|given| given.is_some()).count() != 1 {
        return Err("it needs exactly one of sql, http, command, redis, calls".to_owned());
    }
    let on = effect.on.as_deref();
    if effect.sql.is_some() {
        return find(on, Protocol::Postgres, endpoints).map(drop);
    }
    if effect.redis.is_some() {
        return find(on, Protocol::Redis, endpoints).map(drop);
    }
    if on.is_some() {
        return Err("`on` is only for sql and redis".to_owned());
    }
    match (&effect.http, &effect.calls) {
        (Some(url), _) if !url.starts_with("http://") => {
            Err(format!("`{url}` is no http:// address"))
        }
        (None, Some(calls)) => counted(calls, endpoints),
        (Some(_) | None, _) => Ok(()),
    }
}

/// A dependency whose requests can be told apart.
fn counted(calls: &str, endpoints: &[Endpoint]) -> Result<(), String> {
    let found = find(Some(calls), Protocol::Http, endpoints)?;
    if found.is_some_and(|(_, endpoint)| endpoint.encrypted) {
        return Err(format!(
            "`{calls}` is encrypted: its calls cannot be counted; give the handler an http:// address"
        ));
    }
    Ok(())
}

/// Whatever has a name has it alone.
fn twice<'a>(names: impl Iterator<Item = &'a String>, says: &str, mistakes: &mut Mistakes) {
    let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        if !seen.insert(name) && told.insert(name) {
            mistakes.push(format!("more than one {says} `{name}`"));
        }
    }
}

#[cfg(test)]
mod tests;
