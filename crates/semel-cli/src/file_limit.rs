//! Open files: a connection is one, and a process may have only so many.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use semel_gate::settings::Settings;

/// Files beside connections: listeners, the store's tables and connections, the log.
const OTHER_FILES: u64 = 512;

/// A limit that leaves no room beside these still takes so many connections: one part in so many.
const PARTS: u64 = 4;

/// How many files a gate opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs {
    connections: u64,
    /// For each connection; one that is passed on has a second one to the handler.
    files_per_connection: u64,
    /// What stays free of deliveries, so that health checks, runs and the store have theirs.
    reserved: u64,
}

/// Raises the limit of this process as far as `connections_max` needs it; lowers `connections_max` to
/// what the limit allows, and says so.
pub(crate) fn fit(settings: &mut Settings) {
    let needs = Needs::of(settings);
    let limit = getrlimit(Resource::Nofile);
    let files = raised(limit, needs.files());
    let fits = needs.fits(files);
    if fits < needs.connections {
        settings.connections_max = usize::try_from(fits).unwrap_or(usize::MAX);
        tracing::warn!(
            connections_max = fits,
            asked = needs.connections,
            files,
            needed = needs.files(),
            "this process may open too few files for `connections_max`: it takes fewer connections; \
             raise its limit (`ulimit -n`, LimitNOFILE, --ulimit nofile) or lower `connections_max`"
        );
    }
}

/// The limit after it was raised to `files`, as far as that is allowed.
fn raised(limit: Rlimit, files: u64) -> u64 {
    let current = limit.current.unwrap_or(u64::MAX);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let wanted = files.min(most);
    if wanted <= current {
        return current;
    }
    let new = Rlimit {
        current: Some(wanted),
        ..limit
    };
    match setrlimit(Resource::Nofile, new) {
        Ok(()) => {
            tracing::info!(
                from = current,
                to = wanted,
                "raised the limit of open files"
            );
            wanted
        }
        Err(error) => {
            tracing::warn!(%error, from = current, to = wanted, "the limit of open files was not raised");
            current
        }
    }
}

// === impl Needs ===

impl Needs {
    fn of(settings: &Settings) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let runs = settings.routes.iter().map(|route| count(route.concurrency));
        let listeners = [
            settings.limits.admin_connections_max,
            settings.limits.steps_connections_max,
        ];
        let reserved = runs
            .chain(listeners.map(count))
            .fold(OTHER_FILES, u64::saturating_add);
        Self {
            connections: count(settings.connections_max),
            files_per_connection: if settings.pass.is_some() { 2 } else { 1 },
            reserved,
        }
    }

    const fn files(&self) -> u64 {
        self.connections
            .saturating_mul(self.files_per_connection)
            .saturating_add(self.reserved)
    }

    /// How many connections fit into so many files.
    fn fits(&self, files: u64) -> u64 {
        let free = files.saturating_sub(self.reserved).max(files / PARTS);
        (free / self.files_per_connection).clamp(1, self.connections.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs = Needs {
        connections: 10_000,
        files_per_connection: 1,
        reserved: 800,
    };

    #[test]
    fn what_is_reserved_is_not_given_to_connections() {
        assert_eq!(NEEDS.files(), 10_800);
        assert_eq!(NEEDS.fits(u64::MAX), 10_000);
        assert_eq!(NEEDS.fits(10_800), 10_000);
        assert_eq!(NEEDS.fits(4_096), 3_296);
        assert_eq!(NEEDS.fits(1_024), 256);
        assert_eq!(NEEDS.fits(1), 1);
    }

    #[test]
    fn a_connection_that_is_passed_on_is_two_files() {
        let passing = Needs {
            files_per_connection: 2,
            ..NEEDS
        };
        assert_eq!(passing.files(), 20_800);
        assert_eq!(passing.fits(10_800), 5_000);
    }
}
