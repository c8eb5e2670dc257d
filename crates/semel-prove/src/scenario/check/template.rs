//! Texts of a scenario that hold variables: paths, and ports by name.

use super::Mistakes;
use crate::scenario::Scenario;
use crate::scenario::template::{Variables, ports_named};
use http::uri::PathAndQuery;

/// A path to send a request to, once its variables are expanded.
pub(super) fn path(whose: &str, path: &str, mistakes: &mut Mistakes) {
    let filled = ["id", "entity", "n"]
        .into_iter()
        .fold(Variables::default(), |variables, word| {
            variables.with(word, "1")
        })
        .expand(path);
    if !path.starts_with('/') {
        mistakes.push(format!("{whose}: `{path}` does not begin with `/`"));
    } else if filled.parse::<PathAndQuery>().is_err() {
        mistakes.push(format!("{whose}: `{path}` is no path"));
    }
}

/// Every `{port.NAME}` must name a process.
pub(super) fn ports(scenario: &Scenario, mistakes: &mut Mistakes) {
    let process = scenario.processes.iter().flat_map(|process| {
        std::iter::once(&process.spawn)
            .chain(process.env.values())
            .map(String::as_str)
    });
    let dependencies = scenario
        .dependencies
        .iter()
        .filter_map(|one| one.url.as_deref());
    let effects = scenario
        .effects
        .iter()
        .flat_map(|one| [one.http.as_deref(), one.command.as_deref()]);
    let before = scenario.before.iter().map(|one| one.command.as_deref());
    let texts = process
        .chain(dependencies)
        .chain(effects.flatten())
        .chain(before.flatten())
        .chain(scenario.deliver.command.as_deref());
    for name in texts.flat_map(ports_named) {
        if !scenario
            .processes
            .iter()
            .any(|process| process.name == name)
        {
            mistakes.push(format!("{{port.{name}}} names no process"));
        }
    }
}
