//! Looking at a request as it came, before it is decoded: the types know only what is served, and would drop the rest in
//! silence. One pass over the tags; payloads are stepped over.

use super::{NotServed, Refusals, Standing, well_known};
use crate::proto::POOL;
use crate::status::{cut, told};
use bytes::{Buf, Bytes};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_reflect::{FieldDescriptor, MessageDescriptor, MethodDescriptor};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstCodec;

/// How deep messages may lie in one another; prost refuses to decode deeper ones.
const DEPTH_MAX: usize = 100;

/// Checks the requests of one method.
#[derive(Clone, Debug)]
pub(crate) struct RequestCheck {
    method: Arc<str>,
    message: usize,
    refusals: Arc<Refusals>,
}

/// Checks what it decodes.
#[derive(Debug)]
pub(crate) struct CheckedCodec<A, Q> {
    check: RequestCheck,
    messages: PhantomData<(A, Q)>,
}

#[derive(Debug)]
pub(crate) struct CheckedDecoder<Q> {
    check: RequestCheck,
    message: PhantomData<Q>,
}

/// Every message by its number.
struct Table {
    numbers: HashMap<String, usize>,
    messages: Vec<MessageRules>,
}

/// What is done about the fields of a message.
struct MessageRules {
    name: String,
    /// By the fields' numbers.
    fields: Vec<Option<FieldRule>>,
}

enum FieldRule {
    /// Whatever is there is good.
    Any,
    /// What is there is a message.
    Message(usize),
    /// What is there is a span or a moment, of the field with this name, and has to be one that JSON can tell.
    Span(String),
    Moment(String),
    /// Nothing may be there, or only what is the same as nothing.
    Refused(NotServed, Presence),
}

/// When a field counts as set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// Always, when it is there.
    Explicit,
    /// When it is not zero, false or empty: some clients send that for what was not set.
    NotDefault,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

// === impl RequestCheck ===

impl RequestCheck {
    pub(crate) fn new(method: &MethodDescriptor, refusals: &Arc<Refusals>) -> Self {
        Self {
            method: method.full_name().into(),
            message: TABLE.number(&method.input()),
            refusals: Arc::clone(refusals),
        }
    }

    /// A request with nothing in it that is not served.
    pub(crate) fn decoded<Q: Message + Default>(&self, bytes: Bytes) -> Result<Q, Status> {
        let checked = TABLE.check(self.message, &bytes, 0);
        checked.map_err(|status| self.refused(status))?;
        Q::decode(bytes).map_err(|error| Status::internal(error.to_string()))
    }

    /// A refusal as it is told; it is remembered if something is not served.
    pub(crate) fn refused(&self, status: Status) -> Status {
        let status = told(status);
        self.refusals.note(&self.method, &status);
        status
    }

    /// Remembers a field that nobody knows, which JSON names.
    pub(crate) fn unknown(&self, name: &str) {
        let message = "Cannot find field: no field of this name is known";
        self.refusals.remember(&self.method, &cut(name), message);
    }
}

// === impl Table ===

impl Table {
    fn new() -> Self {
        let messages: Vec<_> = POOL.all_messages().collect();
        let names = messages.iter().map(|it| it.full_name().to_owned());
        let numbers = names.zip(0..).collect();
        let rules = |message| MessageRules::new(message, &numbers);
        Self {
            messages: messages.iter().map(rules).collect(),
            numbers,
        }
    }

    fn number(&self, message: &MessageDescriptor) -> usize {
        let number = self.numbers.get(message.full_name());
        *number.expect("every message is in the table")
    }

    /// What is not a message at all is left for the decoder to say so.
    fn check(&self, message: usize, mut bytes: &[u8], depth: usize) -> Result<(), Status> {
        let Some(rules) = self.messages.get(message).filter(|_| depth < DEPTH_MAX) else {
            return Ok(());
        };
        while bytes.has_remaining() {
            let Ok((number, wire_type)) = decode_key(&mut bytes) else {
                return Ok(());
            };
            let rule = rules.of(number);
            let rule = rule.ok_or_else(|| rules.unknown(number).status())?;
            if let WireType::StartGroup | WireType::EndGroup = wire_type {
                // No field is one, and the decoder would step over it.
                return Err(rules.group(number, rule));
            }
            let Some((value, content)) = content(&mut bytes, wire_type) else {
                return Ok(());
            };
            match rule {
                FieldRule::Any => {}
                FieldRule::Message(inner) => self.check(*inner, content, depth + 1)?,
                FieldRule::Span(field) => well_known::check_span(field, content)?,
                FieldRule::Moment(field) => well_known::check_moment(field, content)?,
                FieldRule::Refused(not_served, presence) => {
                    if *presence == Presence::Explicit || value != 0 {
                        return Err(not_served.status());
                    }
                }
            }
        }
        Ok(())
    }
}

