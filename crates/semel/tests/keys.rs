//! Every vector of `vectors/keys.json` comes out of this crate as it does out of Python and SQL.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use base64::prelude::{BASE64_STANDARD, Engine as _};
use semel::key::{Delivered, Field, KeyError, KeyRule, Scope};
use semel::{Fingerprint, Payload};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    namespace: String,
    route: String,
    method: Option<String>,
    caller: Option<String>,
    rule: Vec<String>,
    payload: Option<String>,
    payload_base64: Option<String>,
    #[serde(default)]
    named: BTreeMap<String, String>,
    key: Option<String>,
    fingerprint: Option<String>,
    parts: Option<Vec<VectorPart>>,
    error: Option<String>,
    /// The call of the Python package whose payload this is; its tests read it.
    python: Option<serde_json::Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct VectorPart {
    #[serde(rename = "type")]
    kind: String,
    text: String,
}

#[test]
fn every_vector_comes_out_the_same() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/keys.json");
    let file: File = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let calls = file.vectors.iter().filter(|it| it.python.is_some()).count();
    assert!(
        file.vectors.len() >= 470 && calls >= 80,
        "only {} vectors, {calls} of them calls of Python",
        file.vectors.len()
    );
    for vector in &file.vectors {
        let name = &vector.name;
        match (vector.compute(), &vector.error) {
            (Err(error), Some(code)) => assert_eq!(error.code(), code, "{name}: {error}"),
            (Ok((key, parts)), None) => {
                assert_eq!(Some(&key), vector.key.as_ref(), "{name}");
                assert_eq!(Some(&parts), vector.parts.as_ref(), "{name}");
                let bytes = vector.bytes();
                let fingerprint = Fingerprint::of_payload(&Payload::read(&bytes, []));
                assert_eq!(Some(fingerprint.to_string()), vector.fingerprint, "{name}");
            }
            (Ok((key, _)), Some(code)) => panic!("{name}: {key} instead of the refusal {code}"),
            (Err(error), None) => panic!("{name}: refused: {error}"),
        }
    }
}

#[test]
fn refusals_name_the_thing_and_say_what_to_do() {
    let rule: KeyRule = "/order_id".parse().unwrap();
    let refusal = |payload: &str| {
        rule.fields(&Delivered::payload(payload.as_bytes()))
            .unwrap_err()
            .to_string()
    };
    for (payload, named) in [
        ("{}", "/order_id is missing"),
        ("not json", "/order_id is missing"),
        (r#"{"order_id":null}"#, "write /order_id?null"),
        (
            r#"{"order_id":0.10000000000000001}"#,
            "0.10000000000000001, which a double rounds",
        ),
        (
            r#"{"order_id":18446744073709551616}"#,
            "18446744073709551616, which does not fit 64 bits",
        ),
        (r#"{"order_id":1,"order_id":2}"#, "\"order_id\" twice"),
    ] {
        let message = refusal(payload);
        assert!(message.contains(named), "{message}");
        assert!(
            message.contains("a retry of the same delivery fails again"),
            "{message}"
        );
    }
    assert!(
        "".parse::<KeyRule>()
            .unwrap_err()
            .to_string()
            .contains("the key rule is empty")
    );
    let long = format!("{{\"order_id\":\"{}\"}}", "x".repeat(70_000));
    assert!(refusal(&long).contains("70000 bytes, the limit is 65536"));
}

// === impl Vector ===

impl Vector {
    fn compute(&self) -> Result<(String, Vec<VectorPart>), KeyError> {
        let mut scope = Scope::new(&self.namespace, &self.route);
        scope.method.clone_from(&self.method);
        scope.caller.clone_from(&self.caller);
        let rule = KeyRule::new(self.rule.iter().map(String::as_str))?;
        let payload = self.bytes();
        let mut delivered = Delivered::payload(&payload);
        for (name, value) in &self.named {
            delivered = delivered.with(name, value);
        }
        let key = rule.key(&scope, &delivered)?;
        Ok((
            key.to_string(),
            rule.fields(&delivered)?
                .iter()
                .map(VectorPart::of)
                .collect(),
        ))
    }

    fn bytes(&self) -> Vec<u8> {
        match (&self.payload, &self.payload_base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(base64)) => BASE64_STANDARD.decode(base64).unwrap(),
            (Some(_), Some(_)) | (None, None) => panic!("{}: one payload, please", self.name),
        }
    }
}

impl VectorPart {
    fn of(field: &Field) -> Self {
        let text = match field.kind {
            'h' => hex::encode(&field.bytes),
            _ => String::from_utf8(field.bytes.clone()).unwrap(),
        };
        Self {
            kind: field.kind.to_string(),
            text,
        }
    }
}
