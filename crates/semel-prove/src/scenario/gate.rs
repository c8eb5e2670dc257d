//! A gate before the handler: the program `semel` with the user's own configuration, as one more process of the scenario.
//!
//! The configuration is copied: the copy has short leases, so that a trial does not wait half a minute for a run that was
//! killed, and leads to the handler and the store through proxies, so that what passes is seen.

use super::{Dependency, Gate, Process, Scenario};
use crate::error::Error;
use crate::options::Options;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::{Table, Value};

/// What others call the gate, and its column in the timeline.
const NAME: &str = "gate";
/// Where the gate finds the handler and its store. Both are dependencies of the scenario, so they lead through proxies.
pub(crate) const UPSTREAM: &str = "SEMEL_UPSTREAM";
pub(crate) const STORE: &str = "SEMEL_STORE";
/// What the gate does not set itself.
const LEASE_DEFAULT: &str = "30s";

// === impl Scenario ===

impl Scenario {
    /// The scenario as it is run: `[gate]` has become a process.
    pub(crate) fn with_gate(&self, options: &Options) -> Result<Self, Error> {
        let mut scenario = self.clone();
        if let Some(gate) = &self.gate {
            let wrong = |why: String| Error::Scenario(format!("[gate]: {why}"));
            scenario.add_gate(gate, options).map_err(wrong)?;
        }
        Ok(scenario)
    }

    fn add_gate(&mut self, gate: &Gate, options: &Options) -> Result<(), String> {
        if self.deliver.target.is_some() {
            return Err(
                "the handler runs elsewhere (deliver.target): a gate is put before a [[process]]"
                    .to_owned(),
            );
        }
        if self.processes.iter().any(|it| it.name == NAME) {
            return Err(format!(
                "a [[process]] is called `{NAME}`, too: leave one of them out"
            ));
        }
        let last = self.processes.last().map(|it| &it.name);
        let handler = self.deliver.to.as_ref().or(last);
        let handler = handler.ok_or("no [[process]] is there for it to lead to")?;
        let path = options.directory.join(&gate.config);
        let text = std::fs::read_to_string(&path)
            .map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
        let config: Table =
            toml::from_str(&text).map_err(|why| format!("in {}: {why}", path.display()))?;
        let mut env = BTreeMap::new();
        match store(gate, &config, self, options)? {
            Some(url) => self.dependencies.push(dependency(STORE, url)),
            None => {
                env.insert(STORE.to_owned(), "dir:{dir}/store".to_owned());
            }
        }
        let upstream = format!("http://127.0.0.1:{{port.{handler}}}");
        self.dependencies.push(dependency(UPSTREAM, upstream));
        let program = options.semel.display().to_string();
        let program = shlex::try_quote(&program).map_err(|why| why.to_string())?;
        self.processes.push(Process {
            name: NAME.to_owned(),
            spawn: format!(
                "{program} gate --config {{dir.{NAME}}}/semel.toml --listen 127.0.0.1:{{port}} --admin 127.0.0.1:0 --single-instance"
            ),
            ready: None,
            env,
            attack: gate.attack,
        });
        let copy = copy(config, Duration::from_millis(gate.lease_ms));
        self.files
            .push((format!("{{dir.{NAME}}}/semel.toml"), copy));
        self.deliver.to = Some(NAME.to_owned());
        Ok(())
    }
}

fn dependency(env: &str, url: String) -> Dependency {
    Dependency {
        env: env.to_owned(),
        url: Some(url),
    }
}

/// Where the gate keeps its records: a server of the scenario, or, where the configuration names a directory, one of its
/// own.
fn store(
    gate: &Gate,
    config: &Table,
    scenario: &Scenario,
    options: &Options,
) -> Result<Option<String>, String> {
    let url = |dependency: &Dependency| {
        let url = dependency.url.clone();
        url.or_else(|| options.environment.get(&dependency.env).cloned())
    };
    if let Some(env) = &gate.store {
        let named = scenario.dependencies.iter().find(|it| it.env == *env);
        let url = named.and_then(url);
        return url
            .map(Some)
            .ok_or_else(|| format!("store: `{env}` is not a [[dependency]] with an address"));
    }
    let configured = config
        .get("store")
        .and_then(Value::as_str)
        .unwrap_or("dir:");
    let scheme = configured.split(':').next().unwrap_or_default();
    if scheme == "dir" {
        return Ok(None);
    }
    let urls: Vec<String> = scenario.dependencies.iter().filter_map(url).collect();
    let mut fitting = urls.iter().filter(|url| same_kind(url, scheme));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(Some(only.clone())),
        (_, _) => Err(format!(
            "the store of {} is a server ({scheme}): `store` says which [[dependency]] stands for it",
            gate.config
        )),
    }
}

