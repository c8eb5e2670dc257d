//! Routes without records: which settings make no sense there, and what they leave unsaid.

use super::route_values;
use super::section::Section;
use super::values::switch;
use semel_gate::settings::{OnExhausted, OnInvalid, RecordKeeping, Source};

/// Settings of what a record remembers, and of letters.
const OF_RECORDS: [&str; 17] = [
    "lease",
    "retention",
    "wait",
    "in_doubt",
    "probe",
    "probe_fences",
    "completes",
    "final",
    "undone",
    "max_attempts",
    "max_in_doubt",
    "park_after",
    "backoff",
    "sender_attempts",
    "on_exhausted",
    "letters_max",
    "letters_bytes_max",
];

/// Settings of routes that keep none.
const OF_STATELESS: [&str; 2] = ["platform_timeout", "dead_letter_topic"];

/// Refuses by name what would have no effect.
pub(super) fn judge(section: &mut Section<'_>, record: RecordKeeping) {
    let (idle, why): (&[&str], _) = match record {
        RecordKeeping::None => (
            &OF_RECORDS,
            "has no effect with record = \"none\", which remembers nothing: leave it out, or keep records",
        ),
        RecordKeeping::Store => (&OF_STATELESS, "is for record = \"none\": leave it out"),
    };
    for name in idle {
        section.refuse_if(section.given(name), name, format!("`{name}` {why}"));
    }
}

/// Declares that senders keep what they give up. Only Pub/Sub can: the others drop it.
pub(super) fn dead_letter_topic(section: &mut Section<'_>, sources: &[Source]) -> bool {
    let declared = section.value("dead_letter_topic", switch);
    let drops = |source: &&Source| source.is_broker() && **source != Source::PubSub;
    if let Some(source) = sources.iter().find(drops).filter(|_| declared) {
        let says = format!(
            "`dead_letter_topic`: {source} has none and drops what it gives up; keep records, which keep letters, or take \
             pubsub alone (source = \"pubsub\")"
        );
        section.wrong("dead_letter_topic", says);
    }
    declared
}

/// What becomes of an invalid delivery: it lands where deliveries do, and without a store there are no letters.
pub(super) fn on_invalid(
    section: &mut Section<'_>,
    record: RecordKeeping,
    does_land: bool,
) -> OnInvalid {
    let given = section.take("on_invalid", route_values::on_invalid);
    let letters = record == RecordKeeping::Store;
    let says = "`on_invalid` = \"letter\": no letters are kept with record = \"none\"; write \"reject\", or leave it out";
    section.refuse_if(
        given == Some(OnInvalid::Letter) && !letters,
        "on_invalid",
        says,
    );
    let says = "`on_invalid` = \"land\" is for routes that `land`";
    section.refuse_if(
        given == Some(OnInvalid::Land) && !does_land,
        "on_invalid",
        says,
    );
    given.unwrap_or(match (does_land, letters) {
        (true, _) => OnInvalid::Land,
        (false, true) => OnInvalid::Letter,
        (false, false) => OnInvalid::Reject,
    })
}

/// Nor is a sender's last attempt kept.
pub(super) fn on_exhausted(section: &mut Section<'_>, record: RecordKeeping) -> OnExhausted {
    let on_exhausted = section.value("on_exhausted", route_values::on_exhausted);
    match record {
        RecordKeeping::Store => on_exhausted,
        RecordKeeping::None => OnExhausted::Nack,
    }
}
