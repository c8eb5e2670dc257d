//! Spans and moments: only those that JSON can tell are taken, over gRPC as over REST.

use prost::Message;
use prost_types::{Duration, Timestamp};
use tonic::Status;

/// About ten thousand years.
const SPAN_SECONDS_MAX: i64 = 315_576_000_000;

/// The first second of the year 1, and the last of the year 9999.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

const NANOS_MAX: i32 = 999_999_999;

/// What cannot be decoded is left for the decoder to say so.
pub(super) fn check_span(field: &str, bytes: &[u8]) -> Result<(), Status> {
    let Ok(Duration { seconds, nanos }) = Duration::decode(bytes) else {
        return Ok(());
    };
    let in_range = (-SPAN_SECONDS_MAX..=SPAN_SECONDS_MAX).contains(&seconds)
        && (-NANOS_MAX..=NANOS_MAX).contains(&nanos);
    let one_sign = seconds == 0 || nanos == 0 || (seconds < 0) == (nanos < 0);
    match in_range && one_sign {
        true => Ok(()),
        false => Err(refused(
            field,
            seconds,
            nanos,
            "a duration is at most 315576000000 s, and its nanos are of the same sign",
        )),
    }
}

pub(super) fn check_moment(field: &str, bytes: &[u8]) -> Result<(), Status> {
    let Ok(Timestamp { seconds, nanos }) = Timestamp::decode(bytes) else {
        return Ok(());
    };
    match (FIRST_SECOND..=LAST_SECOND).contains(&seconds) && (0..=NANOS_MAX).contains(&nanos) {
        true => Ok(()),
        false => Err(refused(
            field,
            seconds,
            nanos,
            "a timestamp is in the years 1 to 9999, and its nanos are not negative",
        )),
    }
}

fn refused(field: &str, seconds: i64, nanos: i32, why: &str) -> Status {
    Status::invalid_argument(format!(
        "Invalid value at '{field}' (seconds: {seconds}, nanos: {nanos}): {why}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_json_can_tell_is_taken() {
        for (seconds, nanos, span, moment) in [
            (0, 0, true, true),
            (LAST_SECOND, NANOS_MAX, true, true),
            (LAST_SECOND + 1, 0, true, false),
            (FIRST_SECOND, 0, true, true),
            (FIRST_SECOND - 1, 0, true, false),
            (SPAN_SECONDS_MAX, 0, true, false),
            (SPAN_SECONDS_MAX + 1, 0, false, false),
            (i64::MIN, 0, false, false),
            (0, -1, true, false),
            (1, -1, false, false),
            (-1, 1, false, true),
            (0, NANOS_MAX + 1, false, false),
        ] {
            let bytes = Duration { seconds, nanos }.encode_to_vec();
            assert_eq!(check_span("f", &bytes).is_ok(), span, "{seconds} {nanos}");
            let checked = check_moment("f", &bytes).is_ok();
            assert_eq!(checked, moment, "{seconds} {nanos}");
        }
    }
}