fn same_kind(url: &str, scheme: &str) -> bool {
    let kind = |scheme: &str| match scheme {
        "postgres" | "postgresql" => "postgres".to_owned(),
        other => other.trim_end_matches('s').to_owned(),
    };
    kind(url.split(':').next().unwrap_or_default()) == kind(scheme)
}

/// The configuration with short leases; where it leads to is said by variables.
fn copy(mut config: Table, lease: Duration) -> String {
    for name in [
        "listen",
        "admin",
        "steps",
        "store",
        "upstream",
        "tls_certificate",
        "tls_key",
    ] {
        config.remove(name);
    }
    let routes = config.get_mut("route").and_then(Value::as_array_mut);
    let routes = routes.into_iter().flatten().filter_map(Value::as_table_mut);
    for route in routes {
        route.remove("upstream");
        if route.get("record").and_then(Value::as_str) == Some("none") {
            continue; // it has no leases
        }
        let given = route.get("lease").and_then(Value::as_str);
        let longer = millis(given.unwrap_or(LEASE_DEFAULT)).is_none_or(|it| it > lease.as_millis());
        if longer && !lease.is_zero() {
            let short = format!("{}ms", lease.as_millis());
            route.insert("lease".to_owned(), Value::String(short));
        }
    }
    config.to_string()
}

/// A duration as the gate reads it.
fn millis(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(number.parse::<u128>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        promise = "exactly once"
        [[process]]
        name = "handler"
        spawn = "true"
        [[dependency]]
        env = "DATABASE_URL"
        [gate]
        [deliver]
        as = "http"
        [[effect]]
        name = "rows"
        sql = "SELECT 1"
    "#;

    fn expanded(config: &str, scenario: &str) -> Result<Scenario, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("semel.toml"), config).unwrap();
        let mut options = Options::sample("DATABASE_URL", "postgres://127.0.0.1/shop");
        options.directory = dir.path().to_owned();
        let scenario: Scenario = toml::from_str(scenario).unwrap();
        scenario.with_gate(&options).map_err(|why| why.to_string())
    }

    #[test]
    fn gate_stands_before_the_handler_with_short_leases() {
        let config = "listen = '0.0.0.0:80'\nstore = 'postgresql://db/x'\n[[route]]\nname = 'a'\nupstream = 'http://h'\n\
            [[route]]\nname = 'b'\nlease = '200ms'\n[[route]]\nname = 'c'\nrecord = 'none'\n";
        let scenario = expanded(config, SCENARIO).unwrap();
        assert_eq!(scenario.deliver.to.as_deref(), Some("gate"));
        let urls: Vec<_> = scenario
            .dependencies
            .iter()
            .map(|it| (&*it.env, it.url.as_deref()))
            .collect();
        assert_eq!(urls[1], ("SEMEL_STORE", Some("postgres://127.0.0.1/shop")));
        assert_eq!(
            urls[2],
            ("SEMEL_UPSTREAM", Some("http://127.0.0.1:{port.handler}"))
        );
        let copy: Table = toml::from_str(&scenario.files[0].1).unwrap();
        assert!(!copy.contains_key("listen") && !copy.contains_key("store"));
        assert_eq!(copy["route"][0]["lease"].as_str(), Some("500ms"));
        assert!(copy["route"][0].get("upstream").is_none());
        assert_eq!(copy["route"][1]["lease"].as_str(), Some("200ms"));
        assert!(copy["route"][2].get("lease").is_none());
    }

    #[test]
    fn directory_of_the_store_is_one_of_its_own() {
        let scenario = expanded("store = 'dir:./semel-data'", SCENARIO).unwrap();
        let gate = scenario.processes.last().unwrap();
        assert_eq!(gate.env["SEMEL_STORE"], "dir:{dir}/store");
    }

    #[test]
    fn mistakes_of_the_gate_are_named() {
        let said = |config, from: &str, to: &str| {
            expanded(config, &SCENARIO.replace(from, to)).unwrap_err()
        };
        let none = said("", "[gate]", "[gate]\nconfig = 'none.toml'");
        assert!(none.contains("none.toml cannot be read"), "{none}");
        let server = said("store = 'redis://h'", "", "");
        assert!(server.contains("`store` says which"), "{server}");
        let named = said("", "[gate]", "[gate]\nstore = 'CACHE_URL'");
        assert!(
            named.contains("`CACHE_URL` is not a [[dependency]]"),
            "{named}"
        );
        let two = said("", "name = \"handler\"", "name = \"gate\"");
        assert!(two.contains("is called `gate`"), "{two}");
    }
}
