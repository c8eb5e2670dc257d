//! A route: one `[[route]]` table, read and judged.

use super::fields::Level;
use super::landing::{self, RouteLanding};
use super::mistakes::{Location, Mistakes};
use super::route_values::{self, Senders};
use super::section::Section;
use super::stateless;
use super::terms::{RouteTerms, terms};
use super::tree::{Member, Node, Value};
use super::urls::{base, origin};
use super::values::{
    at_least_one, count, duration, list, parsed, path, size, small_count, switch, text,
};
use super::verify;
use crate::landing_url::LandingUrl;
use crate::store_url::StoreUrl;
use http::{Method, Uri};
use semel::key::{KeyRule, Part, SCOPE_BYTES_MAX};
use semel::protocol::InDoubt;
use semel::store::LEASE_MAX;
use semel::work::Completes;
use semel_gate::path::{PathAllowance, PathPattern};
use semel_gate::settings::{
    Caller, Downstream, FingerprintRule, KeyMissing, Lands, LetterLimits, PROBE_AFTER, Probe,
    RecordKeeping, Route, Secret, Source, Terms, Upstream, Verify, Webhook,
};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// What the top level says for all routes.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) store: Option<StoreUrl>,
    pub(crate) upstream: Option<Uri>,
    /// Whether an upstream was written, be it a good one or not.
    pub(crate) upstream_given: bool,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) h2c: bool,
    /// Whether the platform stops this process between two requests.
    pub(crate) freezes: bool,
    /// The key of the digests that people see of private routes.
    pub(crate) label_key: Option<Secret>,
    /// Whether one was written, be it to be had here or not.
    pub(crate) label_key_given: bool,
}

/// A route and where it stands.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) location: Location,
    pub(crate) route: Route,
    /// Where its deliveries land.
    pub(crate) landing: Option<LandingUrl>,
    /// True where its horizon follows from `seek = "never"`.
    pub(crate) never_sought: bool,
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
    let landing = landing::landing(&mut section);
    let route = route(&mut section, common, landing.as_ref());
    Some(Placed {
        location: value.location,
        route,
        landing: landing.and_then(|landing| landing.url),
        never_sought: section.given("seek") && !section.given("horizon"),
    })
}

