//! Naming: the key and the fingerprint of a delivery, from one reading of its payload, and the terms on
//! which it runs. Pure functions over `http` types and our own, for any front end.

use crate::delivery::{Delivery, Invalid, Transport};
use crate::fingerprint::{Compared, compared, digests, fingerprint};
use crate::label::Description;
use crate::settings::{Caller, Route, Source};
use crate::source;
use crate::verify::Claims;
use bytes::Bytes;
use http::Request;
use semel::key::{Delivered, KeyError, KeyRule, Part, Scope};
use semel::payload::NoRoom;
use semel::work::{Duplicates, Work};
use semel::{Fingerprint, Key, Payload};
use std::collections::BTreeMap;
use std::time::Duration;

/// How much later than the handler's own timeout the library gives up on a run: the effect ends by
/// itself before.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(2);

/// Which work a delivery is, and what a repeat of it is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Which deliveries are the same piece of work.
    pub key: Key,
    /// Whether a repeat is an honest one.
    pub fingerprint: Fingerprint,
    /// Which version of the work it is, where the route says where that stands; else 0.
    pub version: i64,
}

/// A request, and which work it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRequest {
    /// Who sent it.
    pub source: Source,
    /// The sender's own names for it.
    pub transport: Transport,
    /// How long its payload is.
    pub payload_bytes: usize,
    /// The payload, where it lands.
    pub payload: Option<Bytes>,
    /// The context attributes of a CloudEvent, by their plain names.
    pub event: BTreeMap<String, String>,
    /// Its key and fingerprint, or why it has none.
    pub identity: Result<Identity, NamingError>,
    /// What it says of its work, for people; only with an identity.
    pub description: Option<Description>,
}

/// Why a delivery has no key and fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamingError {
    /// It can have none.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Its payload cannot be read now.
    #[error("too much is in hand to read it; a retry is safe")]
    NoRoom,
}

// === impl NamedRequest ===

impl NamedRequest {
    /// Reads a request to this route: who sent it, what it means, which work it is. `reserve` is as in [`name`].
    #[must_use]
    pub fn read(
        namespace: &str,
        route: &Route,
        request: &Request<Bytes>,
        reserve: &mut dyn FnMut(usize) -> bool,
    ) -> Self {
        let source = source::sender(&route.sources, request);
        let read = if route.sources.contains(&source) {
            source::read(source, request)
        } else {
            Err(source::unknown(&route.sources))
        };
        match read {
            Ok(delivery) => {
                let named = name(namespace, route, request, &delivery, reserve);
                let (identity, description) = match named {
                    Ok((identity, description)) => (Ok(identity), Some(description)),
                    Err(error) => (Err(error), None),
                };
                Self {
                    description,
                    ..Self::of(route, delivery, identity)
                }
            }
            Err(invalid) => Self {
                source,
                transport: Transport::default(),
                payload_bytes: request.body().len(),
                payload: route.land.as_ref().map(|_| request.body().clone()),
                event: BTreeMap::new(),
                identity: Err(invalid.into()),
                description: None,
            },
        }
    }

    /// A delivery that was read, and which work it is.
    #[must_use]
    pub fn of(route: &Route, delivery: Delivery, identity: Result<Identity, NamingError>) -> Self {
        Self {
            source: delivery.source,
            transport: delivery.transport,
            payload_bytes: delivery.payload.len(),
            payload: route.land.as_ref().map(|_| delivery.payload),
            event: delivery.ce,
            identity,
            description: None,
        }
    }
}

/// The key and fingerprint of a delivery, and what it says of its work. `reserve` is asked for the bytes that reading the payload takes,
/// piece by piece, and says whether there is room for them.
///
/// # Errors
/// When a part of the key is missing or malformed, or there is no room to read the payload now.
pub fn name(
    namespace: &str,
    route: &Route,
    request: &Request<Bytes>,
    delivery: &Delivery,
    reserve: &mut dyn FnMut(usize) -> bool,
) -> Result<(Identity, Description), NamingError> {
    let rule = &route.terms(delivery.source).key;
    let payload = read_payload(route, rule, request, delivery, reserve)?;
    require(route, &payload)?;
    let scope = Scope {
        namespace: namespace.into(),
        route: route.name.clone(),
        method: (delivery.source == Source::Api).then(|| request.method().to_string()),
        caller: caller(route, request, delivery)?,
    };
    let mut delivered = Delivered::read(&payload);
    for part in rule.parts() {
        if let Part::Named(name) = part
            && let Some(value) = delivery.value(request, name)?
        {
            delivered = delivered.with(name, value);
        }
    }
    let fields = rule.fields(&delivered)?;
    rule.refuse_empty(&fields)?;
    let identity = Identity {
        key: Key::of(&scope, &fields)?,
        fingerprint: fingerprint(route, request, delivery, &payload)?,
        version: version(route, &payload)?,
    };
    let digests = digests(route, request, delivery, &payload);
    let description = Description::of(route, delivery, rule, &fields, digests);
    Ok((identity, description))
}

