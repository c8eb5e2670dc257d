//! Every field of every message in a request is served or refused, by the table and in fact.

use super::*;
use crate::clock::Clock;
use prost::Message;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, Value};
use std::sync::Arc;
use std::time::Duration;

/// How deep a message lies in itself at the most: none of these does.
const DEPTH_MAX: usize = 8;

/// A field, and the fields that lead to it from a request.
type Path = Vec<FieldDescriptor>;

fn paths(message: &MessageDescriptor, before: &Path, found: &mut Vec<Path>) {
    assert!(before.len() < DEPTH_MAX, "{before:?}");
    for field in message.fields() {
        let mut path = before.clone();
        path.push(field.clone());
        found.push(path.clone());
        let kind = field.kind();
        let inner = kind.as_message().filter(|it| {
            !field.is_map() && !["google.protobuf", "semel"].contains(&it.package_name())
        });
        if let Some(inner) = inner.filter(|_| Standing::refusal(&field).is_none()) {
            paths(inner, &path, found);
        }
    }
}

/// A message in which only this is set, to something that is not nothing.
fn with(message: &MessageDescriptor, path: &[FieldDescriptor]) -> DynamicMessage {
    let mut made = DynamicMessage::new(message.clone());
    let (field, rest) = path.split_first().unwrap();
    let one = match field.kind() {
        Kind::Message(inner) if !rest.is_empty() => Value::Message(with(&inner, rest)),
        Kind::Message(inner) => Value::Message(DynamicMessage::new(inner)),
        Kind::String => Value::String("something".into()),
        Kind::Bytes => Value::Bytes("something".into()),
        Kind::Bool => Value::Bool(true),
        Kind::Enum(_) => Value::EnumNumber(1),
        Kind::Int32 => Value::I32(1),
        Kind::Int64 => Value::I64(1),
        Kind::Double => Value::F64(1.0),
        kind @ (Kind::Float
        | Kind::Uint32
        | Kind::Uint64
        | Kind::Sint32
        | Kind::Sint64
        | Kind::Fixed32
        | Kind::Fixed64
        | Kind::Sfixed32
        | Kind::Sfixed64) => panic!("no field has this kind yet: {kind:?}"),
    };
    let value = if field.is_map() {
        let key = prost_reflect::MapKey::String("key".into());
        Value::Map([(key, Value::String("value".into()))].into())
    } else if field.is_list() {
        Value::List(vec![one])
    } else {
        one
    };
    made.set_field(field, value);
    made
}

#[tokio::test]
async fn every_field_of_every_request_is_served_or_refused() {
    let refusals = Arc::new(Refusals::new(Clock::start(Duration::ZERO)));
    let (mut served, mut refused) = (0, 0);
    let services: Vec<_> = POOL.services().collect();
    let methods = services.iter().flat_map(|service| service.methods());
    for method in methods.filter(|it| refused_method(it).is_none()) {
        let check = RequestCheck::new(&method, &refusals);
        let mut found = Vec::new();
        paths(&method.input(), &Vec::new(), &mut found);
        for path in found {
            let field = path.last().unwrap();
            let bytes = with(&method.input(), &path).encode_to_vec();
            let checked = check.decoded::<()>(bytes.into()).err();
            let message = checked.map(|it| it.message().to_owned());
            match Standing::refusal(field) {
                Some(refusal) => {
                    assert_eq!(message.as_deref(), Some(refusal.status().message()));
                    refused += 1;
                }
                None => {
                    assert_eq!(message, None, "{path:?}");
                    served += 1;
                }
            }
        }
    }
    assert!(served > 200 && refused > 10, "{served} and {refused}");
}

#[tokio::test]
async fn numbers_that_nobody_knows_are_refused_at_any_depth() {
    let refusals = Arc::new(Refusals::new(Clock::start(Duration::ZERO)));
    let service = POOL.get_service_by_name("google.pubsub.v1.Publisher");
    let methods: Vec<_> = service.unwrap().methods().collect();
    let method = methods.iter().find(|it| it.name() == "Publish").unwrap();
    let check = RequestCheck::new(method, &refusals);
    // messages { 77: 1 }
    let inner: &[u8] = &[0x12, 3, 0xe8, 0x04, 1];
    let refused = check
        .decoded::<()>(bytes::Bytes::from_static(inner))
        .unwrap_err();
    assert_eq!(
        refused.message(),
        "PubsubMessage.77 is not served here: no field of this number is known"
    );
    // A group of number 77.
    let group: &[u8] = &[0xeb, 0x04, 0xec, 0x04];
    assert!(
        check
            .decoded::<()>(bytes::Bytes::from_static(group))
            .is_err()
    );
}
