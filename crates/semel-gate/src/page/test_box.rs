//! The test box of a route: paste a request and see its key, its fingerprint, and what a delivery would meet now. The
//! store is only looked at: nothing is claimed, and the handler is not called.

use super::Screen;
use super::act::{Fields, field};
use super::format::span;
use super::routes;
use crate::gate::{Gate, RouteMatch, RouteState};
use crate::label::Digests;
use crate::naming::{Identity, NamedRequest};
use crate::normalize::normalize;
use crate::operate::Refused;
use crate::refusal;
use crate::reply::problem::Problem;
use axum::extract::{Form, Path};
use axum::response::Response;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request};
use semel::Outcome;
use semel::protocol::{Answer, Claim, Claimed, Operation, decide};
use semel::store::StoreExt;
use semel_ui::{Markup, Tone, copyable, facts, html, note, state};
use std::num::NonZeroU32;

/// What reading a pasted payload may take.
const READ_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What was pasted, and what came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tried {
    method: String,
    path: String,
    headers: String,
    body: String,
    found: Option<Markup>,
}

pub(super) async fn try_out(
    screen: Screen,
    Path(name): Path<String>,
    Form(fields): Fields,
) -> Response {
    let main = async {
        let (gate, route) = routes::found(&screen, &name)?;
        let mut tried = Tried::of(&fields);
        let request = tried.request();
        let request = request.and_then(|request| received(gate, route, request));
        tried.found = Some(match request {
            Ok(request) => named(&screen, &gate.settings.namespace, route, &request).await?,
            Err(why) => note(Tone::Failed, &html! { (why) }),
        });
        Ok::<_, Refused>(html! {
            (routes::head(&screen, gate, route))
            (form(&screen, route, &tried))
            (routes::about(gate, route))
        })
    };
    screen.answer(&name, "routes", main.await)
}

/// The box, with what was found.
pub(super) fn form(screen: &Screen, route: &RouteState, tried: &Tried) -> Markup {
    let action = screen.to(&format!("routes/{}", routes::segment(&route.settings.name)));
    let or = |text: &str, other: &str| if text.is_empty() { other } else { text }.to_owned();
    let path = or(&tried.path, &route.settings.path.to_string());
    let headers = or(&tried.headers, "content-type: application/json");
    html! {
        h2 { "Try a request" }
        @if let Some(found) = &tried.found { (found) }
        @if screen.visitor.may_act() {
            form.card method="post" action=(action) {
                p { "Nothing is claimed, and the handler is not called." }
                (screen.visitor.csrf_field())
                div.bar {
                    label.field { span { "Method" } input name="method" value=(or(&tried.method, "POST")) required; }
                    label.field { span { "Path" } input name="path" value=(path) required; }
                }
                label.field { span { "Headers, one on a line" } textarea name="headers" { (headers) } }
                label.field { span { "Body" } textarea name="body" { (tried.body) } }
                div.bar { button.act { "See its key and what it would meet" } }
            }
        } @else {
            p.may-not { "You may look, not act: the test box is for those who may act." }
        }
    }
}

/// The request as the gate takes it in, if it takes it in for this route.
fn received(
    gate: &Gate,
    route: &RouteState,
    request: Request<Bytes>,
) -> Result<Request<Bytes>, String> {
    let (mut parts, body) = request.into_parts();
    let host = || HeaderValue::from_static("localhost");
    parts.headers.entry(HOST).or_insert_with(host);
    let refused = |problem: &Problem| Err(format!("The gate refuses it: {}", problem.says()));
    let path = match normalize(&mut parts, &gate.header_rules) {
        Ok(Some(path)) => path,
        Ok(None) => return refused(&refusal::UNKNOWN_PATH),
        Err(why) => return refused(&refusal::rejected(&why)),
    };
    match gate.find_route(&parts.method, &path) {
        RouteMatch::Protected(it) if it.name == route.name => Ok(Request::from_parts(parts, body)),
        RouteMatch::Protected(it) => Err(format!("It belongs to the route {}.", it.name)),
        RouteMatch::Pass(_) => Err("It is forwarded as it is (`pass`): it has no key.".into()),
        RouteMatch::OtherMethod => refused(&refusal::OTHER_METHOD),
        RouteMatch::Unknown => refused(&refusal::UNKNOWN_PATH),
        RouteMatch::Ambiguous(why) => refused(&refusal::ambiguous_path(why)),
    }
}

