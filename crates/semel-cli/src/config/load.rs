//! Loading: a file, flags and the environment become one configuration.

use super::mistakes::{Location, Mistakes};
use super::tree::{self, Member, Node, Value};
use super::{Config, Platform, gate, secrets};
use crate::args::GateArgs;
use crate::deployment::Deployment;
use semel::protocol::Owner;
use std::path::{Path, PathBuf};

/// The file that is read when none is named.
pub(crate) const FILE_DEFAULT: &str = "semel.toml";

/// Cloud Run's default for `PORT`.
const CLOUD_RUN_PORT: &str = "8080";

/// What the environment says, beside the variables that stand for flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// Cloud Run's word for where to listen.
    pub(crate) port: Option<String>,
    pub(crate) admin_token: Option<String>,
    pub(crate) admin_view_token: Option<String>,
    pub(crate) platform: Option<Platform>,
    /// What this host, container or revision is called.
    pub(crate) host: Option<String>,
}

/// What a gate is called of which nothing else is known.
const NAME_DEFAULT: &str = "gate";

/// Reads the configuration of a gate.
///
/// # Errors
/// All mistakes together.
pub(crate) fn load(args: &GateArgs) -> Result<Config, Mistakes> {
    load_in(args, &Environment::of_process())
}

/// Reads it as if this process were deployed so.
///
/// # Errors
/// All mistakes together.
pub(crate) fn load_on(args: &GateArgs, deployment: &Deployment) -> Result<Config, Mistakes> {
    let process = Environment::of_process();
    let token = deployment.gives_admin_token.then(|| "a secret".into());
    let port = match deployment.platform {
        Platform::CloudRun => Some(CLOUD_RUN_PORT.into()),
        Platform::Kubernetes => None,
    };
    let environment = Environment {
        port: process.port.or(port),
        admin_token: process.admin_token.or(token),
        admin_view_token: process.admin_view_token,
        platform: Some(deployment.platform),
        host: process.host,
    };
    load_in(args, &environment)
}

pub(crate) fn load_in(args: &GateArgs, environment: &Environment) -> Result<Config, Mistakes> {
    let file = file(args);
    let shown = file.as_ref().map(|path| path.display().to_string());
    let mut mistakes = Mistakes::none(shown);
    let members = match &file {
        Some(path) => from_file(path, args, &mut mistakes),
        None => from_flags(args, &mut mistakes),
    };
    let config = members.and_then(|mut members| {
        overlay(&mut members, args, environment);
        gate::read(&members, environment.platform, &mut mistakes)
    });
    let config = config.map(|config| named(config, environment.host.as_deref()));
    mistakes.unless_any(config)
}

/// Gives a gate a name that nobody gave one.
fn named(mut config: Config, host: Option<&str>) -> Config {
    let settings = &mut config.settings;
    if settings.name.is_empty() {
        let port = format!(":{}", settings.listen.port());
        let host = host.unwrap_or(NAME_DEFAULT);
        let room = gate::NAME_BYTES_MAX - port.len();
        let host = host.get(..host.floor_char_boundary(room));
        settings.name = format!("{}{port}", host.unwrap_or(NAME_DEFAULT));
    }
    config
}

/// Reads a configuration that is not a file.
///
/// # Errors
/// All mistakes together.
pub(crate) fn from_text(text: &str) -> Result<Config, Mistakes> {
    let (config, mistakes) = read_text(text);
    mistakes.unless_any(config)
}

/// The same of a file that was just written: what its secrets are need be known only where the gate runs.
pub(crate) fn from_new_text(text: &str) -> Result<Config, Mistakes> {
    let (config, mut mistakes) = read_text(text);
    mistakes.forgive(secrets::is_elsewhere);
    mistakes.unless_any(config)
}

fn read_text(text: &str) -> (Option<Config>, Mistakes) {
    let mut mistakes = Mistakes::none(None);
    let members = parse(text, &mut mistakes);
    let config = members.and_then(|members| gate::read(&members, None, &mut mistakes));
    let config = config.map(|config| named(config, None));
    (config, mistakes)
}

pub(super) fn parse(text: &str, mistakes: &mut Mistakes) -> Option<Vec<Member>> {
    match tree::parse(text) {
        Ok(members) => Some(members),
        Err(errors) => {
            for (location, says) in errors {
                mistakes.add(location, None, says);
            }
            None
        }
    }
}

/// The named file, or the default one where there is one.
fn file(args: &GateArgs) -> Option<PathBuf> {
    let default = || Some(PathBuf::from(FILE_DEFAULT)).filter(|path| path.exists());
    args.config.clone().or_else(default)
}

fn from_file(path: &Path, args: &GateArgs, mistakes: &mut Mistakes) -> Option<Vec<Member>> {
    for (_, value) in args.route() {
        let says = format!(
            "{} describes the routes: put this there, or start without the file",
            path.display()
        );
        mistakes.add(value.location, None, says);
    }
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let says = format!("cannot be read: {error}; `semel init` writes one");
            mistakes.add(Location::Whole, None, says);
            return None;
        }
    };
    parse(&text, mistakes)
}

