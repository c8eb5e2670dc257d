//! Reading a payload takes less than three times its own memory, whatever is in it, so that body and
//! reading together stay under four times the body; and it takes no more than was asked for.
//!
//! One test in a program of its own: the allocator counts for the whole process.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop at the first surprise, and tells what it measured"
)]

use peak_alloc::PeakAlloc;
use semel::key::{Delivered, KeyRule};
use semel::payload::NoRoom;
use semel::{Fingerprint, Payload};
use std::time::Duration;
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The largest body that a gate takes by default.
const BODY_BYTES: usize = 16 * 1024 * 1024;

/// For shapes that take long without optimisation; the ratio is the same.
const PART_BYTES: usize = BODY_BYTES / 4;

/// The beginning of an object with many items.
const ITEMS: &str = "{\"id\":7,\"a\":[0";

/// What is taken besides, whatever the payload: open levels, and a part of a key.
const BESIDE_BYTES_MAX: usize = 1024 * 1024;

/// Far more than any of these takes, also without optimisation on a busy machine, and far less than
/// what grows with the square would.
const LONGEST: Duration = Duration::from_secs(120);

/// Whether a shape can be read as a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Value,
    Bytes,
}

/// Fills a body with members of distinct names.
fn members(bytes: usize, count_max: usize, value: &str) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    let mut text = String::from("{\"id\":7");
    let mut number = 64 * 64;
    while text.len() < bytes && number < count_max {
        let mut rest = number;
        text.push_str(",\"");
        while rest > 0 {
            text.push(char::from(LETTERS[rest % 64]));
            rest /= 64;
        }
        text.push_str("\":");
        text.push_str(value);
        number += 1;
    }
    text + "}"
}

/// Sixty objects in each other, each with as many members of short names as there are.
fn nested(bytes: usize) -> String {
    let level = members(bytes / 60, usize::MAX, "1");
    let level = level
        .strip_prefix("{\"id\":7")
        .unwrap()
        .strip_suffix('}')
        .unwrap();
    let mut text = String::from("{\"id\":7");
    for _ in 0..60 {
        text.push_str(level);
        text.push_str(",\"\":{\"id\":1");
    }
    text + &"}".repeat(61)
}

fn filled(begin: &str, piece: &str, end: &str) -> String {
    filled_to(BODY_BYTES, begin, piece, end)
}

fn filled_to(bytes: usize, begin: &str, piece: &str, end: &str) -> String {
    let count = (bytes - begin.len() - end.len()) / piece.len();
    format!("{begin}{}{end}", piece.repeat(count))
}

type Shape = (&'static str, Is, String);

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::from(of_members());
    shapes.extend(of_arrays());
    shapes.extend(of_one_value());
    shapes.extend(of_no_value());
    shapes
}

fn of_members() -> [Shape; 9] {
    let with = |count, value| members(BODY_BYTES, count, value);
    let small = ",{\"a\":{},\"b\":\"some text and more\"}";
    [
        ("too many members", Is::Bytes, with(usize::MAX, "1")),
        ("a million members", Is::Value, with(1_000_000, "1")),
        ("long arrays", Is::Value, with(900_000, "[1e-6,1e-6,1e-6]")),
        ("short arrays", Is::Value, with(300_000, "[1]")),
        ("numbers", Is::Value, with(300_000, "1e20")),
        ("objects", Is::Value, with(450_000, "{\"\":[1]}")),
        ("nested objects", Is::Value, nested(7_000_000)),
        ("small objects", Is::Value, filled(ITEMS, small, "]}")),
        ("long names alike", Is::Value, members_alike()),
    ]
}

fn of_arrays() -> [Shape; 3] {
    let deep = format!(",{}1{}", "[".repeat(60), "]".repeat(60));
    let deep = filled_to(PART_BYTES, ITEMS, &deep, "]}");
    let zeros = filled_to(PART_BYTES, ITEMS, ",0", "]}");
    [
        ("deep arrays", Is::Value, deep),
        ("empty arrays", Is::Value, filled(ITEMS, ",[]", "]}")),
        ("zeros", Is::Value, zeros),
    ]
}

