//! A payload is one value however it is written, and another value is another one: the streaming
//! reader against a plain one that builds a tree.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod reference;

use proptest::prelude::*;
use reference::{Json, Refusal};
use semel::fingerprint::Pieces;
use semel::key::{Delivered, Field, KeyError, KeyRule};
use semel::{Fingerprint, Payload};

fn of(text: &str) -> Fingerprint {
    Fingerprint::of_payload(&Payload::read(text.as_bytes(), []))
}

/// The part that a pointer names.
fn field(text: &str, pointer: &str) -> Result<Field, KeyError> {
    let rule: KeyRule = pointer.parse().unwrap();
    let fields = rule.fields(&Delivered::payload(text.as_bytes()))?;
    Ok(fields.into_iter().next().unwrap())
}

fn is_bytes(text: &str) -> bool {
    of(text) == Fingerprint::of(text.as_bytes())
}

#[test]
fn order_spacing_and_spelling_make_no_difference() {
    let first = r#"{"id":7,"lines":[{"sku":"é","n":1},[]],"total":100,"x":null}"#;
    for again in [
        " {\n\"x\" : null , \"total\":1e2,\"lines\":[ {\"n\":1.0,\"sku\":\"\\u00e9\"} ,[ ]],\"id\":70e-1}\t",
        r#"{"lines":[{"sku":"\u00E9","n":10E-1},[]],"id":7.0,"\u0078":null,"total":100.00}"#,
    ] {
        assert_eq!(of(first), of(again), "{again}");
        assert_ne!(
            Fingerprint::of(first.as_bytes()),
            Fingerprint::of(again.as_bytes())
        );
    }
}

