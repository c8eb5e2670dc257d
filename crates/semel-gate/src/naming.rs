//! Naming: the key and the fingerprint of a delivery, from one reading of its payload, and the terms on
//! which it runs.

use crate::bodies::Bodies;
use crate::delivery::{Arrived, Delivery, Invalid};
use crate::fingerprint::{Compared, compared, fingerprint};
use crate::gate::{Gate, RouteState};
use crate::settings::{Caller, Route, Source};
use semel::key::{Delivered, KeyError, KeyRule, Part, Scope};
use semel::payload::NoRoom;
use semel::work::{Duplicates, Work};
use semel::{Fingerprint, Key, Payload};
use std::time::Duration;

/// How much later than the handler's own timeout the library gives up on a run: the effect ends by
/// itself before.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(2);

/// A delivery with its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
}

/// Why a delivery has no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamingError {
    /// It can have none.
    Invalid(Invalid),
    /// Its payload cannot be read now: too much is in hand.
    NoRoom,
}

/// The key and fingerprint of a delivery.
pub(crate) fn name(
    gate: &Gate,
    route: &Route,
    arrived: &Arrived,
    delivery: &Delivery,
) -> Result<Identity, NamingError> {
    let rule = &route.terms(delivery.source).key;
    let payload = read(&gate.bodies, route, rule, arrived, delivery)?;
    require(route, &payload)?;
    let scope = Scope {
        namespace: gate.settings.namespace.clone(),
        route: route.name.clone(),
        method: (delivery.source == Source::Api).then(|| arrived.method.to_string()),
        caller: caller(route, arrived, delivery)?,
    };
    let mut delivered = Delivered::read(&payload);
    for part in rule.parts() {
        if let Part::Named(name) = part
            && let Some(value) = delivery.named(arrived, name)?
        {
            delivered = delivered.with(name, value);
        }
    }
    let fields = rule.fields(&delivered)?;
    rule.refuse_empty(&fields)?;
    Ok(Identity {
        key: Key::of(&scope, &fields)?,
        fingerprint: fingerprint(route, arrived, delivery, &payload)?,
    })
}

/// Reads the payload once for key, `require` and fingerprint, unless none of them looks into it. What that
/// takes counts as a body in hand while it lasts.
fn read<'a>(
    bodies: &Bodies,
    route: &Route,
    rule: &KeyRule,
    arrived: &Arrived,
    delivery: &'a Delivery,
) -> Result<Payload<'a>, NoRoom> {
    let pointers = || {
        rule.pointers()
            .chain(route.require.iter().map(String::as_str))
    };
    let is_read = match compared(route, arrived, delivery) {
        Compared::AsValue => true,
        Compared::AsBytes | Compared::NotAtAll => pointers().next().is_some(),
    };
    if !is_read {
        return Ok(Payload::unread(&delivery.payload));
    }
    let mut share = bodies.reading();
    Payload::read_within(&delivery.payload, pointers(), &mut |bytes| {
        share.reserve(bytes).is_ok()
    })
}

/// The terms of the route for work of this name.
pub(crate) fn work(route_state: &RouteState, source: Source, named: Identity) -> Work {
    let (route, terms) = (&route_state.route, route_state.route.terms(source));
    Work::new(named.key, named.fingerprint)
        .lease(terms.lease)
        .timeout(terms.timeout + TIMEOUT_MARGIN)
        .retention(terms.retention)
        .in_doubt(route.in_doubt)
        .max_attempts(route.max_attempts)
        .backoff(route.backoff)
        .duplicates(Duplicates::Wait(terms.wait))
        .completes(route.completes)
        .slots(&route_state.slots)
}

/// One caller must never receive another's answer, so an API request without one is refused.
fn caller(
    route: &Route,
    arrived: &Arrived,
    delivery: &Delivery,
) -> Result<Option<String>, Invalid> {
    if delivery.source != Source::Api {
        return Ok(None);
    }
    match &route.caller {
        Some(Caller::Shared) => Ok(Some("shared".into())),
        Some(Caller::Header(name)) => {
            let value = delivery.named(arrived, &format!("header:{name}"))?;
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
        None => Err(Invalid::new(
            "source-unknown",
            "this request has none of the headers of Cloud Tasks, Pub/Sub or CloudEvents, and the route names no \
             `caller`, so it takes no requests of API clients; a retry of the same request fails again",
        )),
    }
}

/// Shallow validation: what the route requires of a payload.
fn require(route: &Route, payload: &Payload<'_>) -> Result<(), Invalid> {
    for pointer in &route.require {
        let detail = match payload.has(pointer) {
            Ok(true) => continue,
            Ok(false) => format!(
                "the payload has no {pointer}, which this route requires: send it; a retry of the same delivery fails again"
            ),
            Err(error) => error.to_string(),
        };
        return Err(Invalid::new("required-part-missing", detail));
    }
    Ok(())
}

// === impl NamingError ===

impl From<Invalid> for NamingError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<KeyError> for NamingError {
    fn from(error: KeyError) -> Self {
        Self::Invalid(error.into())
    }
}

impl From<NoRoom> for NamingError {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl From<KeyError> for Invalid {
    fn from(error: KeyError) -> Self {
        let code = match &error {
            KeyError::MissingPart { .. } => "key-part-missing",
            KeyError::WideInteger { .. }
            | KeyError::NumberOverflow { .. }
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
