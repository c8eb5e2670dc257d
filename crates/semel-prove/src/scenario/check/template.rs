//! Texts of a scenario that hold variables: commands, paths, and ports by name.

use super::Mistakes;
use crate::scenario::Scenario;
use crate::scenario::template::{Variables, ports_named};
use http::uri::PathAndQuery;

/// Whether a shell would find words in it.
pub(super) fn is_command(line: &str) -> bool {
    shlex::split(line).is_some_and(|words| !words.is_empty())
}

/// A path to send a request to, once its variables are expanded.
pub(super) fn path(whose: &str, path: &str, mistakes: &mut Mistakes) {
    let variables = Variables::default();
    let words = ["id", "entity", "n", "version", "tenant", "message"];
    let variables = words
        .into_iter()
        .fold(variables, |all, word| all.with(word, 1));
    if !path.starts_with('/') {
        mistakes.add(format!("{whose}: `{path}` does not begin with `/`"));
    } else if variables.expand(path).parse::<PathAndQuery>().is_err() {
        mistakes.add(format!("{whose}: `{path}` is not a path"));
    }
}

/// Every `{port.NAME}` must name a process.
pub(super) fn ports(scenario: &Scenario, mistakes: &mut Mistakes) {
    let processes = scenario.processes.iter();
    let processes = processes.flat_map(|one| one.env.values().chain([&one.spawn]));
    let dependencies = scenario.dependencies.iter().map(|one| &one.url);
    let effects = scenario
        .effects
        .iter()
        .flat_map(|one| [&one.http, &one.command]);
    let before = scenario.before.iter().map(|one| &one.command);
    let optional = dependencies
        .chain(effects)
        .chain(before)
        .chain([&scenario.deliver.command]);
    let texts = processes.chain(optional.flatten());
    for name in texts.flat_map(|text| ports_named(text)) {
        let known = scenario
            .processes
            .iter()
            .any(|process| process.name == name);
        mistakes.add_if(!known, format!("{{port.{name}}} names no process"));
    }
}
