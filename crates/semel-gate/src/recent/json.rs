//! A delivery as the admin address tells it.

use super::RecentDelivery;
use crate::label::Digests;
use serde_json::{Map, Value, json};
use std::time::Duration;

// === impl RecentDelivery ===

impl RecentDelivery {
    /// As JSON; members without a value are `null`.
    pub(crate) fn json(&self) -> Value {
        json!({
            "at": format!("{:.6}", self.at),
            "route": &*self.route,
            "source": self.source,
            "key": self.key.map(|key| key.to_string()),
            "about": self.about(),
            "outcome": self.outcome,
            "duplicate": self.is_duplicate,
            "status": self.status,
            "fence": self.fence.map(|fence| fence.0),
            "attempt": self.attempt,
            "elapsed_ms": millis(self.elapsed),
            "upstream_ms": self.handler_took.map(millis),
            "id": self.id,
            "from": self.from,
            "sender_attempt": self.sender_attempt,
            "trace_id": format!("{:032x}", self.trace_id),
            "letter": self.letter.map(|letter| letter.to_string()),
            "digests": digests(&self.digests),
            "why": self.why,
            "end": self.is_end,
        })
    }
}

/// Each part with its digest; parts that are not compared are left out.
pub(crate) fn digests(digests: &Digests) -> Value {
    let all = Digests::WORDS.into_iter().zip(digests.all());
    let members = all.filter_map(|(word, digest)| Some((word.into(), digest?.to_string().into())));
    Value::Object(members.collect::<Map<_, _>>())
}

/// Rounded to microseconds, so that lines stay short.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
