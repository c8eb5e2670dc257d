//! Where the dependencies are, and which of them is meant.

use super::{Mistakes, twice};
use crate::options::Options;
use crate::scenario::{Dependency, Scenario};
use crate::world::protocol::Protocol;

/// Where a dependency really is, before `{port.NAME}` is filled in.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) env: String,
    pub(crate) url: String,
    pub(crate) protocol: Protocol,
    /// Encrypted connections are not proxied: the process would notice.
    pub(crate) encrypted: bool,
}

/// Where all dependencies are.
pub(super) fn endpoints(
    scenario: &Scenario,
    options: &Options,
    mistakes: &mut Mistakes,
) -> Vec<Endpoint> {
    let names = scenario.dependencies.iter().map(|it| &it.env);
    twice(names, "[[dependency]] is named by the variable", mistakes);
    let mut endpoints = Vec::new();
    for dependency in &scenario.dependencies {
        match endpoint(dependency, options) {
            Ok(endpoint) => endpoints.push(endpoint),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    endpoints
}

fn endpoint(dependency: &Dependency, options: &Options) -> Result<Endpoint, String> {
    let env = dependency.env.clone();
    if env.is_empty() || env.contains(['=', '\0']) {
        return Err(format!("a [[dependency]]: {env:?} is no variable"));
    }
    let given = dependency.url.as_ref().or(options.environment.get(&env));
    let url = given
        .filter(|url| !url.is_empty())
        .ok_or_else(|| {
            format!("dependency `{env}` has no `url`, and the environment does not name it")
        })?
        .clone();
    let scheme = url.split("://").next().unwrap_or_default().to_owned();
    let strict = url.contains("sslmode=require") || url.contains("sslmode=verify");
    let (protocol, encrypted) = match scheme.as_str() {
        "postgres" | "postgresql" => (Protocol::Postgres, strict),
        "redis" => (Protocol::Redis, false),
        "rediss" => (Protocol::Redis, true),
        "http" => (Protocol::Http, false),
        "https" => (Protocol::Http, true),
        _ => (Protocol::Other, false),
    };
    if !url.contains("://") {
        return Err(format!("dependency `{env}`: `{url}` is no URL"));
    }
    Ok(Endpoint {
        env,
        url,
        protocol,
        encrypted,
    })
}

/// Which dependency is meant: the named one, or the only one of its kind. None: a SQLite file.
pub(crate) fn find(
    on: Option<&str>,
    protocol: Protocol,
    endpoints: &[Endpoint],
) -> Result<Option<usize>, String> {
    let Some(on) = on else {
        let mut fitting = (0..endpoints.len())
            .filter(|at| endpoints.get(*at).is_some_and(|p| p.protocol == protocol));
        return match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(Some(only)),
            (None, _) => Err(format!("no [[dependency]] speaks {protocol:?}")),
            (Some(_), Some(_)) => Err(format!("several dependencies speak {protocol:?}: say `on`")),
        };
    };
    if protocol == Protocol::Postgres && on.starts_with("sqlite:") {
        return Ok(None);
    }
    let at = endpoints.iter().position(|endpoint| endpoint.env == on);
    let at = at.ok_or_else(|| format!("`{on}` is no [[dependency]]"))?;
    let fits = endpoints
        .get(at)
        .is_some_and(|endpoint| endpoint.protocol == protocol);
    if fits {
        Ok(Some(at))
    } else {
        Err(format!("`{on}` does not speak {protocol:?}"))
    }
}
