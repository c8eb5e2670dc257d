//! `deploy/firestore` against what is written: an index over rising numbers limits a collection, so every field but those that
//! are searched by must be exempt.

use crate::index::until_fields;
use crate::letter_document::{closed_fields, open_fields};
use crate::parts::{Parts, part_fields};
use crate::record_document::{record_fields, step_fields};
use crate::value::{Fields, fields, int, string};
use bytes::Bytes;
use semel::clock::Time;
use semel::letter::{Letter, LetterId, Reason, Tombstone};
use semel::protocol::{Claim, Fence, Operation, StepRecord, decide};
use semel::{Fingerprint, Key};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// By collection, the names of fields.
type Names = BTreeMap<String, BTreeSet<String>>;

/// What names the parts of a large result.
fn parts() -> Parts {
    let fields = fields([("parts", int(2_u32)), ("part_id", string("x"))]);
    let document = crate::proto::Document {
        fields,
        ..crate::proto::Document::default()
    };
    let reader = crate::value::Reader {
        document: &document,
    };
    Parts::read(reader).unwrap().unwrap()
}

/// With a history.
fn of_a_record() -> Fields {
    let key = Key::from_bytes([1; 32]);
    let claim = Operation::Claim(Claim::new(key, Fingerprint::of(b"x")));
    let running = decide(None, None, &claim, Time(1_000_000)).write;
    let by = Bytes::from_static(b"me");
    let release = Operation::ReleaseByOperator { key, by };
    let released = decide(running.as_ref(), None, &release, Time(2_000_000));
    let mut record = released.write.unwrap();
    record.remember(released.superseded);
    record_fields(&record, Some(&parts()))
}

fn of_letters() -> Fields {
    let letter = Letter {
        id: LetterId([1; 32]),
        key: None,
        route: "orders".into(),
        reason: Reason::Invalid,
        fence: Fence(1),
        retention: Duration::ZERO,
        redriven: false,
        alarmed: false,
        delivery: Bytes::new(),
    };
    let tombstone = Tombstone {
        fence: Fence(1),
        expires_at: Time(1),
    };
    let mut fields = open_fields(&letter, Time(1), Some(&parts()));
    fields.extend(closed_fields(tombstone));
    fields
}

fn written() -> Names {
    let step = StepRecord {
        fence: Fence(1),
        result: None,
    };
    let names = |fields: Fields| fields.into_keys().collect();
    [
        ("semel_records", of_a_record()),
        ("semel_steps", step_fields("charge", &step, Some(&parts()))),
        ("semel_parts", part_fields(&Bytes::new(), "x")),
        ("semel_letters", of_letters()),
        ("semel_index", until_fields(Time(1))),
    ]
    .map(|(collection, fields)| (collection.to_owned(), names(fields)))
    .into()
}

#[test]
fn set_up_exempts_every_field_but_those_that_are_searched_by() {
    let file = include_str!("../../../deploy/firestore/firestore.indexes.json");
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let (mut named, mut searched, mut ends) = (Names::new(), Names::new(), BTreeSet::new());
    for one in file["fieldOverrides"].as_array().unwrap() {
        let text = |name: &str| one[name].as_str().unwrap().to_owned();
        let (collection, field) = (text("collectionGroup"), text("fieldPath"));
        if !one["indexes"].as_array().unwrap().is_empty() {
            let fields = searched.entry(collection.clone()).or_default();
            fields.insert(field.clone());
        }
        if one["ttl"] == true {
            assert_eq!(field, "delete_at");
            ends.insert(collection.clone());
        }
        named.entry(collection).or_default().insert(field);
    }
    assert_eq!(named, written());
    let expected = [("semel_records", "state"), ("semel_letters", "created_at")];
    let expected = expected.map(|(one, field)| (one.to_owned(), [field.to_owned()].into()));
    assert_eq!(searched, Names::from(expected));
    let dated = named.iter().filter(|(_, it)| it.contains("delete_at"));
    assert_eq!(ends, dated.map(|(name, _)| name.clone()).collect());
}
