//! The gate: the top level of a configuration, and all its routes.

use super::admin_access::{host_name, view_token};
use super::fields::Level;
use super::mistakes::{Location, Mistakes};
use super::overlaps::refuse_overlaps;
use super::route::{self, Common, Placed};
use super::route_values::{routes, word};
use super::secrets::secret;
use super::section::Section;
use super::self_upstream::leads_to_gate;
use super::tree::Member;
use super::urls::base;
use super::values::{
    DURATION_MAX, address, at_least_one, duration, integer, parsed, path, size, switch, text,
};
use super::{Config, Platform, StoreOptions};
use crate::open_store;
use crate::promise::{Declared, Failover};
use semel_gate::operate::is_act;
use semel_gate::path::PathPattern;
use semel_gate::settings::{
    CERTIFICATE_RELOAD_EVERY, IdentityFiles, Limits, ListenerTls, Pass, RECONCILE_EVERY, Secret,
    Settings, Upstream,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// When the gate's container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpu {
    Requests,
    Always,
}

/// The longest name of a gate: it stands in every label.
pub(crate) const NAME_BYTES_MAX: usize = 64;

const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Reads the whole configuration; what it gives is good only when there are no mistakes.
pub(crate) fn read(
    members: &[Member],
    platform: Option<Platform>,
    mistakes: &mut Mistakes,
) -> Option<Config> {
    let mut section = Section::open(Level::Gate, members, Location::Whole, None, mistakes);
    let common = common(&mut section, platform);
    let mut settings = settings(&mut section, &common);
    let options = StoreOptions {
        single_instance: section.value("single_instance", switch),
        relaxed_claims: section.value("relaxed_claims", switch),
        pooler: section.value("pooler", switch),
    };
    let declared = Declared {
        failover: section.take("failover", |value| word(value, &Failover::WORDS)),
        durable_disk: section.value("durable_disk", switch),
    };
    let database_connections = section.take("database_connections", at_least_one);
    if let Some(Err(error)) = common
        .store
        .as_ref()
        .map(|url| open_store::judge(url, options))
    {
        section.wrong("store", format!("`store`: {error}"));
    }
    let values = section.take("route", routes).unwrap_or_default();
    let none = "there is no [[route]]: nothing would be protected";
    section.refuse_if(values.is_empty(), "route", none);
    let placed: Vec<_> = (1..)
        .zip(&values)
        .filter_map(|(number, value)| route::read(number, value, &common, mistakes))
        .collect();
    for Placed {
        location, route, ..
    } in &placed
    {
        let upstream = &route.upstream.base;
        let is_own = common.upstream.as_ref() != Some(upstream);
        if let Some(says) = is_own.then(|| leads_to_gate(upstream, &settings)).flatten() {
            mistakes.add(*location, Some(&route.name), says);
        }
    }
    refuse_overlaps(&placed, settings.pass.as_ref(), mistakes);
    let (mut landings, mut never_sought) = (BTreeMap::new(), BTreeSet::new());
    for placed in placed {
        if placed.never_sought {
            never_sought.insert(placed.route.name.clone());
        }
        if let Some(url) = placed.landing {
            landings.insert(placed.route.name.clone(), url);
        }
        settings.routes.push(placed.route);
    }
    Some(Config {
        store: common.store?,
        options,
        declared,
        settings,
        landings,
        never_sought,
        database_connections: database_connections.and_then(|count| u64::try_from(count).ok()),
        platform,
        freezes: common.freezes,
    })
}

fn common(section: &mut Section<'_>, platform: Option<Platform>) -> Common {
    let bad_before = section.mistakes_count();
    let store = section.value("store", parsed);
    // A store that cannot be read is reported once, not again by every route.
    let store_is_good = section.mistakes_count() == bad_before;
    Common {
        store: store_is_good.then_some(store),
        upstream: section.take("upstream", base),
        upstream_given: section.given("upstream"),
        ca: section.take("upstream_ca", path),
        h2c: section.value("upstream_h2c", switch),
        freezes: freezes(section, platform),
        label_key: section.take("label_key", secret),
        label_key_given: section.given("label_key"),
    }
}

/// Whether this process is stopped between two requests. Cloud Run does so, unless its instances are billed as a whole.
fn freezes(section: &mut Section<'_>, platform: Option<Platform>) -> bool {
    let words = [("requests", Cpu::Requests), ("always", Cpu::Always)];
    let cpu = section.value("cpu", |value| word(value, &words));
    cpu == Cpu::Requests && platform == Some(Platform::CloudRun)
}