#[test]
fn every_other_value_is_another_one() {
    let all = [
        "null",
        "true",
        "false",
        "0",
        "1",
        "10",
        "100",
        "1e3",
        "-1",
        "0.1",
        "1e-7",
        "1e20",
        "1e21",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551615",
        "\"\"",
        "\"0\"",
        "\"null\"",
        "\"d1\"",
        "\"1e1\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "[0]",
        "[1]",
        "[[1]]",
        "[1,0]",
        "[0,1]",
        "[10]",
        "[\"\"]",
        r#"{"":0}"#,
        r#"{"":null}"#,
        r#"{"":""}"#,
        r#"{"a":0}"#,
        r#"{"a":[0]}"#,
        r#"{"a":0,"b":0}"#,
        r#"{"a":{"b":0}}"#,
        r#"["a",0]"#,
        r#"["a",0,"b",0]"#,
        r#"{"a":"b","b":"a"}"#,
        r#"{"a":"a","b":"b"}"#,
        r#""a string of more than thirty-two bytes in all""#,
        r#""a string of more than thirty-two bytes in sum""#,
        r#"["a string of more than thirty-two bytes in all"]"#,
        r#"{"a string of more than thirty-two bytes in all":0}"#,
        "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]",
        "[[0,1,2,3,4,5,6,7],8,9,10,11,12,13,14,15]",
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(!is_bytes(one), "{one} is a value");
        for other in &all[..i] {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
    }
}

#[test]
fn what_is_refused_as_a_value_is_compared_as_bytes() {
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let many = format!("[{}0]", r#"{"":0},"#.repeat(1_000_001));
    let refused = [
        "",
        "text",
        "{\"a\":1",
        "{\"a\":1}{}",
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"["\ud800"]"#,
        "{\"a\":01}",
        "[1,]",
        "\u{feff}1",
        &deep,
        &many,
    ];
    for text in refused {
        assert!(is_bytes(text), "{text:.60}");
    }
    assert_eq!(field(&many, "/0").unwrap_err(), KeyError::TooManyMembers);
    assert!(is_bytes(std::str::from_utf8(b"\x00").unwrap()));
    // Even bytes that are the encoding of a value are not that value.
    assert_ne!(of("1"), Fingerprint::of(b"d1"));
}

#[test]
fn numbers_that_are_not_named_do_not_take_the_key_away() {
    let text = r#"{"id":"A-1","wide":18446744073709551616,"more":[1e400]}"#;
    assert_eq!(field(text, "/id").unwrap().bytes, b"A-1");
    assert!(!is_bytes(text));
}

#[test]
fn numbers_that_a_double_would_merge_differ() {
    let all = [
        "1",
        "1.000000000000000001",
        "1.000000000000000002",
        "9007199254740992.0",
        "9007199254740993.0",
        "18446744073709551616",
        "18446744073709551617",
        "1e400",
        "1e401",
        "0",
        "1e-400",
        "1e999999999999999999999",
    ];
    for (i, one) in all.iter().enumerate() {
        for other in &all[..i] {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
    }
    for (one, other) in [
        ("9007199254740993.0", "9007199254740993"),
        ("1.000000000000000001", "1000000000000000001e-18"),
        ("18446744073709551616", "1844674407370955161.60E1"),
        ("100000000000000000000", "1e20"),
    ] {
        assert_eq!(of(one), of(other), "{one} {other}");
    }
    let error = field(r#"{"v":1.000000000000000001}"#, "/v").unwrap_err();
    assert_eq!(error.code(), "inexact_number");
    assert!(error.to_string().contains("1.000000000000000001"));
}

#[test]
fn null_and_empty_containers_are_missing_unless_the_rule_accepts_them() {
    for (nothing, text) in [("null", "null"), ("[]", "[ ]"), ("{}", "{\n}")] {
        let text = format!("{{\"v\":{text}}}");
        let error = field(&text, "/v").unwrap_err();
        assert_eq!(error.code(), "missing_part");
        let says = error.to_string();
        assert!(says.contains(&format!("/v is {nothing}")), "{says}");
        assert!(says.contains("/v?null"), "{says}");
        assert_eq!(field(&text, "/v?null").unwrap().bytes, nothing.as_bytes());
        let payload = Payload::read(text.as_bytes(), ["/v"]);
        assert_eq!(payload.has("/v"), Ok(false));
        assert_eq!(payload.has("/v?null"), Ok(true));
        assert!(payload.written("/v").unwrap().is_some());
    }
    for there in ["[null]", "{\"a\":null}", "\"\"", "0", "false"] {
        let text = format!("{{\"v\":{there}}}");
        let payload = Payload::read(text.as_bytes(), ["/v"]);
        assert_eq!(payload.has("/v"), Ok(true), "{there}");
    }
}

#[test]
fn pointers_lead_into_json_in_strings() {
    let text =
        r#"{"Message":"{\"order\":{\"id\":\"A-1\"},\"then\":\"[7]\"}","Type":"Notification"}"#;
    let pointers = [
        "/Message~json/order/id",
        "/Type",
        "/Message~json/then~json/0",
        "/Message~json/note",
        "/Type~json/order",
        "/Message~json",
    ];
    let payload = Payload::read(text.as_bytes(), pointers);
    let has = pointers.map(|pointer| payload.has(pointer).unwrap());
    assert_eq!(has, [true, true, true, false, false, true]);
    // A pointer that the reader did not look for is found, too.
    assert_eq!(payload.has("/Message~json/order"), Ok(true));
    let written = payload.written("/Message~json/order/id").unwrap();
    assert_eq!(written.as_deref(), Some("\"A-1\""));
    let twice = r#"{"Message":"{\"id\":1,\"id\":2}"}"#;
    let error = field(twice, "/Message~json/id").unwrap_err();
    assert_eq!(error.code(), "duplicate_member");
}

#[test]
fn json_in_a_string_is_read_only_within_the_limit() {
    let text = format!("{{\"v\":\"{{\\\"id\\\":{}}}\"}}", "7".repeat(5000));
    let mut asked = 0;
    let mut all = |more| {
        asked += more;
        true
    };
    Payload::read_within(text.as_bytes(), ["/v~json/id"], &mut all).unwrap();
    assert!(asked > 5000, "{asked}");
    let mut left = asked - 1;
    let mut room = |more| {
        let fits = more <= left;
        left -= if fits { more } else { 0 };
        fits
    };
    assert!(Payload::read_within(text.as_bytes(), ["/v~json/id"], &mut room).is_err());
}

#[test]
fn errors_do_not_repeat_a_whole_payload() {
    let digits = "9".repeat(1 << 20);
    let name = "n".repeat(1 << 20);
    for text in [
        format!("{{\"v\":{digits}}}"),
        format!("{{\"v\":{digits}.5e0}}"),
        format!("{{\"{name}\":1,\"{name}\":1}}"),
    ] {
        assert!(field(&text, "/v").unwrap_err().to_string().len() < 400);
    }
}

#[test]
fn pointers_that_lead_through_each_other_are_all_found() {
    let text = r#"{"a":{"b":[0,{"c":"x"}],"":1},"b":2}"#;
    let pointers = [
        "/a", "/a/b", "/a/b/1", "/a/b/1/c", "/a/", "/b", "/a/b/2", "/a/c", "/b/c",
    ];
    let rule = KeyRule::new(pointers.into_iter().take(6)).unwrap();
    let payload = Payload::read(text.as_bytes(), pointers);
    let found: Vec<_> = rule
        .fields(&Delivered::read(&payload))
        .unwrap()
        .into_iter()
        .map(|field| format!("{}{}", field.kind, String::from_utf8(field.bytes).unwrap()))
        .collect();
    let expected = [
        r#"o{"":1,"b":[0,{"c":"x"}]}"#,
        r#"a[0,{"c":"x"}]"#,
        r#"o{"c":"x"}"#,
        "sx",
        "d1",
        "d2",
    ];
    assert_eq!(found, expected);
    for absent in &pointers[6..] {
        assert_eq!(payload.has(absent), Ok(false), "{absent}");
    }
    // A pointer that nobody announced is looked for all the same.
    assert_eq!(payload.has("/a/b/0"), Ok(true));
}

#[test]
fn pieces_do_not_run_into_each_other() {
    let all = [
        Pieces::new().bytes(b"ab"),
        Pieces::new().method("a").bytes(b"b"),
        Pieces::new().path("a").bytes(b"b"),
        Pieces::new().method("a").path("b").bytes(b""),
        Pieces::new().named("a", Some("b")).bytes(b""),
        Pieces::new().named("a", None).bytes(b"b"),
        Pieces::new().named("a", Some("")).bytes(b"b"),
        Pieces::new().named("ab", Some("")).bytes(b""),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(!all[..i].contains(one), "{i}");
    }
}

// === Against the reference ===

/// Any JSON value, small, with names and numbers that often meet.
fn value() -> impl Strategy<Value = Json> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (-20..20_i32).prop_map(|n| n.to_string()),
        any::<f64>()
            .prop_filter("finite", |d| d.is_finite())
            .prop_map(|d| format!("{d:e}")),
        (-99..99_i32, -30..30_i32).prop_map(|(m, e)| format!("{m}e{e}")),
        ("-?[1-9][0-9]{0,24}", "[0-9]{1,20}").prop_map(|(whole, part)| format!("{whole}.{part}")),
        ("[1-9][0-9]{0,18}", -350..350_i32).prop_map(|(m, e)| format!("{m}e{e}")),
        Just("18446744073709551616".to_owned()),
        Just("1e400".to_owned()),
    ];
    let text = prop_oneof!["[ab\"\\\\\n\u{1}é😀\u{e000}]{0,4}", "[a-z]{0,40}",];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        number.prop_map(Json::Number),
        text.clone().prop_map(Json::String),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::vec((text.clone(), inner), 0..6).prop_map(Json::members),
        ]
    })
}