/// Reads the payload once for key, `require` and fingerprint, unless none of them looks into it.
fn read_payload<'a>(
    route: &Route,
    rule: &KeyRule,
    request: &Request<Bytes>,
    delivery: &'a Delivery,
    reserve: &mut dyn FnMut(usize) -> bool,
) -> Result<Payload<'a>, NamingError> {
    let pointers = || {
        let required = route.require.iter().map(String::as_str);
        rule.pointers()
            .chain(required.filter(|part| part.starts_with('/')))
            .chain(version_at(route))
    };
    let is_read = match compared(route, request, delivery) {
        Compared::AsValue => true,
        Compared::AsBytes | Compared::NotAtAll => pointers().next().is_some(),
    };
    if !is_read {
        return Ok(Payload::unread(&delivery.payload));
    }
    let read = Payload::read_within(&delivery.payload, pointers(), reserve);
    read.map_err(|NoRoom| NamingError::NoRoom)
}

/// Where the version of the work stands.
fn version_at(route: &Route) -> Option<&str> {
    route.land.as_ref()?.version.as_deref()
}

/// Which version of the work it is. The least number of all has no opposite, by which databases put the latest first.
fn version(route: &Route, payload: &Payload<'_>) -> Result<i64, NamingError> {
    let Some(pointer) = version_at(route) else {
        return Ok(0);
    };
    match payload.written(pointer)?.as_deref() {
        None | Some("null") => Ok(0),
        Some(text) => match text.parse() {
            Ok(version) if version != i64::MIN => Ok(version),
            Ok(_) | Err(_) => Err(NamingError::Invalid(Invalid::new(
                "version-malformed",
                format!(
                    "{pointer} of the payload is the event's version on this route, and not a whole number of 64 bits: send one, or \
                     none; a retry of the same delivery fails again"
                ),
            ))),
        },
    }
}

/// The work that a delivery asks for, on the terms of its route.
pub fn work(route: &Route, source: Source, identity: Identity) -> Work {
    let terms = route.terms(source);
    let work = Work::new(identity.key, identity.fingerprint)
        .lease(terms.lease)
        .timeout(terms.timeout + TIMEOUT_MARGIN)
        .retention(terms.retention)
        .unfinished_retention(terms.unfinished_retention(source))
        .in_doubt(route.in_doubt)
        .max_attempts(route.max_attempts)
        .max_in_doubt(terms.max_in_doubt)
        .doubt_age(terms.doubt_age)
        .park_after(terms.park_after)
        .backoff(route.backoff)
        .duplicates(Duplicates::Wait(terms.wait))
        .completes(route.completes);
    match &route.probe {
        Some(probe) => work.margin(probe.after.saturating_sub(TIMEOUT_MARGIN)),
        None => work,
    }
}

/// One caller must never receive another's answer, so an API request without one is refused.
fn caller(
    route: &Route,
    request: &Request<Bytes>,
    delivery: &Delivery,
) -> Result<Option<String>, Invalid> {
    if delivery.source != Source::Api {
        return Ok(None);
    }
    match &route.caller {
        Some(Caller::Shared) => Ok(Some("shared".into())),
        Some(Caller::Header(name)) => {
            let value = delivery.value(request, &format!("header:{name}"))?;
            match value {
                Some(value) if !value.is_empty() => Ok(Some(format!("header:{value}"))),
                Some(_) | None => Err(Invalid::new(
                    "caller-missing",
                    format!(
                        "the header {name} is missing: this route tells its callers apart by it; a retry without it fails again"
                    ),
                )),
            }
        }
        Some(Caller::Claim(claim)) => {
            let claims = request.extensions().get::<Claims>();
            match claims.and_then(|claims| claims.holder(claim)) {
                Some(holder) => Ok(Some(format!("jwt:{claim}:{holder}"))),
                None => Err(Invalid::new(
                    "caller-missing",
                    format!(
                        "the token does not say {claim}: this route tells its callers apart by it; a retry without it fails again"
                    ),
                )),
            }
        }
        None => Err(Invalid::new(
            "source-unknown",
            "this request has none of the headers of Cloud Tasks, Pub/Sub or CloudEvents, and the route names no \
             `caller`, so it takes no requests of API clients; a retry of the same request fails again",
        )),
    }
}

/// Shallow validation: what the route requires of a payload.
fn require(route: &Route, payload: &Payload<'_>) -> Result<(), Invalid> {
    for part in &route.require {
        let detail = match payload.has(part) {
            Ok(true) => continue,
            Ok(false) if part.starts_with('/') && !part.ends_with("?null") => format!(
                "the payload has no {part}, which this route requires: send it, or write {part}?null to accept null, [] and {{}}; \
                 a retry of the same delivery fails again"
            ),
            Ok(false) => format!(
                "the payload has no {part}, which this route requires: send it; a retry of the same delivery fails again"
            ),
            Err(error) => error.to_string(),
        };
        return Err(Invalid::new("required-part-missing", detail));
    }
    Ok(())
}

// === impl NamingError ===

impl From<KeyError> for NamingError {
    fn from(error: KeyError) -> Self {
        Self::Invalid(error.into())
    }
}

impl From<KeyError> for Invalid {
    fn from(error: KeyError) -> Self {
        let code = match &error {
            KeyError::MissingPart { .. } | KeyError::NullPart { .. } => "key-part-missing",
            KeyError::WideInteger { .. }
            | KeyError::NumberOverflow { .. }
            | KeyError::InexactNumber { .. }
            | KeyError::DuplicateMember { .. }
            | KeyError::LoneSurrogate
            | KeyError::TooDeep
            | KeyError::TooManyMembers
            | KeyError::TooLong { .. }
            | KeyError::Empty { .. }
            | KeyError::BadPart { .. }
            | KeyError::BadKey { .. } => "key-part-malformed",
        };
        Self::new(code, error.to_string())
    }
}
