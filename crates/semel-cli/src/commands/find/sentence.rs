//! What was found, in sentences.

use super::merge::list;
use crate::table::{Column, member, table};
use serde_json::Value;

const DELIVERIES: [Column; 7] = [
    ("AT", "at"),
    ("GATE", "gate"),
    ("OUTCOME", "outcome"),
    ("STATUS", "status"),
    ("ATTEMPT", "attempt"),
    ("TOOK (MS)", "elapsed_ms"),
    ("ID", "id"),
];

const LETTERS: [Column; 4] = [
    ("LETTER", "id"),
    ("REASON", "reason"),
    ("NEEDS OPERATOR", "for_operator"),
    ("ROUTE", "route"),
];

/// Everything that was found, one piece of work after the other.
pub(super) fn told(found: &Value) -> String {
    let mut works: Vec<_> = list(found, "works").iter().map(work).collect();
    let without_key = list(found, "deliveries");
    if !without_key.is_empty() {
        let deliveries = table(&DELIVERIES, without_key);
        works.push(format!("Deliveries that could have no key:\n{deliveries}"));
    }
    let letters = list(found, "letters");
    if !letters.is_empty() {
        let letters = table(&LETTERS, letters);
        works.push(format!(
            "Letters whose delivery could have no key:\n{letters}"
        ));
    }
    works.join("\n")
}

fn work(work: &Value) -> String {
    let (about, route, key) = (
        member(work, "about"),
        member(work, "route"),
        member(work, "key"),
    );
    let about = if about.is_empty() {
        "this work".into()
    } else {
        about
    };
    let on = if route.is_empty() {
        String::new()
    } else {
        format!(" on route {route}")
    };
    let mut told = format!("{about}{on} was {}.\n{key}\n", became(work));
    for (columns, name) in [(&DELIVERIES[..], "deliveries"), (&LETTERS[..], "letters")] {
        let rows = list(work, name);
        if !rows.is_empty() {
            told.push('\n');
            told.push_str(&table(columns, rows));
        }
    }
    told
}

/// What became of it: how often it was delivered and ran, and whether it took effect.
fn became(work: &Value) -> String {
    let number = |name: &str| work.get(name).and_then(Value::as_u64).unwrap_or(0);
    let delivered = match number("delivered") {
        0 => "delivered (no gate that was asked remembers when)".to_owned(),
        count => format!("delivered {}", times(count)),
    };
    let ran = match number("ran") {
        0 => "did not run".to_owned(),
        count => format!("ran {}", times(count)),
    };
    format!("{delivered}, {ran}, and {}", effect(work))
}

/// Says whether it took effect, and what is to be done.
fn effect(work: &Value) -> String {
    let record = work.get("record").unwrap_or(&Value::Null);
    let status = record.pointer("/outcome/status").and_then(Value::as_u64);
    let with = status.map_or_else(String::new, |status| format!(" with status {status}"));
    let in_doubt = record.get("in_doubt").and_then(Value::as_bool) == Some(true);
    match member(record, "state").as_str() {
        "succeeded" => format!("took effect once{with}{}", earlier(record)),
        "failed" => format!("failed for good{with}"),
        "running" if record.get("lease_expired").and_then(Value::as_bool) == Some(true) => {
            format!("may or may not have taken effect: its lease expired before its end. {}", next(work))
        }
        "running" => "is running now".into(),
        "waiting" if in_doubt => {
            format!("may or may not have taken effect{with}. {}", next(work))
        }
        "waiting" => format!("has not taken effect yet{with}. {}", next(work)),
        "parked" if in_doubt => {
            "is parked, because it may or may not have taken effect: find out, and say so with `semel records resolve`".into()
        }
        "parked" => format!("is parked{with}: a person decides with `semel records resolve`"),
        _ => "nothing is recorded of it".into(),
    }
}

/// Names the next run of unfinished work: by its sender, or by an operator if no further delivery is expected.
fn next(work: &Value) -> &'static str {
    let needs_operator = |letter: &Value| {
        let needs = letter.get("for_operator").and_then(Value::as_bool);
        letter.get("reason").and_then(Value::as_str) == Some("unfinished") && needs == Some(true)
    };
    if list(work, "letters").iter().any(needs_operator) {
        "No further delivery is expected: redrive its letter (`semel letters redrive`)"
    } else {
        "Its next delivery runs it"
    }
}

/// What earlier runs may have done; the last one's own doubt is over.
fn earlier(record: &Value) -> String {
    let number = |name: &str| record.get(name).and_then(Value::as_u64).unwrap_or(0);
    match number("doubts").min(number("attempts").saturating_sub(1)) {
        0 => String::new(),
        lost => format!(
            " for certain; of its earlier runs {lost} may have taken effect too, unless the route's promise rules that out"
        ),
    }
}

/// How often, in words.
fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        more => format!("{more} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unfinished_work_says_who_runs_it_next() {
        let of = |record: Value, for_operator: bool| {
            let letter = json!({"reason": "unfinished", "for_operator": for_operator});
            effect(&json!({"record": record, "letters": [letter]}))
        };
        let waiting = || json!({"state": "waiting"});
        assert!(of(waiting(), false).ends_with("Its next delivery runs it"));
        assert!(of(waiting(), true).contains("No further delivery is expected"));
        let running = |expired: bool| json!({"state": "running", "lease_expired": expired});
        assert_eq!(of(running(false), false), "is running now");
        assert!(of(running(true), true).starts_with("may or may not have taken effect"));
    }

    #[test]
    fn earlier_runs_in_doubt_are_told_and_the_last_ones_own_is_over() {
        let of =
            |attempts: u32, doubts: u32| earlier(&json!({"attempts": attempts, "doubts": doubts}));
        assert_eq!((of(1, 1), of(3, 0)), (String::new(), String::new()));
        assert!(
            of(2, 2).contains("of its earlier runs 1 may"),
            "{}",
            of(2, 2)
        );
    }

    #[test]
    fn a_sentence_answers_what_became_of_it() {
        let of = |state: &str, in_doubt: bool| {
            let found = json!({
                "works": [{
                    "key": "v1_a", "about": "order_id A-1", "route": "charge", "delivered": 2, "ran": 1,
                    "record": {"state": state, "in_doubt": in_doubt, "outcome": {"status": 201}},
                }],
            });
            told(&found)
        };
        assert_eq!(
            of("succeeded", false),
            "order_id A-1 on route charge was delivered twice, ran once, and took effect once with status 201.\nv1_a\n"
        );
        for (state, in_doubt, says) in [
            ("failed", false, "failed for good with status 201"),
            ("running", false, "is running now"),
            ("waiting", false, "has not taken effect yet"),
            ("waiting", true, "may or may not have taken effect"),
            ("parked", true, "`semel records resolve`"),
            ("absent", false, "nothing is recorded"),
        ] {
            assert!(
                of(state, in_doubt).contains(says),
                "{}",
                of(state, in_doubt)
            );
        }
    }
}
