//! What each route promises, in one line.

use super::{Finding, Verdict};
use crate::config::Config;
use crate::promise::{Failover, Shown, StoreFacts, demanded, line, shown};
use semel_gate::settings::{Promise, Route};

/// A line for each route, given what is known of the store, and what contradicts what was declared of it.
pub(crate) fn check(config: &Config, store: &StoreFacts) -> Vec<Finding> {
    let routes = config.settings.routes.iter();
    let lines = routes.map(|route| promise(route, store));
    followers(store).into_iter().chain(lines).collect()
}

fn promise(route: &Route, store: &StoreFacts) -> Finding {
    let (verdict, says) = match route.promise {
        None => {
            let shown = shown(route, store);
            (Verdict::of(&shown), line(route, &shown))
        }
        Some(promise) => demand(route, store, promise),
    };
    Finding::route(route, None, verdict, says)
}

fn demand(route: &Route, store: &StoreFacts, promise: Promise) -> (Verdict, String) {
    match demanded(route, store, promise) {
        Shown::Unproved(why) => {
            let says = format!("promise = \"{promise}\" is not proved: {}", why.join("; "));
            (Verdict::Broken, says)
        }
        shown @ (Shown::Proved(..) | Shown::Unread(..)) => {
            let says = format!("promise = \"{promise}\": {}", line(route, &shown));
            (Verdict::of(&shown), says)
        }
    }
}

/// Whoever follows a server may take over from it, whatever was declared.
fn followers(store: &StoreFacts) -> Option<Finding> {
    let followers = store.store.followers();
    let says = format!(
        "failover = \"none\", and {followers} standbys or replicas follow the store's server: if one of them takes over, \
         what it has not got yet is forgotten and runs again"
    );
    let declared = store.declared.failover == Some(Failover::Nobody);
    (declared && followers > 0).then(|| Finding::gate(Verdict::Warning, says))
}

// === impl Verdict ===

impl Verdict {
    const fn of(shown: &Shown) -> Self {
        match shown {
            Shown::Proved(..) => Self::Proved,
            Shown::Unread(..) | Shown::Unproved(_) => Self::Note,
        }
    }
}
