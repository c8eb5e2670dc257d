//! Reads a scenario critically: everything that cannot be meant is said before anything is started.

mod delivery;
mod template;

use crate::error::Error;
use crate::options::Options;
use crate::scenario::endpoint::{Endpoint, check_on};
use crate::scenario::{Before, Process, Scenario};
use crate::world::probe;
use crate::world::protocol::Protocol;
use std::collections::BTreeSet;

/// What is wrong, in sentences.
#[derive(Debug, Default)]
struct Mistakes(Vec<String>);

// === impl Mistakes ===

impl Mistakes {
    fn add(&mut self, says: impl Into<String>) {
        self.0.push(says.into());
    }

    fn add_if(&mut self, wrong: bool, says: impl Into<String>) {
        if wrong {
            self.add(says);
        }
    }
}

/// All mistakes of a scenario together; where its dependencies are.
pub(crate) fn check(scenario: &Scenario, options: &Options) -> Result<Vec<Endpoint>, Error> {
    let mut mistakes = Mistakes::default();
    processes(scenario, &mut mistakes);
    delivery::check(scenario, &mut mistakes);
    let endpoints = endpoints(scenario, options, &mut mistakes);
    for before in &scenario.before {
        if let Err(mistake) = one_before(before, &endpoints) {
            mistakes.add(format!("a [[before]]{mistake}"));
        }
    }
    effects(scenario, &endpoints, &mut mistakes);
    template::ports(scenario, &mut mistakes);
    let no_crash = options.crash_points_max == 0;
    mistakes.add_if(no_crash, "--crash-points must be at least 1");
    match mistakes.0.as_slice() {
        [] => Ok(endpoints),
        [only] => Err(Error::Scenario(only.clone())),
        several @ [..] => Err(Error::Scenario(format!("\n  {}", several.join("\n  ")))),
    }
}

fn endpoints(scenario: &Scenario, options: &Options, mistakes: &mut Mistakes) -> Vec<Endpoint> {
    let names = scenario.dependencies.iter().map(|it| &it.env);
    twice(names, "[[dependency]] is named by the variable", mistakes);
    let dependencies = scenario.dependencies.iter();
    dependencies
        .filter_map(|it| {
            Endpoint::new(it, options)
                .map_err(|why| mistakes.add(why))
                .ok()
        })
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
    mistakes.add_if(
        name.is_empty() || !name.chars().all(plain),
        format!("a [[process]] is called {name:?}: a name has letters, digits, `-` and `_` only"),
    );
    mistakes.add_if(
        !template::is_command(&process.spawn),
        format!("`spawn` of `{name}` is not a command"),
    );
    if let Some(ready) = process.ready.as_deref().filter(|ready| *ready != "none") {
        template::path(&format!("`ready` of `{name}`"), ready, mistakes);
    }
}

fn one_before(before: &Before, endpoints: &[Endpoint]) -> Result<(), String> {
    let protocol = match (&before.sql, &before.redis, &before.command) {
        (Some(_), None, None) => Some(Protocol::Postgres),
        (None, Some(_), None) => Some(Protocol::Redis),
        (None, None, Some(_)) => None,
        (_, _, _) => return Err(" needs exactly one of sql, redis, command".to_owned()),
    };
    let on = before.on.as_deref();
    check_on(on, protocol, endpoints).map_err(|why| format!(": {why}"))
}

fn effects(scenario: &Scenario, endpoints: &[Endpoint], mistakes: &mut Mistakes) {
    let effects = &scenario.effects;
    if effects.is_empty() {
        mistakes.add("no [[effect]] says how to see what the handler did");
    } else if effects.iter().all(|effect| effect.expected == 0) {
        mistakes.add(
            "every [[effect]] has `expected = 0`: a handler that does nothing would hold; name one that is to be seen",
        );
    }
    let names = effects.iter().map(|effect| &effect.name);
    twice(names, "[[effect]] is called", mistakes);
    for effect in effects {
        let versions = ["{entity}", "{version}"].map(|word| scenario.deliver.names(word));
        mistakes.add_if(
            effect.newest && versions != [true, true],
            format!(
                "effect `{}` shows the newest state: what is delivered must contain {{entity}} and {{version}}",
                effect.name
            ),
        );
        if let Err(mistake) = probe::check(effect, endpoints) {
            mistakes.add(format!("effect `{}`: {mistake}", effect.name));
        }
    }
}

/// Whatever has a name has it alone.
fn twice<'a>(names: impl Iterator<Item = &'a String>, says: &str, mistakes: &mut Mistakes) {
    let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        let again = !seen.insert(name) && told.insert(name);
        mistakes.add_if(again, format!("more than one {says} `{name}`"));
    }
}

#[cfg(test)]
mod tests;