async fn named(
    screen: &Screen,
    namespace: &str,
    route: &RouteState,
    request: &Request<Bytes>,
) -> Result<Markup, Refused> {
    let mut left = READ_BYTES_MAX;
    let mut reserve = |bytes: usize| {
        left = left.saturating_sub(bytes);
        left > 0
    };
    let named = NamedRequest::read(namespace, &route.settings, request, &mut reserve);
    let identity = match &named.identity {
        Ok(identity) => *identity,
        Err(error) => {
            return Ok(note(
                Tone::Failed,
                &html! {
                    p { b { "It has no key: " } (error) }
                    p { "Delivered by " (named.source) ", as its headers say." }
                },
            ));
        }
    };
    let decision = decision(screen, route, &named, identity).await?;
    let description = named.description.unwrap_or_default();
    let rows = [
        ("delivered by", html! { (named.source) }),
        (
            "parts",
            html! {
                @for (name, value) in &description.parts { div { (name) " " code { (value) } } }
            },
        ),
        ("compared by", digests(&description.digests)),
    ];
    let key = identity.key.to_string();
    Ok(html! {
        (note(Tone::Ran, &decision))
        div.card {
            (facts(&rows))
            dl {
                dt { "key" } dd { (copyable(&key)) " " a href=(screen.to(&format!("records/{key}"))) { "record" } }
                dt { "fingerprint" } dd { (copyable(&identity.fingerprint.to_string())) }
            }
        }
    })
}

fn digests(digests: &Digests) -> Markup {
    let all = Digests::WORDS.into_iter().zip(digests.all());
    html! {
        @for (word, digest) in all {
            @if let Some(digest) = digest { div { (word) " " code { (digest) } } }
        }
    }
}

/// What a delivery would meet now, as the rules decide it from what the store has.
async fn decision(
    screen: &Screen,
    route: &RouteState,
    named: &NamedRequest,
    identity: Identity,
) -> Result<Markup, Refused> {
    if !route.settings.keeps_records() {
        return Ok(html! { "It would run: this route keeps no records." });
    }
    let record = screen.state.store().look(&identity.key).await?;
    let terms = route.settings.terms(named.source);
    let claim = Claim {
        lease: terms.lease,
        retention: terms.retention,
        in_doubt: route.settings.in_doubt,
        max_attempts: NonZeroU32::new(route.settings.max_attempts),
        max_in_doubt: route.doubt_limit(named.source),
        park_after: terms.park_after,
        ..Claim::new(identity.key, identity.fingerprint)
    };
    let decided = decide(
        record.as_ref(),
        None,
        &Operation::Claim(claim),
        screen.now(),
    );
    let Answer::Claimed(claimed) = decided.answer else {
        return Ok(html! { "What it would meet cannot be said." });
    };
    Ok(match claimed {
        Claimed::Granted(lease) if lease.attempt > 1 => html! {
            (state(Tone::Ran, "it would run")) " again: run " (lease.attempt) " of this work."
        },
        Claimed::Granted(_) => html! { (state(Tone::Ran, "it would run")) ": the key is new." },
        Claimed::Replayed(settled) => html! {
            (state(Tone::Replayed, "it would run nothing")) ": "
            @match Outcome::decode(&settled.result) {
                Ok(outcome) => { "it would hear the recorded " (outcome.status) },
                Err(_) => { "its work is settled" },
            }
            ", which is remembered for " (span(settled.keep)) " more."
        },
        Claimed::Busy { retry_after } => html! {
            (state(Tone::Busy, "it would wait")) ": the same work is running, for " (span(retry_after)) " more at the most, unless its \
            lease is renewed."
        },
        Claimed::NotYet { retry_after } => html! {
            (state(Tone::Waiting, "it would come too soon")) ": the next run is due in " (span(retry_after)) "."
        },
        Claimed::Parked => html! {
            (state(Tone::Parked, "it would run nothing")) ": the work is parked, or would be now. A person decides."
        },
        Claimed::Mismatched => html! {
            (state(Tone::Doubt, "it would be a mismatch")) ": the key is known with other work."
        },
    })
}

// === impl Tried ===

impl Tried {
    fn of(fields: &[(String, String)]) -> Self {
        let text = |name: &str| field(fields, name).to_owned();
        Self {
            method: text("method"),
            path: text("path"),
            headers: text("headers"),
            body: text("body"),
            found: None,
        }
    }

    /// The request that was pasted, or what is wrong with it.
    fn request(&self) -> Result<Request<Bytes>, String> {
        let mut request = Request::builder()
            .method(self.method.trim())
            .uri(self.path.trim());
        for line in self.headers.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| format!("{line:?} is not a header: write name: value"))?;
            request = request.header(name.trim(), value.trim());
        }
        // A browser ends the lines of a form in its own way.
        let body = self.body.replace("\r\n", "\n");
        let request = request.body(Bytes::from(body));
        request.map_err(|error| format!("this is not a request: {error}"))
    }
}
