//! The gate: the top level of a configuration, and all its routes.

use super::fields::Level;
use super::mistakes::{Location, Mistakes};
use super::overlaps::refuse_overlaps;
use super::route::{self, Common, Placed};
use super::route_values::Routes;
use super::section::Section;
use super::self_upstream::leads_to_gate;
use super::tree::Member;
use super::urls::Base;
use super::values::{DURATION_MAX, Size};
use super::{Config, Platform, StoreOptions};
use semel_gate::path::PathPattern;
use semel_gate::settings::{Limits, Pass, RECONCILE_EVERY, Secret, Settings, Upstream};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Duration;

const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Reads the whole configuration; what it gives is good only when there are no mistakes.
pub(crate) fn read(
    members: &[Member],
    platform: Option<Platform>,
    mistakes: &mut Mistakes,
) -> Option<Config> {
    let mut section = Section::open(Level::Gate, members, Location::Whole, None, mistakes);
    let common = common(&mut section);
    let mut settings = settings(&mut section, &common);
    let options = StoreOptions {
        single_instance: section.value("single_instance"),
        relaxed_claims: section.value("relaxed_claims"),
        pooler: section.value("pooler"),
    };
    let Routes(values) = section.take("route").unwrap_or(Routes(Vec::new()));
    if values.is_empty() {
        section.wrong("route", "there is no [[route]]: nothing would be protected");
    }
    let routes: Vec<_> = (1..)
        .zip(&values)
        .filter_map(|(number, value)| route::read(number, value, &common, mistakes))
        .collect();
    for Placed { location, route } in &routes {
        let upstream = &route.upstream.base;
        let is_own = common.upstream.as_ref() != Some(upstream);
        if let Some(says) = is_own.then(|| leads_to_gate(upstream, &settings)).flatten() {
            mistakes.add(*location, Some(&route.name), says);
        }
    }
    refuse_overlaps(&routes, settings.pass.as_ref(), mistakes);
    settings.routes = routes.into_iter().map(|placed| placed.route).collect();
    Some(Config {
        store: common.store?,
        options,
        settings,
        platform,
    })
}

fn common(section: &mut Section<'_>) -> Common {
    let bad_before = section.mistakes_count();
    let store = section.value("store");
    // A store that cannot be read is reported once, not again by every route.
    let store_is_good = section.mistakes_count() == bad_before;
    Common {
        store: store_is_good.then_some(store),
        upstream: section.take::<Base>("upstream").map(|base| base.0),
        upstream_given: section.given("upstream"),
        h2c: section.value("upstream_h2c"),
    }
}

fn settings(section: &mut Section<'_>, common: &Common) -> Settings {
    let settings = Settings {
        listen: section.take("listen").unwrap_or(LISTEN_DEFAULT),
        admin: section.value("admin"),
        admin_token: section.take("admin_token").map(Secret),
        steps: section.value("steps"),
        steps_url: steps_url(section),
        namespace: section.value("namespace"),
        routes: Vec::new(),
        pass: pass(section, common),
        bodies_bytes_max: section.value::<Size>("bodies_bytes_max").0,
        connections_max: section.value::<NonZeroUsize>("connections_max").get(),
        proxies: section.take("proxies").unwrap_or_default(),
        limits: Limits::default(),
        grace: section.value("grace"),
        shared_cache: shared_cache(section),
        reconcile_every: RECONCILE_EVERY,
    };
    route::bounded(section, "namespace", &settings.namespace);
    addresses(section, &settings);
    let own_upstream = common.upstream.as_ref();
    if let Some(says) = own_upstream.and_then(|upstream| leads_to_gate(upstream, &settings)) {
        section.wrong("upstream", says);
    }
    settings
}

fn shared_cache(section: &mut Section<'_>) -> Duration {
    let cache = Duration::from_millis(section.value("cache_ms"));
    if cache > DURATION_MAX {
        let most = DURATION_MAX.as_millis();
        let says = format!("`cache_ms` must be {most} (366d) at the most");
        section.wrong("cache_ms", says);
    }
    cache
}

fn steps_url(section: &mut Section<'_>) -> Option<String> {
    let url: String = section.take("steps_url")?;
    let good = url.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
    });
    if !good {
        section.wrong(
            "steps_url",
            "`steps_url`: this is not a URL: write \"http://gate:8082\"",
        );
    }
    Some(url.trim_end_matches('/').into())
}

fn pass(section: &mut Section<'_>, common: &Common) -> Option<Pass> {
    let paths: Vec<PathPattern> = section.take("pass")?;
    if paths.is_empty() {
        return None;
    }
    if !common.upstream_given {
        section.wrong(
            "pass",
            "`pass` needs an `upstream` of the top level to forward to",
        );
    }
    let base = common.upstream.clone().unwrap_or_default();
    let upstream = Upstream {
        base,
        h2c: common.h2c,
    };
    Some(Pass { paths, upstream })
}

fn addresses(section: &mut Section<'_>, settings: &Settings) {
    let Settings {
        listen,
        admin,
        steps,
        ..
    } = settings;
    let token = settings.admin_token.as_ref();
    if token.is_some_and(|Secret(token)| token.is_empty()) {
        section.wrong(
            "admin_token",
            "`admin_token` is empty: write a long random text",
        );
    } else if token.is_none() && !admin.ip().is_loopback() {
        section.wrong(
            "admin",
            format!("`admin` {admin} can be reached by others: set `admin_token` (or SEMEL_ADMIN_TOKEN), or use 127.0.0.1"),
        );
    }
    let pairs = [
        ("admin", admin, "listen", listen),
        ("steps", steps, "listen", listen),
        ("steps", steps, "admin", admin),
    ];
    for (name, one, other_name, other) in pairs {
        if collide(*one, *other) {
            section.wrong(
                name,
                format!(
                    "`{name}` {one} and `{other_name}` {other} are the same port: give each its own"
                ),
            );
        }
    }
    if settings.steps_url.is_some() && steps.port() == 0 {
        section.wrong(
            "steps_url",
            "`steps_url` leads to a port that changes with every start: give `steps` a fixed port",
        );
    }
}

/// Whether two listeners cannot both be had. Port 0 is always a fresh one.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.port() != 0 && (everywhere || one.ip() == other.ip())
}
