//! A route: one `[[route]]` table, read and judged.

use super::fields::Level;
use super::mistakes::{Location, Mistakes};
use super::route_values::{AttributeNames, Pointer, Senders, Statuses};
use super::section::Section;
use super::terms::{RouteTerms, terms};
use super::tree::{Member, Node, Value};
use super::urls::{Base, Origin};
use super::values::Size;
use crate::store_url::StoreUrl;
use http::Uri;
use semel::key::{KeyRule, Part, SCOPE_BYTES_MAX};
use semel::store::LEASE_MAX;
use semel::work::Completes;
use semel_gate::path::{PathAllowance, PathPattern};
use semel_gate::settings::{Caller, LetterLimits, Route, Source, Upstream};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What the top level says for all routes.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) store: Option<StoreUrl>,
    pub(crate) upstream: Option<Uri>,
    /// Whether an upstream was written, be it a good one or not.
    pub(crate) upstream_given: bool,
    pub(crate) h2c: bool,
}

/// A route and where it stands.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) location: Location,
    pub(crate) route: Route,
}

/// Reads a route; none when it is not a table.
pub(crate) fn read(
    number: usize,
    value: &Value,
    common: &Common,
    mistakes: &mut Mistakes,
) -> Option<Placed> {
    let Node::Table(members) = &value.node else {
        let says = format!(
            "`route` must be a [[route]] table; this is {}",
            value.found()
        );
        mistakes.add(value.location, None, says);
        return None;
    };
    let title = title(number, members);
    let mut section = Section::open(Level::Route, members, value.location, Some(title), mistakes);
    Some(Placed {
        location: value.location,
        route: route(&mut section, common),
    })
}

/// The name, or which route of the file it is.
fn title(number: usize, members: &[Member]) -> String {
    let name = members.iter().find(|member| member.name == "name");
    match name.map(|name| &name.value.node) {
        Some(Node::Text(name)) if !name.is_empty() && name.len() <= SCOPE_BYTES_MAX => name.clone(),
        Some(_) | None => format!("number {number}"),
    }
}

/// Every field is read before anything is given up, so that all mistakes are found.
fn route(section: &mut Section<'_>, common: &Common) -> Route {
    let name: Option<String> = section.take("name");
    if let Some(name) = &name {
        bounded(section, "name", name);
    }
    let path: Option<PathPattern> = section.take("path");
    let path_allows = path_allows(section, path.as_ref());
    let senders = section.value("source");
    let own = own_terms(section, &senders);
    let caller = caller(section, &senders, own.key.as_ref());
    let upstream = upstream(section, common);
    let pointers = section.take::<Vec<Pointer>>("require").unwrap_or_default();
    let final_statuses = statuses(section, "final");
    let undone_statuses = undone(section, &final_statuses);
    let cors = section.take::<Vec<Origin>>("cors").unwrap_or_default();
    Route {
        name: name.unwrap_or_default(),
        // What stands in for a mistake is never used: mistakes keep the whole from being used.
        path: path.unwrap_or(PathPattern::Exact(String::new())),
        path_allows,
        methods: section.take("methods").unwrap_or_default(),
        sources: sources(senders, caller.is_some()),
        caller,
        fingerprint: section.value("fingerprint"),
        fingerprint_ignores: section
            .take::<Vec<AttributeNames>>("fingerprint_ignores")
            .unwrap_or_default()
            .into_iter()
            .map(|names| names.0)
            .collect(),
        require: pointers.into_iter().map(|pointer| pointer.0).collect(),
        terms: Source::ALL.map(|source| terms(source, &own)),
        in_doubt: section.value("in_doubt"),
        completes: completes(section, common),
        final_statuses,
        undone_statuses,
        max_attempts: section.value("max_attempts"),
        backoff: section.value("backoff"),
        concurrency: section.value::<NonZeroUsize>("concurrency").get(),
        queue: section.value("queue"),
        upstream,
        on_invalid: section.value("on_invalid"),
        cors: cors.into_iter().map(|origin| origin.0).collect(),
        letters: LetterLimits {
            count_max: section.value::<NonZeroUsize>("letters_max").get() as u64,
            bytes_max: section.value::<Size>("letters_bytes_max").0 as u64,
        },
        body_bytes_max: section.value::<Size>("body_bytes_max").0,
        answer_bytes_max: section.value::<Size>("answer_bytes_max").0,
    }
}

/// One path has one spelling; below a path, however a handler reads a spelling, it stays below.
fn path_allows(section: &mut Section<'_>, path: Option<&PathPattern>) -> Vec<PathAllowance> {
    let allowed: Vec<PathAllowance> = section.value("path_allows");
    if !allowed.is_empty() && matches!(path, Some(PathPattern::Exact(_))) {
        section.wrong(
            "path_allows",
            "`path_allows` is for routes below a path, like path = \"/files/*\": one path has one spelling",
        );
    }
    allowed
}

/// Whose deliveries a route takes. `auto` beside a `caller` means its API clients: what looks like a
/// broker's delivery there is a client's, and would be kept as letters for the asking.
fn sources(senders: Senders, has_caller: bool) -> Vec<Source> {
    match senders {
        Senders::Named(sources) => sources,
        Senders::Auto if has_caller => vec![Source::Api],
        Senders::Auto => vec![Source::CloudTasks, Source::PubSub, Source::CloudEvents],
    }
}