/// One route, as the flags say.
fn from_flags(args: &GateArgs, mistakes: &mut Mistakes) -> Option<Vec<Member>> {
    if args.upstream.is_none() {
        mistakes.add(
            Location::Whole,
            None,
            format!("there is no {FILE_DEFAULT} and no --upstream: `semel init` writes a file, or give --upstream URL --path PATH"),
        );
        return None;
    }
    let mut route: Vec<_> = args
        .route()
        .map(|(name, value)| Member::new(name, value))
        .collect();
    for (name, default) in [("name", "default"), ("path", "/*")] {
        if !route.iter().any(|member| member.name == name) {
            route.push(Member::new(name, Value::given("the flags", default)));
        }
    }
    let table = |node| Value {
        location: Location::Given("the flags"),
        node,
    };
    let routes = table(Node::List(vec![table(Node::Table(route))]));
    Some(vec![Member::new("route", routes)])
}

/// Flags and variables come before the file; `PORT` only before the default.
fn overlay(members: &mut Vec<Member>, args: &GateArgs, environment: &Environment) {
    let tokens = [
        ("admin_token", "SEMEL_ADMIN_TOKEN", &environment.admin_token),
        (
            "admin_view_token",
            "SEMEL_ADMIN_VIEW_TOKEN",
            &environment.admin_view_token,
        ),
    ];
    let tokens = tokens
        .into_iter()
        .filter_map(|(name, variable, text)| Some((name, Value::given(variable, text.as_ref()?))));
    for (name, value) in args.top().chain(tokens) {
        members.retain(|member| member.name != name);
        members.push(Member::new(name, value));
    }
    let listens = members.iter().any(|member| member.name == "listen");
    if let (false, Some(port)) = (listens, &environment.port) {
        let everywhere = Value::given("PORT", format!("0.0.0.0:{port}"));
        members.push(Member::new("listen", everywhere));
    }
}

// === impl Environment ===

impl Environment {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the environment is read"
    )]
    fn of_process() -> Self {
        let variable = |name| std::env::var(name).ok();
        let cloud_run = variable("K_SERVICE").map(|_| Platform::CloudRun);
        let kubernetes = || variable("KUBERNETES_SERVICE_HOST").map(|_| Platform::Kubernetes);
        Self {
            port: variable("PORT"),
            admin_token: variable("SEMEL_ADMIN_TOKEN"),
            admin_view_token: variable("SEMEL_ADMIN_VIEW_TOKEN"),
            platform: cloud_run.or_else(kubernetes),
            host: host(&variable),
        }
    }
}

/// What tells this process from others, for people. All instances of a Cloud Run service think that they are `localhost`,
/// so a few random digits tell them apart.
fn host(variable: &dyn Fn(&'static str) -> Option<String>) -> Option<String> {
    if let Some(revision) = variable("K_REVISION") {
        let random = Owner::random().to_string();
        return Some(format!("{revision}-{}", random.get(..4)?));
    }
    let of_system = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = variable("HOSTNAME").or_else(of_system)?;
    let host = host.trim();
    (!host.is_empty()).then(|| host.to_owned())
}

// === impl GateArgs ===

impl GateArgs {
    /// The flags that describe a route.
    fn route(&self) -> impl Iterator<Item = (&'static str, Value)> {
        [
            ("name", "--name (SEMEL_NAME)", &self.name),
            ("path", "--path (SEMEL_PATH)", &self.path),
            ("source", "--source (SEMEL_SOURCE)", &self.source),
            ("key", "--key (SEMEL_KEY)", &self.key),
            ("caller", "--caller (SEMEL_CALLER)", &self.caller),
        ]
        .into_iter()
        .filter_map(|(name, flag, text)| Some((name, Value::given(flag, text.as_deref()?))))
    }

    /// The flags that stand before the file's top level.
    fn top(&self) -> impl Iterator<Item = (&'static str, Value)> {
        // One variable says where the gate listens and where it is asked, so it may be written as either.
        let plain = |admin: &str| {
            let address = admin.strip_prefix("http://").unwrap_or(admin);
            address.trim_end_matches('/').to_owned()
        };
        let admin = self.admin.as_deref().map(plain);
        let single = self.single_instance.then_some(Value {
            location: Location::Given("--single-instance (SEMEL_SINGLE_INSTANCE)"),
            node: Node::Switch(true),
        });
        [
            ("listen", "--listen (SEMEL_LISTEN)", self.listen.clone()),
            ("admin", "--admin (SEMEL_ADMIN)", admin),
            ("store", "--store (SEMEL_STORE)", self.store.clone()),
            (
                "upstream",
                "--upstream (SEMEL_UPSTREAM)",
                self.upstream.clone(),
            ),
        ]
        .into_iter()
        .filter_map(|(name, flag, text)| Some((name, Value::given(flag, text?))))
        .chain(single.map(|value| ("single_instance", value)))
    }
}
