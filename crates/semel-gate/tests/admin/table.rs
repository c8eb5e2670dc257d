//! Every path of the admin address with its methods, read from the routers themselves: one that is added is tried here
//! without anybody thinking of it.

use crate::support::prelude::*;

const API: &str = include_str!("../../src/admin.rs");
const PAGE: &str = include_str!("../../src/page.rs");

const KEY: &str = "v1_0000000000000000000000000000000000000000000000000000000000000000";
const LETTER: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is asked for as JSON, health aside, which is open to all.
pub(super) fn api() -> Vec<Ask> {
    let mut asks = asked(API, "");
    asks.retain(|ask| !["/healthz", "/readyz"].contains(&ask.path.as_str()));
    assert!(asks.len() >= 13, "{asks:?}");
    asks
}

/// The screens, their parts, their downloads and their acts.
pub(super) fn screens() -> Vec<Ask> {
    let asks = asked(PAGE, "/ui");
    assert!(asks.len() >= 25, "{asks:?}");
    asks
}

fn asked(router: &str, root: &str) -> Vec<Ask> {
    let mut asks = Vec::new();
    for route in router.split(".route(").skip(1) {
        let path = route.split('"').nth(1).unwrap();
        // The handlers stand before the next call in the chain.
        let end = route.find("\n        .").unwrap_or(route.len());
        let path = format!("{root}{}", filled(path));
        for method in ["get", "post"] {
            if route[..end].contains(&format!("{method}(")) {
                let method = method.to_uppercase().parse().unwrap();
                asks.push(Ask::get(&path).method(method));
            }
        }
    }
    asks
}

fn filled(path: &str) -> String {
    let id = if path.contains("/jobs/") { "1" } else { LETTER };
    let path = path.replace("{key}", KEY).replace("{name}", "work");
    path.replace("{id}", id)
}