fn statuses(section: &mut Section<'_>, field: &str) -> Vec<RangeInclusive<u16>> {
    let statuses = section.take::<Vec<Statuses>>(field).unwrap_or_default();
    statuses.into_iter().map(|range| range.0).collect()
}

/// A proxy answers so for a handler that may have run: they say nothing of what happened.
const SAID_BY_PROXIES: [u16; 2] = [502, 504];

fn undone(
    section: &mut Section<'_>,
    final_statuses: &[RangeInclusive<u16>],
) -> Vec<RangeInclusive<u16>> {
    let undone = statuses(section, "undone");
    let lists = |status: &u16| undone.iter().any(|range| range.contains(status));
    if let Some(status) = SAID_BY_PROXIES.into_iter().find(lists) {
        section.wrong(
            "undone",
            format!(
                "`undone`: {status} may not be listed: a proxy answers so for a handler that may have run; let the \
                 handler say 503 when nothing happened"
            ),
        );
    }
    let is_final = |status: &u16| final_statuses.iter().any(|range| range.contains(status));
    if let Some(status) = (300..=599).filter(lists).find(is_final) {
        section.wrong(
            "undone",
            format!(
                "`undone`: {status} is in `final` too: a failure for good is recorded, one that is undone may run \
                 again; list it once"
            ),
        );
    }
    undone
}

/// Judges text that enters every key.
pub(crate) fn bounded(section: &mut Section<'_>, field: &str, text: &str) {
    let bytes = text.len();
    if !(1..=SCOPE_BYTES_MAX).contains(&bytes) {
        section.wrong(
            field,
            format!(
                "`{field}` has {bytes} bytes: write 1 to {SCOPE_BYTES_MAX}, it enters every key"
            ),
        );
    }
}

fn own_terms(section: &mut Section<'_>, senders: &Senders) -> RouteTerms {
    let own = RouteTerms {
        key: section.take("key"),
        lease: section.value("lease"),
        timeout: section.take("timeout"),
        deadline: section.take("deadline"),
        retention: section.take("retention"),
        horizon: section.take("horizon"),
        max_backoff: section.take("max_backoff"),
        wait: section.take("wait"),
    };
    if own.lease < Duration::from_millis(1) || own.lease > LEASE_MAX {
        section.wrong("lease", "`lease` must be from 1ms to 24h");
    }
    if own.timeout == Some(Duration::ZERO) {
        section.wrong("timeout", "`timeout`: 0 would let no handler answer");
    }
    match senders {
        Senders::Named(sources)
            if !sources.contains(&Source::CloudTasks) && own.max_backoff.is_some() =>
        {
            section.wrong(
                "max_backoff",
                "`max_backoff` belongs to a Cloud Tasks queue: write `horizon` here",
            );
        }
        Senders::Named(sources)
            if *sources == [Source::CloudTasks]
                && own.max_backoff.is_some()
                && own.horizon.is_some() =>
        {
            section.wrong(
                "horizon",
                "`horizon` follows from `max_backoff`: write one of the two",
            );
        }
        Senders::Named(_) | Senders::Auto => {}
    }
    own
}

fn caller(section: &mut Section<'_>, senders: &Senders, key: Option<&KeyRule>) -> Option<Caller> {
    let caller = section.take("caller");
    let chosen_by_clients = Part::Named("header:idempotency-key".into());
    let by_client = key.is_some_and(|key| key.parts().contains(&chosen_by_clients));
    let from_clients = match senders {
        Senders::Named(sources) => sources.contains(&Source::Api),
        Senders::Auto => false,
    };
    if (from_clients || by_client) && !section.given("caller") {
        section.wrong(
            "caller",
            "`caller` is missing: clients choose their own keys, and one caller must never receive another's stored \
             answer; write caller = \"header:NAME\" (a header that something trusted in front sets), or \"shared\" for \
             one trusted client",
        );
    }
    caller
}

fn upstream(section: &mut Section<'_>, common: &Common) -> Upstream {
    let own = section.take::<Base>("upstream").map(|base| base.0);
    let h2c = section.take("upstream_h2c").unwrap_or(common.h2c);
    if !section.given("upstream") && !common.upstream_given {
        section.wrong(
            "upstream",
            "`upstream` is missing: write upstream = \"http://127.0.0.1:3000\", here or above the first [[route]]",
        );
    }
    let base = own.or_else(|| common.upstream.clone()).unwrap_or_default();
    Upstream { base, h2c }
}

fn completes(section: &mut Section<'_>, common: &Common) -> Completes {
    let completes = section.value("completes");
    match (completes, &common.store) {
        (Completes::Handler, Some(StoreUrl::Embedded(_) | StoreUrl::Redis(_))) => section.wrong(
            "completes",
            "`completes` = \"handler\" needs a postgres:// store in the handler's own database: only there record and \
             effect commit together",
        ),
        (Completes::Handler, Some(StoreUrl::Postgres(_)) | None) | (Completes::Run, _) => {}
    }
    completes
}