fn of_one_value() -> [Shape; 7] {
    let string = |piece| filled("{\"id\":7,\"a\":\"", piece, "\"}");
    let number = |begin: &str| filled(&format!("{{\"id\":7,\"a\":{begin}"), "9", "}");
    [
        ("a string", Is::Value, string("x")),
        ("a string of escapes", Is::Value, string("\\u0041\\n")),
        ("a string of colons", Is::Value, string("\\\":")),
        ("a name", Is::Value, filled("{\"id\":7,\"", "\\n", "\":1}")),
        ("a number", Is::Value, number("")),
        ("a fraction", Is::Value, number("0.")),
        ("space", Is::Value, filled("{\"id\":7", " ", "}")),
    ]
}

fn of_no_value() -> [Shape; 3] {
    [
        ("only brackets", Is::Bytes, filled("", "[", "")),
        ("only colons", Is::Bytes, filled("{", ":", "")),
        ("only quotes", Is::Bytes, filled("{\"", "\\\"", "")),
    ]
}

/// Names that differ only at their end, and that are written with an escape.
fn members_alike() -> String {
    let name = format!("\\u0061{}", "bcdefgh".repeat(120));
    let mut text = String::from("{\"id\":7");
    let mut number = 0;
    while text.len() < PART_BYTES {
        text.push_str(&format!(",\"{name}{number}\":0"));
        number += 1;
    }
    text + "}"
}

/// A part that is an object with as many members as fit into one.
fn a_large_part_takes_little() {
    let object = members(64_000, usize::MAX, "1");
    let text = format!("{{\"v\":{object}}}");
    let rule: KeyRule = "/v".parse().unwrap();
    let payload = Payload::read(text.as_bytes(), rule.pointers());
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let fields = rule.fields(&Delivered::read(&payload)).unwrap();
    let peak = ALLOCATOR.peak_usage() - before;
    assert!(fields[0].bytes.len() > 60_000);
    assert!(peak <= BESIDE_BYTES_MAX, "{peak} bytes");
    println!("a part: {peak} bytes for {}", fields[0].bytes.len());
}

#[test]
fn no_payload_takes_more_than_four_times_its_memory_to_name() {
    a_large_part_takes_little();
    smaller_payloads_ask_for_no_more();
    let rule: KeyRule = "/id".parse().unwrap();
    for (shape, is, text) in shapes() {
        assert!(text.len() <= BODY_BYTES + 64, "{shape}");
        let bytes = text.as_bytes();
        let mut asked = 0;
        let mut room = |more| {
            asked += more;
            true
        };
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        let begun = Instant::now();
        let payload = Payload::read_within(bytes, rule.pointers(), &mut room).unwrap();
        let fields = rule.fields(&Delivered::read(&payload));
        let fingerprint = Fingerprint::of_payload(&payload);
        let took = begun.elapsed();
        let peak = ALLOCATOR.peak_usage() - before;

        let all = bytes.len() + peak;
        assert!(
            all <= 4 * bytes.len(),
            "{shape}: {peak} bytes beside {}",
            bytes.len()
        );
        assert!(
            peak <= asked + BESIDE_BYTES_MAX,
            "{shape}: {peak} bytes, asked for {asked}"
        );
        assert!(took < LONGEST, "{shape}: {took:?}");
        let value = fingerprint != Fingerprint::of(bytes);
        assert_eq!(value, is == Is::Value, "{shape}");
        let named = fields.is_ok_and(|fields| fields[0].bytes == b"7");
        assert_eq!(named, is == Is::Value || shape == "a number", "{shape}");
        println!(
            "{shape}: {peak} bytes for {}, asked for {asked}, {took:?}",
            bytes.len()
        );

        if asked > 0 {
            let refused = Payload::read_within(bytes, rule.pointers(), &mut |_| false);
            assert_eq!(refused.unwrap_err(), NoRoom, "{shape}");
        }
    }
}

/// Only counted: the memory of small ones is lost among everything else.
fn smaller_payloads_ask_for_no_more() {
    for bytes in [20_000, 300_000, 2_000_000] {
        for value in ["1", "[1]", "1e20", "[1e-6,1e-6,1e-6]", "\"\""] {
            let text = members(bytes, usize::MAX, value);
            let mut asked = 0;
            let mut room = |more| {
                asked += more;
                true
            };
            Payload::read_within(text.as_bytes(), ["/id"], &mut room).unwrap();
            assert!(
                asked <= 3 * text.len(),
                "{value}: {asked} for {}",
                text.len()
            );
        }
    }
}