/// A field's value, stepped over: its number or length, and what it holds if it has a length.
fn content<'a>(bytes: &mut &'a [u8], wire_type: WireType) -> Option<(u64, &'a [u8])> {
    let value = match wire_type {
        WireType::Varint => decode_varint(bytes).ok()?,
        WireType::SixtyFourBit => bytes.try_get_u64_le().ok()?,
        WireType::ThirtyTwoBit => bytes.try_get_u32_le().ok()?.into(),
        WireType::LengthDelimited => {
            let length = decode_varint(bytes).ok()?;
            let (content, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            *bytes = rest;
            return Some((length, content));
        }
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    Some((value, &[]))
}

// === impl MessageRules ===

impl MessageRules {
    fn new(message: &MessageDescriptor, numbers: &HashMap<String, usize>) -> Self {
        let last = message.fields().map(|it| it.number()).max();
        let rule = |number| {
            let field = message.get_field(number)?;
            Some(FieldRule::new(&field, numbers))
        };
        Self {
            name: message.full_name().into(),
            fields: (0..=last.unwrap_or(0)).map(rule).collect(),
        }
    }

    fn of(&self, number: u32) -> Option<&FieldRule> {
        self.fields.get(number as usize)?.as_ref()
    }

    /// A field came as a group.
    fn group(&self, number: u32, rule: &FieldRule) -> Status {
        match rule {
            FieldRule::Refused(not_served, _) => not_served.status(),
            FieldRule::Any | FieldRule::Message(_) | FieldRule::Span(_) | FieldRule::Moment(_) => {
                let name = &self.name;
                Status::invalid_argument(format!("Field {number} of {name} is not a group."))
            }
        }
    }

    /// Google may add fields after this was written.
    fn unknown(&self, number: u32) -> NotServed {
        NotServed {
            name: format!("{}.{number}", self.name),
            why: "no field of this number is known".into(),
        }
    }
}

// === impl FieldRule ===

impl FieldRule {
    fn new(field: &FieldDescriptor, numbers: &HashMap<String, usize>) -> Self {
        if let Some(refusal) = Standing::refusal(field) {
            let presence = match field.supports_presence() || field.is_list() || field.is_map() {
                true => Presence::Explicit,
                false => Presence::NotDefault,
            };
            return Self::Refused(refusal, presence);
        }
        let kind = field.kind();
        match kind.as_message().map(|it| it.full_name()) {
            Some("google.protobuf.Duration") => return Self::Span(field.name().into()),
            Some("google.protobuf.Timestamp") => return Self::Moment(field.name().into()),
            Some(_) | None => {}
        }
        let message = kind.as_message().filter(|it| {
            let is_anything = ["google.protobuf", "semel"].contains(&it.package_name());
            !field.is_map() && !is_anything
        });
        match message.and_then(|it| numbers.get(it.full_name())) {
            Some(number) => Self::Message(*number),
            None => Self::Any,
        }
    }
}

// === impl CheckedCodec ===

impl<A, Q> CheckedCodec<A, Q> {
    pub(crate) fn new(check: RequestCheck) -> Self {
        Self {
            check,
            messages: PhantomData,
        }
    }
}

impl<A, Q> Codec for CheckedCodec<A, Q>
where
    A: Message + 'static,
    Q: Message + Default + 'static,
{
    type Encode = A;
    type Decode = Q;
    type Encoder = <ProstCodec<A, Q> as Codec>::Encoder;
    type Decoder = CheckedDecoder<Q>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<A, Q>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        CheckedDecoder {
            check: self.check.clone(),
            message: PhantomData,
        }
    }
}

impl<Q: Message + Default> Decoder for CheckedDecoder<Q> {
    type Item = Q;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Q>, Status> {
        // The bytes are shared, not copied: what is long in a request is a part of what came.
        let bytes = source.copy_to_bytes(source.remaining());
        self.check.decoded(bytes).map(Some)
    }
}
