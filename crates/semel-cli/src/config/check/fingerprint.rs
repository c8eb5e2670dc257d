//! What becomes of other work under a known key.

use super::{Judgement, Verdict};
use semel_gate::settings::{FingerprintRule, Route, Source, Webhook};

/// What a mismatch does, so that nobody learns it from a letter.
pub(super) fn mismatch(source: Source, route: &Route) -> (Verdict, String) {
    let differs = match (&route.fingerprint, source) {
        (FingerprintRule::Off, Source::Webhook(Webhook::Stripe)) => {
            let says = "what the event id names is not compared: Stripe vouches for it, and counts in each delivery of \
                        an event how many more are to come";
            return (Verdict::Note, says.into());
        }
        (FingerprintRule::Off, _) => {
            let says = "fingerprint = \"off\": other work under a known key is answered as a duplicate, and is lost";
            return (Verdict::Warning, says.into());
        }
        (FingerprintRule::Payload, _) => "payload",
        (
            FingerprintRule::Full | FingerprintRule::With(_),
            Source::Api | Source::CloudTasks | Source::Webhook(_),
        ) => "method, path, query or payload",
        (FingerprintRule::Full | FingerprintRule::With(_), Source::PubSub) => {
            "method, path, attribute or data"
        }
        (FingerprintRule::Full | FingerprintRule::With(_), Source::CloudEvents) => {
            "method, path, type, subject, dataschema or data"
        }
    };
    let becomes = match source {
        Source::Api => "is refused with 422",
        Source::CloudTasks | Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            "is a mismatch: it is kept as a letter and answered 200, or 409 while the first still runs or waits"
        }
    };
    let says = format!("a repeat of a key with another {differs} {becomes}");
    (Verdict::Note, says)
}

/// Attributes that are not compared without being named.
pub(super) fn unwrapped(source: Source, route: &Route) -> Judgement {
    let names_one = match &route.fingerprint {
        FingerprintRule::Full => false,
        FingerprintRule::With(names) => names.iter().any(|name| name.starts_with("attribute:")),
        FingerprintRule::Payload | FingerprintRule::Off => return None,
    };
    let says = "a push without its envelope (noWrapper) has its attributes among all other headers: they are compared \
                only if named, as fingerprint = [\"attribute:type\"]";
    Verdict::Note.when(source == Source::PubSub && !names_one, says)
}

/// A list that nothing looks at.
pub(super) fn ignores(route: &Route, sources: &[Source]) -> Judgement {
    let has_attributes = |source: &Source| match source {
        Source::PubSub | Source::CloudEvents => true,
        Source::Api | Source::CloudTasks | Source::Webhook(_) => false,
    };
    let compares = match &route.fingerprint {
        FingerprintRule::Full | FingerprintRule::With(_) => true,
        FingerprintRule::Payload | FingerprintRule::Off => false,
    };
    let is_used = compares && sources.iter().any(has_attributes);
    let says =
        "fingerprint_ignores lists attributes of Pub/Sub messages, and this route compares none";
    Verdict::Warning.when(!route.fingerprint_ignores.is_empty() && !is_used, says)
}

/// Whether the largest body can be read whatever is in it: that takes up to three times its size besides.
pub(super) fn reading(route: &Route, bodies_bytes_max: usize) -> Judgement {
    let one = route.body_bytes_max;
    let needed = one.saturating_mul(4);
    let says = format!(
        "body_bytes_max {one} × 4 > bodies_bytes_max {bodies_bytes_max}: JSON of that size with very many members could \
         not be read, and would always hear 429; raise bodies_bytes_max to {needed}, or lower body_bytes_max"
    );
    let holds = needed <= bodies_bytes_max || one > bodies_bytes_max;
    Verdict::Warning.when(!holds, says)
}