/// A text that is nearly JSON.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 0..4);
    (value(), any::<u64>(), edits).prop_map(|(value, seed, edits)| {
        let mut text = value.written(seed).into_bytes();
        for (at, edit, byte) in edits {
            if text.is_empty() {
                break;
            }
            let at = at.index(text.len());
            match edit {
                0 => drop(text.remove(at)),
                1 => text[at] = byte,
                _ => text.insert(at, text[at]),
            }
        }
        text
    })
}

/// What the reference makes of a part.
fn expected(value: &Json) -> Result<(char, String), Refusal> {
    match value {
        Json::String(text) => Ok(('s', text.clone())),
        Json::Number(_) => Ok(('d', value.canonical()?)),
        Json::Bool(_) => Ok(('b', value.canonical()?)),
        Json::Null => Ok(('z', value.canonical()?)),
        Json::Array(_) => Ok(('a', value.canonical()?)),
        Json::Object(_) => Ok(('o', value.canonical()?)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_has_one_fingerprint_and_one_key_however_it_is_written(
        value in value(), one in any::<u64>(), other in any::<u64>(),
    ) {
        let texts = [one, other].map(|seed| value.written(seed));
        prop_assert_eq!(of(&texts[0]), of(&texts[1]), "{:?}", &texts);
        prop_assert!(!texts.iter().any(|text| is_bytes(text)));
        let parts = texts.map(|text| field(&format!("{{\"v\":{text}}}"), "/v"));
        if matches!(value, Json::Null) || matches!(value.normal().as_str(), "[]" | "{}") {
            for part in parts {
                prop_assert_eq!(part.unwrap_err().code(), "missing_part");
            }
            return Ok(());
        }
        match (&parts[0], &parts[1], expected(&value)) {
            (Ok(one), Ok(other), Ok((kind, text))) => {
                prop_assert_eq!(one, other);
                prop_assert_eq!((one.kind, &one.bytes), (kind, &text.into_bytes()));
            }
            // Of several unfit numbers any one may be told.
            (Err(one), Err(other), Err(_)) => for error in [one, other] {
                prop_assert!(matches!(error.code(), "wide_integer" | "number_overflow" | "inexact_number"));
            }
            (one, other, reference) => prop_assert!(false, "{one:?} {other:?} {reference:?}"),
        }
    }

    #[test]
    fn two_values_have_one_fingerprint_only_if_they_are_equal(
        (one, other) in value().prop_flat_map(|value| {
            let other = value.clone();
            let changed = any::<prop::sample::Index>().prop_map(move |at| other.changed(at));
            (Just(value), changed)
        }),
        seed in any::<u64>(),
    ) {
        let (this, that) = (one.normal(), other.normal());
        let same = of(&one.written(seed)) == of(&other.written(seed));
        prop_assert_eq!(same, this == that, "{} {}", this, that);
    }

    #[test]
    fn any_text_is_read_or_refused_as_the_reference_does(text in nearly()) {
        let payload = Payload::read(&text, ["/a", "/0"]);
        let is_value = Fingerprint::of_payload(&payload) != Fingerprint::of(&text);
        match Json::read(&text) {
            // Of several faults any one may be told.
            Err(_) => {
                prop_assert!(!is_value);
                prop_assert!(!matches!(payload.has("/a"), Ok(true)));
            }
            Ok(value) => {
                prop_assert!(is_value);
                for name in ["a", "0"] {
                    let found = payload.has(&format!("/{name}?null")).unwrap();
                    prop_assert_eq!(found, value.child(name).is_some());
                }
            }
        }
    }
}
