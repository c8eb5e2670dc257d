//! Routes must be apart: the gate takes the first route of the file that fits a request, and
//! passes only what no route takes.

use super::mistakes::Mistakes;
use super::route::Placed;
use semel_gate::path::PathPattern;
use semel_gate::settings::{Pass, Route};

/// Refuses two routes of one name, and what no request could reach.
pub(crate) fn refuse_overlaps(routes: &[Placed], pass: Option<&Pass>, mistakes: &mut Mistakes) {
    for (
        index,
        Placed {
            location, route, ..
        },
    ) in routes.iter().enumerate()
    {
        let earlier = routes.iter().take(index).map(|placed| &placed.route);
        let passed = pass.iter().flat_map(|pass| &pass.paths);
        let told = earlier
            .flat_map(|earlier| [same_name(route, earlier), hidden(route, earlier)])
            .chain(passed.flat_map(|path| [never_passed(route, path), looks_like(route, path)]));
        for says in told.flatten() {
            mistakes.add(*location, Some(&route.name), says);
        }
    }
}

fn same_name(route: &Route, earlier: &Route) -> Option<String> {
    let same = !route.name.is_empty() && earlier.name == route.name;
    same.then(|| "another route has this name: their keys would meet; rename one".into())
}

fn hidden(route: &Route, earlier: &Route) -> Option<String> {
    let Route { name, path, .. } = earlier;
    if !share_a_method(route, earlier) || !covers(path, &route.path) {
        return None;
    }
    Some(if *path == route.path {
        format!("route {name} has the path {path} and the same methods already")
    } else {
        format!("route {name} stands before and takes all of {path}: put this route first")
    })
}

fn share_a_method(one: &Route, other: &Route) -> bool {
    let all = one.methods.is_empty() || other.methods.is_empty();
    all || one
        .methods
        .iter()
        .any(|method| other.methods.contains(method))
}

fn never_passed(route: &Route, passed: &PathPattern) -> Option<String> {
    let takes_all = route.methods.is_empty() && covers(&route.path, passed);
    takes_all.then(|| {
        format!("{passed} is never passed, because this route takes it: narrow `path` or `methods`, or fix `pass`")
    })
}

/// The gate passes nothing that a handler could take for a route's one path.
fn looks_like(route: &Route, passed: &PathPattern) -> Option<String> {
    let one_path = matches!(route.path, PathPattern::Exact(_)) && route.path != *passed;
    let alike = one_path && route.methods.is_empty() && passed.resembles(&route.path);
    alike.then(|| {
        format!("{passed} is never passed, because handlers could take it for this route's path: leave it out of `pass`")
    })
}

/// Whether every request of one path is one of the other's.
pub(crate) fn covers(wide: &PathPattern, narrow: &PathPattern) -> bool {
    // An empty path stands in for one with a mistake of its own.
    *narrow != PathPattern::Exact(String::new()) && wide.covers(narrow)
}
