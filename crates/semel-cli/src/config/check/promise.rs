//! What each route promises, in one line.

use super::{Finding, Verdict};
use crate::config::Config;
use crate::promise::{Failover, Shown, Store, StoreFacts, assumed, demanded, line, shown};
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
            let says = line(route, store, &shown, assumed(route, store).as_ref());
            (Verdict::of(&shown), says)
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
            let says = format!(
                "promise = \"{promise}\": {}",
                line(route, store, &shown, None)
            );
            (Verdict::of(&shown), says)
        }
    }
}

/// A server that follows another may take over from it, whatever was declared.
fn followers(store: &StoreFacts) -> Vec<Finding> {
    let landings = store.landings.values().map(|it| (it, "a landing's server"));
    let places = std::iter::once((&store.store, "the store's server")).chain(landings);
    let followed = places.filter(|(place, _)| place.followers() > 0);
    let warning = |(place, server): (&Store, &str)| {
        let says = format!(
            "failover = \"none\", and {} standbys or replicas follow {server}: if one of them takes over, what it has not \
             received yet is forgotten",
            place.followers()
        );
        Finding::gate(Verdict::Warning, says)
    };
    if store.declared.failover != Some(Failover::Nobody) {
        return Vec::new();
    }
    followed.map(warning).collect()
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
