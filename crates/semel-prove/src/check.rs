//! Reads a scenario critically: everything that cannot be meant is said before anything is started.

use crate::cannot::CannotJudge;
use crate::options::Options;
use crate::says::Language;
use crate::scenario::{Before, Dependency, Effect, Scenario, Sender};
use crate::words::ports_named;
use std::collections::BTreeSet;
use url::Url;

/// Where a dependency really is, before `{port.NAME}` is filled in.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) env: String,
    pub(crate) url: String,
    pub(crate) language: Language,
    /// Encrypted connections are not tapped: the process would notice.
    pub(crate) encrypted: bool,
}

/// All mistakes of a scenario together; where its dependencies are.
pub(crate) fn check(scenario: &Scenario, options: &Options) -> Result<Vec<Place>, CannotJudge> {
    let mut mistakes = Vec::new();
    names(scenario, &mut mistakes);
    delivery(scenario, &mut mistakes);
    let places = places(scenario, options, &mut mistakes);
    for before in &scenario.before {
        one_before(before, &places, &mut mistakes);
    }
    if scenario.effects.is_empty() {
        mistakes.push("no [[effect]] says how to see what the handler did".to_owned());
    }
    for effect in &scenario.effects {
        one_effect(effect, &places, &mut mistakes);
    }
    ports(scenario, &mut mistakes);
    if mistakes.is_empty() {
        return Ok(places);
    }
    Err(CannotJudge::Scenario(mistakes.join("; ")))
}

fn names(scenario: &Scenario, mistakes: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for process in &scenario.processes {
        if !seen.insert(&process.name) {
            mistakes.push(format!("two processes are called `{}`", process.name));
        }
        if shlex::split(&process.spawn).is_none_or(|words| words.is_empty()) {
            mistakes.push(format!("`spawn` of `{}` is not a command", process.name));
        }
    }
    if let Some(to) = &scenario.deliver.to
        && !scenario.processes.iter().any(|process| process.name == *to)
    {
        mistakes.push(format!("deliver.to names `{to}`, which is no process"));
    }
}

fn delivery(scenario: &Scenario, mistakes: &mut Vec<String>) {
    let deliver = &scenario.deliver;
    let nobody = scenario.processes.is_empty() && deliver.target.is_none();
    if nobody && deliver.sender != Sender::Command {
        mistakes.push("neither a [[process]] nor deliver.target says who receives".to_owned());
    }
    if deliver.target.is_some() && deliver.to.is_some() {
        mistakes.push("deliver.to and deliver.target exclude each other".to_owned());
    }
    if let Some(target) = &deliver.target
        && !Url::parse(target).is_ok_and(|url| url.scheme() == "http" && url.host().is_some())
    {
        mistakes.push(format!("deliver.target `{target}` is no http:// address"));
    }
    if deliver.sender == Sender::Command && deliver.command.is_none() {
        mistakes.push("deliver.command is missing: it delivers when `as = \"command\"`".to_owned());
    }
    if deliver.sender != Sender::Command && deliver.command.is_some() {
        mistakes.push("deliver.command is only for `as = \"command\"`".to_owned());
    }
    if deliver.attempts == 0 || deliver.deadline_ms == 0 {
        mistakes.push("deliver.attempts and deliver.deadline_ms must be at least 1".to_owned());
    }
}

fn places(scenario: &Scenario, options: &Options, mistakes: &mut Vec<String>) -> Vec<Place> {
    let mut places = Vec::new();
    for dependency in &scenario.dependencies {
        match place(dependency, options) {
            Ok(place) => places.push(place),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    places
}

fn place(dependency: &Dependency, options: &Options) -> Result<Place, String> {
    let env = dependency.env.clone();
    let given = dependency.url.as_ref().or(options.environment.get(&env));
    let url = given
        .filter(|url| !url.is_empty())
        .ok_or_else(|| {
            format!("dependency `{env}` has no `url`, and the environment does not name it")
        })?
        .clone();
    let scheme = url.split("://").next().unwrap_or_default().to_owned();
    let strict = url.contains("sslmode=require") || url.contains("sslmode=verify");
    let (language, encrypted) = match scheme.as_str() {
        "postgres" | "postgresql" => (Language::Postgres, strict),
        "redis" => (Language::Redis, false),
        "rediss" => (Language::Redis, true),
        "http" => (Language::Http, false),
        "https" => (Language::Http, true),
        _ => (Language::Other, false),
    };
    if !url.contains("://") {
        return Err(format!("dependency `{env}`: `{url}` is no URL"));
    }
    Ok(Place {
        env,
        url,
        language,
        encrypted,
    })
}

fn one_before(before: &Before, places: &[Place], mistakes: &mut Vec<String>) {
    let given = [&before.sql, &before.redis, &before.command];
    if given.iter().filter(|given| given.is_some()).count() != 1 {
        mistakes.push("a [[before]] needs exactly one of sql, redis, command".to_owned());
    }
    let language = match (&before.sql, &before.redis) {
        (Some(_), _) => Language::Postgres,
        (None, Some(_)) => Language::Redis,
        (None, None) => return,
    };
    if let Err(mistake) = find(before.on.as_deref(), language, places) {
        mistakes.push(format!("a [[before]]: {mistake}"));
    }
}

fn one_effect(effect: &Effect, places: &[Place], mistakes: &mut Vec<String>) {
    let name = &effect.name;
    let given = [
        &effect.sql,
        &effect.http,
        &effect.command,
        &effect.redis,
        &effect.calls,
    ];
    if given.iter().filter(|given| given.is_some()).count() != 1 {
        mistakes.push(format!(
            "effect `{name}` needs exactly one of sql, http, command, redis, calls"
        ));
    }
    let found = if effect.sql.is_some() {
        find(effect.on.as_deref(), Language::Postgres, places)
    } else if effect.redis.is_some() {
        find(effect.on.as_deref(), Language::Redis, places)
    } else if let Some(calls) = &effect.calls {
        find(Some(calls), Language::Http, places)
    } else {
        return;
    };
    if let Err(mistake) = found {
        mistakes.push(format!("effect `{name}`: {mistake}"));
    }
}

/// Which dependency is meant: the named one, or the only one of its kind. None: a SQLite file.
pub(crate) fn find(
    on: Option<&str>,
    language: Language,
    places: &[Place],
) -> Result<Option<usize>, String> {
    let Some(on) = on else {
        let mut fitting =
            (0..places.len()).filter(|at| places.get(*at).is_some_and(|p| p.language == language));
        return match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(Some(only)),
            (None, _) => Err(format!("no [[dependency]] speaks {language:?}")),
            (Some(_), Some(_)) => Err(format!("several dependencies speak {language:?}: say `on`")),
        };
    };
    if language == Language::Postgres && on.starts_with("sqlite:") {
        return Ok(None);
    }
    let at = places.iter().position(|place| place.env == on);
    let at = at.ok_or_else(|| format!("`{on}` is no [[dependency]]"))?;
    let fits = places
        .get(at)
        .is_some_and(|place| place.language == language);
    if fits {
        Ok(Some(at))
    } else {
        Err(format!("`{on}` does not speak {language:?}"))
    }
}

fn ports(scenario: &Scenario, mistakes: &mut Vec<String>) {
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
        .chain(before.flatten());
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
