//! Routes without records: which settings make no sense there, and what they leave unsaid.

use super::route_values;
use super::section::Section;
use semel_gate::settings::{OnExhausted, OnInvalid, RecordKeeping};

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

/// Without a store there are no letters: an invalid delivery is refused.
pub(super) fn on_invalid(section: &mut Section<'_>, record: RecordKeeping) -> OnInvalid {
    let given = section.given("on_invalid");
    let on_invalid = section.value("on_invalid", route_values::on_invalid);
    match record {
        RecordKeeping::Store => on_invalid,
        RecordKeeping::None => {
            let says = "`on_invalid` = \"letter\": no letters are kept with record = \"none\"; write \"reject\", or leave \
                        it out";
            section.refuse_if(given && on_invalid == OnInvalid::Letter, "on_invalid", says);
            OnInvalid::Reject
        }
    }
}

/// Nor is a sender's last attempt kept.
pub(super) fn on_exhausted(section: &mut Section<'_>, record: RecordKeeping) -> OnExhausted {
    let on_exhausted = section.value("on_exhausted", route_values::on_exhausted);
    match record {
        RecordKeeping::Store => on_exhausted,
        RecordKeeping::None => OnExhausted::Nack,
    }
}