fn settings(section: &mut Section<'_>, common: &Common) -> Settings {
    let settings = Settings {
        listen: section.take("listen", address).unwrap_or(LISTEN_DEFAULT),
        tls: tls(section),
        admin: section.value("admin", address),
        admin_token: section.take("admin_token", text).map(Secret),
        admin_view_token: section.take("admin_view_token", text).map(Secret),
        admin_hosts: section.list("admin_hosts", host_name),
        steps: section.value("steps", address),
        steps_url: steps_url(section),
        namespace: section.value("namespace", text),
        name: gate_name(section),
        index: section.value("index", switch),
        routes: Vec::new(),
        pass: pass(section, common),
        bodies_bytes_max: section.value("bodies_bytes_max", size),
        connections_max: section.value("connections_max", at_least_one),
        proxies: section.list("proxies", parsed),
        limits: Limits::default(),
        grace: section.value("grace", duration),
        shared_cache: shared_cache(section),
        reconcile_every: RECONCILE_EVERY,
        // Traces follow the variables of OpenTelemetry, and nothing in the file.
        otlp: None,
    };
    route::bounded(section, "namespace", &settings.namespace);
    addresses(section, &settings);
    let own_upstream = common.upstream.as_ref();
    if let Some(says) = own_upstream.and_then(|upstream| leads_to_gate(upstream, &settings)) {
        section.wrong("upstream", says);
    }
    settings
}

/// What this gate is called; empty: whoever starts it knows a name.
fn gate_name(section: &mut Section<'_>) -> String {
    let name = section.take("name", text);
    let fits = name
        .as_ref()
        .is_none_or(|name| (1..=NAME_BYTES_MAX).contains(&name.len()));
    let says = format!("`name` must have 1 to {NAME_BYTES_MAX} bytes");
    section.refuse_if(!fits, "name", says);
    let says = "`name` is the word of an operator's act: histories would show its runs as acts; call the gate otherwise";
    section.refuse_if(name.as_deref().is_some_and(is_act), "name", says);
    name.unwrap_or_default()
}

fn tls(section: &mut Section<'_>) -> Option<ListenerTls> {
    let certificate = section.take("tls_certificate", path);
    let key = section.take("tls_key", path);
    for (one, other) in [
        ("tls_certificate", "tls_key"),
        ("tls_key", "tls_certificate"),
    ] {
        let alone = section.given(one) && !section.given(other);
        section.refuse_if(
            alone,
            one,
            format!("`{one}` needs `{other}`: write both, or none"),
        );
    }
    let tls = ListenerTls {
        identity: IdentityFiles {
            certificate: certificate?,
            key: key?,
        },
        reload_every: CERTIFICATE_RELOAD_EVERY,
    };
    if let Err(error) = tls.validate() {
        section.wrong(
            "tls_certificate",
            format!("`tls_certificate` and `tls_key`: {error}"),
        );
    }
    Some(tls)
}

fn shared_cache(section: &mut Section<'_>) -> Duration {
    let cache = Duration::from_millis(section.value("cache_ms", integer));
    let most = DURATION_MAX.as_millis();
    let says = format!("`cache_ms` must be {most} (366d) at the most");
    section.refuse_if(cache > DURATION_MAX, "cache_ms", says);
    cache
}

fn steps_url(section: &mut Section<'_>) -> Option<String> {
    let url = section.take("steps_url", text)?;
    let good = url.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
    });
    let says = "`steps_url`: this is not a URL: write \"http://gate:8082\"";
    section.refuse_if(!good, "steps_url", says);
    Some(url.trim_end_matches('/').into())
}

fn pass(section: &mut Section<'_>, common: &Common) -> Option<Pass> {
    let paths = section.list("pass", parsed::<PathPattern>);
    if paths.is_empty() {
        return None;
    }
    let says = "`pass` needs an `upstream` of the top level to forward to";
    section.refuse_if(!common.upstream_given, "pass", says);
    let upstream = Upstream {
        base: common.upstream.clone().unwrap_or_default(),
        ca: common.ca.clone(),
        h2c: common.h2c,
    };
    let says = "`upstream_h2c` is HTTP/2 without TLS: leave it out for an https:// handler, or write http://";
    section.refuse_if(upstream.h2c && upstream.is_https(), "upstream_h2c", says);
    if let Err(error) = upstream.validate() {
        section.wrong("upstream", format!("`upstream`: {error}"));
    }
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
    let empty = token.is_some_and(|Secret(token)| token.is_empty());
    let says = "`admin_token` is empty: write a long random text";
    section.refuse_if(empty, "admin_token", says);
    view_token(section, settings);
    let open = token.is_none() && !admin.ip().is_loopback();
    let says = format!(
        "`admin` {admin} can be reached by others: set `admin_token` (or SEMEL_ADMIN_TOKEN), or use 127.0.0.1"
    );
    section.refuse_if(open, "admin", says);
    let pairs = [
        ("admin", admin, "listen", listen),
        ("steps", steps, "listen", listen),
        ("steps", steps, "admin", admin),
    ];
    for (name, one, other_name, other) in pairs {
        let says = format!(
            "`{name}` {one} and `{other_name}` {other} are the same port: give each its own"
        );
        section.refuse_if(collide(*one, *other), name, says);
    }
    let moves = settings.steps_url.is_some() && steps.port() == 0;
    let says =
        "`steps_url` leads to a port that changes with every start: give `steps` a fixed port";
    section.refuse_if(moves, "steps_url", says);
}

/// Whether two listeners cannot both be had. Port 0 is always a fresh one.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.port() != 0 && (everywhere || one.ip() == other.ip())
}