/// Senders of webhooks post, and sign neither method nor path: no other method of a handler is theirs unasked. Nor is there
/// anything to GET where no handler is.
fn methods(section: &mut Section<'_>, posts_only: bool) -> Vec<Method> {
    let listed = section.list("methods", route_values::method);
    if posts_only && !section.given("methods") {
        return vec![Method::POST];
    }
    listed
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
fn route(section: &mut Section<'_>, common: &Common, landing: Option<&RouteLanding>) -> Route {
    let name = section.take("name", text);
    if let Some(name) = &name {
        bounded(section, "name", name);
    }
    let path = section.take("path", parsed);
    let path_allows = path_allows(section, path.as_ref());
    let senders = section.value("source", route_values::senders);
    let record = section.value("record", route_values::record);
    stateless::judge(section, record);
    let land_within = landing.and_then(RouteLanding::of_answers);
    let own = own_terms(section, &senders, common, record, land_within);
    let verify = verify::verify(section, &senders);
    let caller = caller(section, &senders, own.key.as_ref(), &verify);
    let webhook = senders.webhook();
    let sources = sources(senders, caller.is_some());
    let is_called = landing.is_none_or(|landing| landing.rule.lands == Lands::Answer);
    let upstream = upstream(section, common, is_called);
    let final_statuses = section.list("final", route_values::statuses);
    let undone_statuses = undone(section, &final_statuses);
    let in_doubt = section.value("in_doubt", route_values::in_doubt);
    let completes = completes(section, common);
    landing::judge(section, landing, in_doubt, completes);
    let dead_letter_topic = stateless::dead_letter_topic(section, &sources);
    let (is_private, keep_payload) = shown(section, common);
    Route {
        name: name.unwrap_or_default(),
        // What stands in for a mistake is never used: mistakes keep the whole from being used.
        path: path.unwrap_or(PathPattern::Exact(String::new())),
        path_allows,
        methods: methods(section, webhook.is_some() || !is_called),
        key_missing: key_missing(section, &sources, own.key.as_ref()),
        webhook_origins: verify::webhook_origins(section, &sources),
        sources,
        verify,
        caller,
        fingerprint: fingerprint(section, webhook),
        fingerprint_ignores: section.list("fingerprint_ignores", route_values::attribute_names),
        require: section.list("require", route_values::required),
        record,
        platform_timeout: section.take("platform_timeout", duration),
        dead_letter_topic,
        terms: all_terms(webhook, &own),
        in_doubt,
        probe: probe(section, in_doubt, completes),
        completes,
        downstream: downstream(section),
        promise: own.promise,
        task_names_unique: section
            .take("task_names", route_values::task_names)
            .is_some(),
        final_statuses,
        undone_statuses,
        max_attempts: section.value("max_attempts", small_count),
        backoff: section.value("backoff", route_values::backoff),
        concurrency: section.value("concurrency", at_least_one),
        queue: section.value("queue", count),
        upstream,
        land: landing.map(|landing| landing.rule.clone()),
        on_invalid: stateless::on_invalid(section, record, landing.is_some()),
        on_exhausted: stateless::on_exhausted(section, record),
        cors: section.list("cors", origin),
        letters: LetterLimits {
            count_max: section.value("letters_max", at_least_one) as u64,
            bytes_max: section.value("letters_bytes_max", size) as u64,
        },
        body_bytes_max: section.value("body_bytes_max", size),
        answer_bytes_max: section.value("answer_bytes_max", size),
        private: is_private.then(|| common.label_key.clone()).flatten(),
        keep_payload,
        show_bodies: section.value("show_bodies", switch),
    }
}

/// The range of `max_delivery_attempts` in a dead-letter policy of Pub/Sub.
const PUBSUB_ATTEMPTS: RangeInclusive<u32> = 5..=100;

/// The shortest key of digests that hides something.
const LABEL_KEY_BYTES_MIN: usize = 16;

/// What people see of a route's deliveries: whether it is private, and whether payloads are kept.
fn shown(section: &mut Section<'_>, common: &Common) -> (bool, bool) {
    let is_private = section.value("private", switch);
    let keep_payload = section.value("keep_payload", switch);
    let says = "`private` needs a `label_key` above the first [[route]]: digests of parts that can be guessed hide nothing \
                without a key; write label_key = \"env:NAME\"";
    section.refuse_if(is_private && !common.label_key_given, "private", says);
    let is_short = |key: &Secret| key.0.len() < LABEL_KEY_BYTES_MIN;
    let says = "`label_key` has fewer than 16 bytes, so it can be guessed like the parts that it hides: make one with \
                `openssl rand -hex 32`";
    let is_short = is_private && common.label_key.as_ref().is_some_and(is_short);
    section.refuse_if(is_short, "private", says);
    let says = "`keep_payload` shows in clear what `private` hides: write one of the two";
    section.refuse_if(keep_payload && is_private, "keep_payload", says);
    (is_private, keep_payload)
}

/// The terms for each source that a route can have. Those of webhooks are never asked for where none comes.
fn all_terms(webhook: Option<Webhook>, own: &RouteTerms) -> [Terms; 5] {
    let [api, cloud_tasks, pubsub, cloudevents] = Source::ALL.map(|source| terms(source, own));
    let webhook = Source::Webhook(webhook.unwrap_or(Webhook::Standard));
    [api, cloud_tasks, pubsub, cloudevents, terms(webhook, own)]
}

/// What repeats are compared by. Stripe vouches for its event ids, and counts in each delivery of an event how many
/// more are to come (`pending_webhooks`): there an honest repeat may differ.
fn fingerprint(section: &mut Section<'_>, webhook: Option<Webhook>) -> FingerprintRule {
    match webhook {
        Some(Webhook::Stripe) if !section.given("fingerprint") => FingerprintRule::Off,
        Some(_) | None => section.value("fingerprint", route_values::fingerprint),
    }
}

/// Without a key nothing is protected: only API clients, who hear what became of their request, may go without.
fn key_missing(section: &mut Section<'_>, sources: &[Source], key: Option<&KeyRule>) -> KeyMissing {
    let missing = section.value("key_missing", route_values::key_missing);
    let is_header = |part: &Part| matches!(part, Part::Named(name) if name.starts_with("header:"));
    let by_header = key.is_none_or(|key| key.parts().iter().any(is_header));
    let passes = missing == KeyMissing::Pass;
    let says =
        "`key_missing` = \"pass\" is for routes of API clients alone: write source = \"api\"";
    section.refuse_if(passes && sources != [Source::Api], "key_missing", says);
    let says = "`key_missing` = \"pass\" looks for the headers of the key, and this key has none: name one, as \
                \"idempotency-key\" does";
    section.refuse_if(passes && !by_header, "key_missing", says);
    missing
}

/// One path has one spelling; below a path, however a handler reads a spelling, it stays below.
fn path_allows(section: &mut Section<'_>, path: Option<&PathPattern>) -> Vec<PathAllowance> {
    let allowed = section.value("path_allows", list(route_values::path_allowance));
    let exact = path.is_some_and(|path| !path.is_below());
    let says = "`path_allows` is for routes below a path, like path = \"/files/*\": one path has one spelling";
    section.refuse_if(exact && !allowed.is_empty(), "path_allows", says);
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

/// A proxy answers so for a handler that may have run: they say nothing of what happened.
const SAID_BY_PROXIES: [u16; 2] = [502, 504];

fn undone(
    section: &mut Section<'_>,
    final_statuses: &[RangeInclusive<u16>],
) -> Vec<RangeInclusive<u16>> {
    let undone = section.list("undone", route_values::statuses);
    let lists = |status: &u16| undone.iter().any(|range| range.contains(status));
    if let Some(status) = SAID_BY_PROXIES.into_iter().find(lists) {
        let says = format!(
            "`undone`: {status} may not be listed: a proxy answers so for a handler that may have run; let the \
             handler say 503 when nothing happened"
        );
        section.wrong("undone", says);
    }
    let is_final = |status: &u16| final_statuses.iter().any(|range| range.contains(status));
    if let Some(status) = (300..=599).filter(lists).find(is_final) {
        let says = format!(
            "`undone`: {status} is in `final` too: a failure for good is recorded, one that is undone may run \
             again; list it once"
        );
        section.wrong("undone", says);
    }
    undone
}

/// Judges text that enters every key.
pub(crate) fn bounded(section: &mut Section<'_>, field: &str, text: &str) {
    let bytes = text.len();
    let says =
        format!("`{field}` has {bytes} bytes: write 1 to {SCOPE_BYTES_MAX}, it enters every key");
    let fits = (1..=SCOPE_BYTES_MAX).contains(&bytes);
    section.refuse_if(!fits, field, says);
}

fn own_terms(
    section: &mut Section<'_>,
    senders: &Senders,
    common: &Common,
    record: RecordKeeping,
    land_within: Option<Duration>,
) -> RouteTerms {
    let own = RouteTerms {
        key: section.take("key", |value| route_values::key_rule(value, senders)),
        lease: section.value("lease", duration),
        timeout: section.take("timeout", duration),
        deadline: section.take("deadline", duration),
        retention: section.take("retention", duration),
        horizon: section.take("horizon", duration),
        max_backoff: section.take("max_backoff", duration),
        never_seeks: section.take("seek", route_values::never_seeks).is_some(),
        promise: section.take("promise", route_values::promise),
        wait: section.take("wait", duration),
        sender_attempts: section.take("sender_attempts", route_values::sender_attempts),
        max_in_doubt: section.take("max_in_doubt", small_count),
        park_after: section.take("park_after", duration),
        freezes: common.freezes,
        stateless: record == RecordKeeping::None,
        land_within,
    };
    let leases = Duration::from_millis(1)..=LEASE_MAX;
    let says = "`lease` must be from 1ms to 24h";
    section.refuse_if(!leases.contains(&own.lease), "lease", says);
    let says = "`timeout`: 0 would let no handler answer";
    section.refuse_if(own.timeout == Some(Duration::ZERO), "timeout", says);
    if let Some(source) = outlasted(senders, section.given("caller"), &own) {
        let says = format!(
            "`timeout` is longer than {source} waits for one delivery (`deadline`), so say how often it delivers before \
             it gives up: write sender_attempts = {}",
            route_values::attempts_of(source)
        );
        section.wrong("timeout", says);
    }
    let says = "`sender_attempts` = \"unlimited\": this sender gives up after a number of attempts or when its schedule ends; \
                write a number, or leave it out";
    let is_unlimited = own.sender_attempts == Some(None);
    section.refuse_if(
        is_unlimited && senders.webhook().is_some(),
        "sender_attempts",
        says,
    );
    let says = "`sender_attempts`: a dead-letter policy of Pub/Sub has 5 to 100 max_delivery_attempts: write the subscription's, or \
                \"unlimited\" if it has none";
    let is_pubsub = matches!(senders, Senders::Named(sources) if sources.contains(&Source::PubSub));
    let beyond = own.sender_attempts.flatten();
    let beyond = beyond.is_some_and(|most| !PUBSUB_ATTEMPTS.contains(&most));
    section.refuse_if(is_pubsub && beyond, "sender_attempts", says);
    for (field, source, is_about) in [
        ("max_backoff", Source::CloudTasks, "a Cloud Tasks queue"),
        (
            "task_names",
            Source::CloudTasks,
            "tasks of Cloud Tasks, and their names",
        ),
        ("seek", Source::PubSub, "a Pub/Sub subscription"),
    ] {
        let elsewhere = matches!(senders, Senders::Named(sources) if !sources.contains(&source));
        let says =
            format!("`{field}` is about {is_about}, and this route takes none: leave it out");
        section.refuse_if(elsewhere && section.given(field), field, says);
    }
    own
}

/// The first broker that an explicit timeout outlasts, where nobody said how often it delivers.
fn outlasted(senders: &Senders, has_caller: bool, own: &RouteTerms) -> Option<Source> {
    // Without a record the two times are judged by themselves.
    own.timeout
        .filter(|_| own.sender_attempts.is_none() && !own.stateless)?;
    let outlasts = |source: &Source| source.is_broker() && terms(*source, own).outlasts_sender();
    sources(senders.clone(), has_caller)
        .into_iter()
        .find(outlasts)
}

fn caller(
    section: &mut Section<'_>,
    senders: &Senders,
    key: Option<&KeyRule>,
    verify: &Verify,
) -> Option<Caller> {
    let caller = section.take("caller", route_values::caller);
    let of_token = matches!(caller, Some(Caller::Claim(_)));
    let says = "`caller`: a claim says who somebody is only in a verified token: write verify = \"google\" or an \
                issuer's URL, too";
    let unverified = of_token && !matches!(verify, Verify::Token(_)) && !section.given("verify");
    section.refuse_if(unverified, "caller", says);
    let chosen_by_clients = Part::Named("header:idempotency-key".into());
    let by_client = key.is_some_and(|key| key.parts().contains(&chosen_by_clients));
    let from_clients = match senders {
        Senders::Named(sources) => sources.contains(&Source::Api),
        Senders::Auto => false,
    };
    let missing = (from_clients || by_client) && !section.given("caller");
    let says = "`caller` is missing: clients choose their own keys, and one caller must never receive another's \
                stored answer; write caller = \"header:NAME\" (a header that something trusted in front sets), \
                \"jwt:sub\" where `verify` checks tokens, or \"shared\" for one trusted client";
    section.refuse_if(missing, "caller", says);
    caller
}

fn upstream(section: &mut Section<'_>, common: &Common, is_called: bool) -> Upstream {
    let own = section.take("upstream", base);
    let h2c = section.take("upstream_h2c", switch).unwrap_or(common.h2c);
    let missing = is_called && !section.given("upstream") && !common.upstream_given;
    let says = "`upstream` is missing: write upstream = \"http://127.0.0.1:3000\", here or above the first [[route]]";
    section.refuse_if(missing, "upstream", says);
    let base = own.or_else(|| common.upstream.clone()).unwrap_or_default();
    let ca = section.take("upstream_ca", path);
    let is_https = base.scheme_str() == Some("https");
    let says = "`upstream_ca` is for https:// handlers: leave it out";
    section.refuse_if(ca.is_some() && !is_https, "upstream_ca", says);
    let says = "`upstream_h2c` is HTTP/2 without TLS: leave it out for an https:// handler, or write http://";
    section.refuse_if(h2c && is_https, "upstream_h2c", says);
    let ca = ca.or_else(|| common.ca.clone()).filter(|_| is_https);
    let upstream = Upstream { base, ca, h2c };
    if let Err(error) = upstream.validate() {
        let field = if upstream.ca.is_some() {
            "upstream_ca"
        } else {
            "upstream"
        };
        section.wrong(field, format!("`{field}`: {error}"));
    }
    upstream
}

/// Where the handler says what became of a run in doubt.
fn probe(section: &mut Section<'_>, in_doubt: InDoubt, completes: Completes) -> Option<Probe> {
    let probe = section.take("probe", route_values::probe);
    let fences = section.value("probe_fences", switch);
    let probes = in_doubt == InDoubt::Probe;
    let says = "`probe` is missing: in_doubt = \"probe\" asks the handler what became of a run: write probe = \"GET \
                /effects/{key}\"";
    section.refuse_if(probes && !section.given("probe"), "in_doubt", says);
    for field in ["probe", "probe_fences"] {
        let says = format!("`{field}` is for in_doubt = \"probe\": write that, or leave it out");
        section.refuse_if(!probes && section.given(field), field, says);
    }
    let says = "`in_doubt` = \"probe\" has nothing to ask where the handler completes by itself: what is not recorded did \
                not commit; leave it out";
    section.refuse_if(probes && completes == Completes::Handler, "in_doubt", says);
    probe.map(|(method, path)| Probe {
        method,
        path,
        fences,
        after: PROBE_AFTER,
    })
}

fn completes(section: &mut Section<'_>, common: &Common) -> Completes {
    let completes = section.value("completes", route_values::completes);
    let elsewhere = match (completes, &common.store) {
        (Completes::Handler, Some(StoreUrl::Embedded(_) | StoreUrl::Redis(_))) => true,
        (Completes::Handler, Some(StoreUrl::Postgres(_) | StoreUrl::Firestore(_)) | None)
        | (Completes::Run, _) => false,
    };
    let says = "`completes` = \"handler\" needs a postgres:// or firestore:// store in the handler's own database: only there \
                record and effect commit together";
    section.refuse_if(elsewhere, "completes", says);
    completes
}

/// A downstream is of use only with what it knows repeats by, and how long.
fn downstream(section: &mut Section<'_>) -> Option<Downstream> {
    let drops = section.take("downstream", route_values::downstream);
    let keys = section.take("downstream_keys", route_values::downstream_keys);
    let window = section.take("downstream_window", duration);
    for (name, is_given) in [
        ("downstream_keys", section.given("downstream_keys")),
        ("downstream_window", section.given("downstream_window")),
    ] {
        let says = format!("`{name}` is missing beside `downstream`");
        section.refuse_if(section.given("downstream") && !is_given, "downstream", says);
        let says = format!("`{name}` is for routes with downstream = \"deduplicates\"");
        section.refuse_if(!section.given("downstream") && is_given, name, says);
    }
    drops?;
    Some(Downstream {
        keys: keys?,
        window: window?,
    })
}
