//! One arrival of a delivery: what tells it from every other, and what its sender says of the message. A handler without
//! a record is told these, and they stand beside what lands.

use crate::delivery::Transport;
use crate::settings::Source;
use jiff::Timestamp;
use tokio::time::Instant;

/// One arrival of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) source: Source,
    /// The sender's own name for the message, if it has one.
    pub(crate) message_id: Option<String>,
    /// When the sender published it; when it arrived, if the sender does not say.
    pub(crate) published_at: Timestamp,
    pub(crate) received_at: Timestamp,
    /// The same moment by the clock that nobody sets.
    pub(crate) since: Instant,
    /// Random: no other arrival has it.
    pub(crate) delivery_id: String,
    /// Which attempt of its sender it is, from 1, if the sender counts.
    pub(crate) attempt: Option<u64>,
}

// === impl Arrival ===

impl Arrival {
    /// One that is here now.
    #[allow(
        clippy::disallowed_methods,
        reason = "an arrival is told from others by its time and by chance"
    )]
    pub(crate) fn now(source: Source, transport: &Transport) -> Self {
        let received_at = microseconds(Timestamp::now());
        let id = transport
            .message_id
            .as_ref()
            .or(transport.task_name.as_ref());
        Self {
            source,
            message_id: id.cloned(),
            published_at: transport.published_at.unwrap_or(received_at),
            received_at,
            since: Instant::now(),
            delivery_id: format!("{:032x}", rand::random::<u128>()),
            attempt: transport.attempt(),
        }
    }
}

/// What a sender says of when it published a message; a time that databases do not know counts as unsaid.
pub(crate) fn published_at(text: &str) -> Option<Timestamp> {
    const YEAR_1: i64 = -62_135_596_800;
    let said = text.parse::<Timestamp>().ok()?;
    (said.as_second() >= YEAR_1).then(|| microseconds(said))
}

/// As precise as databases are.
fn microseconds(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publishers_time_has_the_precision_of_databases() {
        let written = |text| published_at(text).map(semel_landing::written);
        assert_eq!(
            written("2026-11-17T23:10:11.123456789Z").as_deref(),
            Some("2026-11-17T23:10:11.123456Z")
        );
        assert_eq!(
            written("2026-11-17T23:10:11+01:00").as_deref(),
            Some("2026-11-17T22:10:11.000000Z")
        );
        for unsaid in ["", "yesterday", "-000001-01-01T00:00:00Z", "2026-11-17"] {
            assert_eq!(written(unsaid), None, "{unsaid}");
        }
    }
}
