//! Naming: the key and the fingerprint of a delivery, and the terms on which it runs.

use crate::delivery::{Arrived, Delivery, Invalid};
use crate::gate::{Gate, Lane};
use crate::settings::{Caller, FingerprintRule, Route, Source};
use semel::key::{Delivered, KeyError, Part, Scope};
use semel::work::{Duplicates, Work};
use semel::{Fingerprint, Key};
use std::time::Duration;

/// How much later than the handler's own timeout the library gives up on a run: the effect ends by
/// itself before.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(2);

/// A delivery with its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
}

/// The key and fingerprint of a delivery.
pub(crate) fn name(
    gate: &Gate,
    route: &Route,
    arrived: &Arrived,
    delivery: &Delivery,
) -> Result<Named, Invalid> {
    require(route, delivery)?;
    let scope = Scope {
        namespace: gate.settings.namespace.clone(),
        route: route.name.clone(),
        method: (delivery.source == Source::Api).then(|| arrived.method.to_string()),
        caller: caller(route, arrived, delivery)?,
    };
    let rule = &route.terms(delivery.source).key;
    let mut delivered = Delivered::payload(&delivery.payload);
    for part in rule.parts() {
        if let Part::Named(name) = part
            && let Some(value) = delivery.named(arrived, name)?
        {
            delivered = delivered.with(name, value);
        }
    }
    Ok(Named {
        key: rule.key(&scope, &delivered)?,
        fingerprint: fingerprint(route, arrived, delivery)?,
    })
}

/// The terms of the route for work of this name.
pub(crate) fn work(lane: &Lane, source: Source, named: Named) -> Work {
    let (route, terms) = (&lane.route, lane.route.terms(source));
    Work::new(named.key, named.fingerprint)
        .lease(terms.lease)
        .timeout(terms.timeout + TIMEOUT_MARGIN)
        .retention(terms.retention)
        .in_doubt(route.in_doubt)
        .max_attempts(route.max_attempts)
        .backoff(route.backoff)
        .duplicates(Duplicates::Wait(terms.wait))
        .completes(route.completes)
        .slots(&lane.slots)
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
fn require(route: &Route, delivery: &Delivery) -> Result<(), Invalid> {
    if route.require.is_empty() {
        return Ok(());
    }
    let payload: Option<serde_json::Value> = serde_json::from_slice(&delivery.payload).ok();
    let missing = |pointer: &&String| {
        payload
            .as_ref()
            .and_then(|json| json.pointer(pointer))
            .is_none()
    };
    match route.require.iter().find(missing) {
        None => Ok(()),
        Some(pointer) => Err(Invalid::new(
            "required-part-missing",
            format!(
                "the payload has no {pointer}, which this route requires: send it; a retry of the same delivery fails again"
            ),
        )),
    }
}

fn fingerprint(
    route: &Route,
    arrived: &Arrived,
    delivery: &Delivery,
) -> Result<Fingerprint, Invalid> {
    let beside = match &route.fingerprint {
        FingerprintRule::Off => return Ok(Fingerprint::off()),
        FingerprintRule::Payload => &[],
        FingerprintRule::With(names) => names.as_slice(),
    };
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut push = |bytes: &[u8]| {
        pieces.push((bytes.len() as u64).to_be_bytes().to_vec());
        pieces.push(bytes.to_vec());
    };
    if delivery.source == Source::Api {
        push(arrived.method.as_str().as_bytes());
        push(
            arrived
                .uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .as_bytes(),
        );
    }
    for name in beside {
        // Absent and empty differ.
        match delivery.named(arrived, name)? {
            Some(value) => push(format!("+{value}").as_bytes()),
            None => push(b"-"),
        }
    }
    let pieces = pieces
        .iter()
        .map(Vec::as_slice)
        .chain([delivery.payload.as_ref()]);
    Ok(Fingerprint::of_all(pieces))
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
