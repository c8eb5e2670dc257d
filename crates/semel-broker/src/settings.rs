//! What a broker is told.

use crate::{Declared, Fault};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use url::Url;

/// The default port.
const PORT_DEFAULT: u16 = 8085;

/// How many dispatches are remembered by default.
const HISTORY_MAX_DEFAULT: usize = 100_000;

/// What containers call the machine they run on: no page can be served under these names.
pub(crate) const HOSTS_OF_CONTAINERS: [&str; 2] =
    ["host.docker.internal", "host.containers.internal"];

/// All that a broker needs to start.
#[derive(Clone)]
pub struct Settings {
    /// Where everything is served.
    pub listen: SocketAddr,
    /// Whether others than this machine may ask. It calls any address it is told to: then it does so for them.
    pub allow_remote: bool,
    /// What the admin API asks for, if anything.
    pub admin_token: Option<String>,
    /// What those show who may look at the page and not act. It needs an admin token, and is another text.
    pub admin_view_token: Option<String>,
    /// Names under which browsers may reach the page besides those of this machine, at a proxy for instance.
    pub hosts: Vec<String>,
    /// Where what was accepted is kept.
    pub keep: Keep,
    /// What the choice of faults begins with.
    pub seed: u64,
    /// What goes wrong, and how often.
    pub faults: Vec<Fault>,
    /// How many dispatches are remembered.
    pub history_max: usize,
    /// What is there from the start.
    pub declared: Declared,
    /// Where tasks without a URL go, as Firebase's functions expect: this, then the queue's project, location and name.
    pub functions_url: Option<Url>,
    /// Where tasks for App Engine go that are routed to no host on this machine: this, then the task's relative URI.
    pub app_engine_url: Option<Url>,
}

/// Where what was accepted is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// In a directory: it is still there after a restart, or a crash.
    Directory(PathBuf),
    /// In memory, until the process ends.
    Memory,
}

// === impl Settings ===

impl Settings {
    /// Those that were given, and what containers call the machine they run on.
    pub(crate) fn hosts_of_page(&self) -> Vec<String> {
        let of_containers = HOSTS_OF_CONTAINERS.into_iter().map(Into::into);
        self.hosts.iter().cloned().chain(of_containers).collect()
    }
}

impl Default for Settings {
    /// On the default port of this machine, in memory, well-behaved.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT_DEFAULT)),
            allow_remote: false,
            admin_token: None,
            admin_view_token: None,
            hosts: Vec::new(),
            keep: Keep::Memory,
            seed: 0,
            faults: Vec::new(),
            history_max: HISTORY_MAX_DEFAULT,
            declared: Declared::default(),
            functions_url: None,
            app_engine_url: None,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let admin_token = self.admin_token.as_ref().map(|_| "hidden");
        let admin_view_token = self.admin_view_token.as_ref().map(|_| "hidden");
        f.debug_struct("Settings")
            .field("listen", &self.listen)
            .field("allow_remote", &self.allow_remote)
            .field("admin_token", &admin_token)
            .field("admin_view_token", &admin_view_token)
            .field("hosts", &self.hosts)
            .field("keep", &self.keep)
            .field("seed", &self.seed)
            .field("faults", &self.faults)
            .field("history_max", &self.history_max)
            .field("declared", &self.declared)
            .field("functions_url", &self.functions_url)
            .field("app_engine_url", &self.app_engine_url)
            .finish()
    }
}
