//! The documents as `vectors/firestore.json` has them; Python and Node read the same file.

use super::*;
use crate::names::Names;
use crate::proto::Value as FirestoreValue;
use crate::settings::FirestoreSettings;
use crate::value::{boolean, null};
use semel::protocol::{Answer, Held, Lease, Operation, decide};
use semel::{Key, Outcome};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../vectors/firestore.json")).unwrap()
}

fn list<'a>(vectors: &'a Value, name: &str) -> &'a Vec<Value> {
    vectors[name].as_array().unwrap()
}

fn raw(hex: &Value) -> Vec<u8> {
    hex::decode(hex.as_str().unwrap()).unwrap()
}

fn array<const N: usize>(hex: &Value) -> [u8; N] {
    raw(hex).try_into().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// A field as the vectors write it.
fn field(value: &Value) -> FirestoreValue {
    match value {
        Value::Null => null(),
        Value::Bool(yes) => boolean(*yes),
        Value::Number(number) => int(number.as_u64().unwrap()),
        Value::Object(typed) if typed.contains_key("micros") => {
            timestamp(Time(number(&typed["micros"])))
        }
        Value::Object(typed) => bytes(raw(&typed["bytes"])),
        other @ (Value::String(_) | Value::Array(_)) => panic!("no field: {other}"),
    }
}

fn all_fields(document: &Value) -> Fields {
    let document = document.as_object().unwrap().iter();
    document
        .map(|(name, value)| (name.clone(), field(value)))
        .collect()
}

fn document(fields: Fields) -> Document {
    Document {
        name: "a vector".into(),
        fields,
        create_time: None,
        update_time: None,
    }
}

fn record(value: &Value) -> Record {
    let word = value["state"].as_str().unwrap();
    let state = State::ALL.into_iter().find(|it| it.word() == word).unwrap();
    let small = |name: &str| u32::try_from(number(&value[name])).unwrap();
    let some = |name: &str| value.get(name).filter(|it| !it.is_null());
    Record {
        fingerprint: Fingerprint::from_bytes(array(&value["fingerprint"])),
        state,
        attempts: small("attempts"),
        doubts: small("doubts"),
        in_doubt: value["in_doubt"].as_bool().unwrap(),
        acts_until: some("acts_until").map(|it| Time(number(it))),
        doubted_at: some("doubted_at").map(|it| Time(number(it))),
        born: Fence(number(&value["born"])),
        fence: Fence(number(&value["fence"])),
        owner: Owner(array(&value["owner"])),
        lease_until: Time(number(&value["lease_until"])),
        expires_at: Time(number(&value["expires_at"])),
        result: some("result").map(|it| raw(it).into()),
        label: some("label").map(|it| raw(it).into()).unwrap_or_default(),
        history: some("history").map_or_else(Vec::new, |it| {
            decode_history(raw(it).into()).expect("a history")
        }),
    }
}

#[test]
fn records_are_written_and_read_as_the_vectors_say() {
    let vectors = vectors();
    for vector in list(&vectors, "records") {
        let (record, fields) = (record(&vector["record"]), all_fields(&vector["document"]));
        assert_eq!(record_fields(&record, None), fields, "{}", vector["name"]);
        let read = read_record(&document(fields)).unwrap();
        assert_eq!(
            (read.value, read.parts),
            (record, None),
            "{}",
            vector["name"]
        );
    }
}

#[test]
fn steps_are_found_as_the_vectors_say() {
    let vectors = vectors();
    let names = Names::new(&FirestoreSettings::new("shop-prod"));
    for vector in list(&vectors, "steps") {
        let key: Key = vector["key"].as_str().unwrap().parse().unwrap();
        let born = Fence(number(&vector["born"]));
        let name = names.step(&key, born, vector["name"].as_str().unwrap());
        assert!(name.ends_with(&format!("/semel_steps/{}", vector["id"].as_str().unwrap())));
        assert_eq!(crate::names::owner_of_step(&name), Some((key, born)));
    }
}

/// A handler in another language writes what `decide` writes.
#[test]
fn handlers_complete_as_decide_does() {
    let vectors = vectors();
    for vector in list(&vectors, "complete") {
        let before = vector.get("before").filter(|it| !it.is_null());
        let before = before.map(|it| read_record(&document(all_fields(it))).unwrap().value);
        let fence = Fence(number(&vector["fence"]));
        let owner = before.as_ref().map_or(Owner([0; 16]), |it| it.owner);
        let retention = before
            .as_ref()
            .map(|it| it.expires_at.since(it.lease_until));
        let written = vector.get("writes").map(all_fields).unwrap_or_default();
        let operation = Operation::Complete {
            lease: Lease {
                key: vector["key"].as_str().unwrap().parse().unwrap(),
                owner,
                fence,
                born: fence,
                attempt: 1,
                in_doubt: false,
            },
            result: Reader {
                document: &document(written.clone()),
            }
            .bytes_or_none("result")
            .unwrap()
            .unwrap_or_default(),
            retention: retention.unwrap_or_default(),
        };
        let decision = decide(
            before.as_ref(),
            None,
            &operation,
            Time(number(&vector["now"])),
        );
        let name = &vector["name"];
        if vector.get("writes").is_some() {
            assert_eq!(operation.result(), Some(&outcome(vector)), "{name}");
        }
        match vector.get("refused").map(|it| it.as_str().unwrap()) {
            Some("stale") => assert_eq!(decision.answer, Answer::Held(Held::Stale), "{name}"),
            Some("already") => {
                let already = Answer::Held(Held::Already(State::Succeeded));
                assert_eq!(decision.answer, already, "{name}");
            }
            Some(other) => panic!("{name}: {other}"),
            None => {
                // The handler changes what it names, and leaves the other fields as they are.
                let mut fields = all_fields(&vector["before"]);
                fields.retain(|field, _| field != "delete_at");
                fields.extend(written);
                let decided = record_fields(&decision.write.unwrap(), None);
                assert_eq!(fields, decided, "{name}");
            }
        }
    }
}

/// What is kept of a handler's answer, as the library encodes it: without its body, if that does not fit into a document.
fn outcome(vector: &Value) -> Bytes {
    let times = vector.get("body_times").map_or(1, number);
    let body = vector["body"].as_str().unwrap();
    let body = body.repeat(times.try_into().unwrap());
    let status = u16::try_from(number(&vector["status"])).unwrap();
    let mut outcome = Outcome::new(status, body);
    for (name, values) in vector["headers"].as_object().unwrap() {
        let one = std::slice::from_ref(values);
        for value in values.as_array().map_or(one, Vec::as_slice) {
            outcome = outcome.with_header(name, value.as_str().unwrap());
        }
    }
    let whole = outcome.encode();
    match whole.len() <= INLINE_BYTES_MAX {
        true => whole,
        false => outcome.bounded(0).encode(),
    }
}

#[test]
fn outcomes_are_encoded_as_in_other_languages() {
    let vectors = vectors();
    for vector in list(&vectors, "outcomes") {
        let Some(result) = vector.get("result") else {
            continue;
        };
        assert_eq!(outcome(vector), raw(result), "{}", vector["name"]);
    }
}

/// What `once` writes in another language is a record like any other.
#[test]
fn documents_of_once_are_records() {
    let vectors = vectors();
    for vector in list(&vectors, "once") {
        let Some(written) = vector.get("document") else {
            continue;
        };
        let read = read_record(&document(all_fields(written))).unwrap().value;
        let text = vector["text"].as_str().unwrap();
        let digest = Sha256::new_with_prefix(b"semel-once-v1")
            .chain_update(u64::try_from(text.len()).unwrap().to_be_bytes())
            .chain_update(text);
        let digest: [u8; 32] = digest.finalize().into();
        assert_eq!(read.fingerprint.as_bytes(), &digest, "{}", vector["name"]);
        assert_eq!(vector["id"], Key::from_bytes(digest).to_string());
        assert_eq!(
            record_fields(&read, None),
            all_fields(written),
            "{}",
            vector["name"]
        );
        assert_eq!(read.state, State::Succeeded);
        assert_eq!(read.settled(Time(0)).unwrap().result, Bytes::new());
    }
}
