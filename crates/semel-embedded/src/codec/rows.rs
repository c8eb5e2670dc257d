//! The fields of each kind of row.

use super::{Decode, Encode, Fields};
use bytes::Bytes;
use semel::clock::Time;
use semel::letter::{Letter, LetterHead, LetterId, Reason, Stored, Tombstone};
use semel::protocol::{
    Fence, Owner, Record, State, StepRecord, Superseded, decode_history, encode_history,
};
use semel::{Fingerprint, Key};
use std::time::Duration;

/// What every group writes of the store as a whole. It numbers the groups without a gap, which is
/// how a lost one is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// What the store's clock had come to.
    pub(crate) clock: Time,
    /// The last group that was known to be on disk when this one was written.
    pub(crate) synced: u64,
    /// How many letters were ever put.
    pub(crate) letters: u64,
}

/// A letter and when it was put; or its tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptLetter {
    pub(crate) stored: Stored,
    /// Its place in the order of letters.
    pub(crate) number: u64,
    pub(crate) created_at: Time,
}

/// A row whose key says it all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nothing;

/// A record without its result, as lists show it.
#[derive(Debug)]
pub(crate) struct Outline(pub(crate) Record);

/// The superseded attempts of an incarnation, in a row of their own, so that renewals and ends do not write them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History(pub(crate) Vec<Superseded>);

/// Until when a transport id finds a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundUntil(pub(crate) Time);

// === impl Head ===

impl Encode for Head {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.clock.0.to_be_bytes());
        out.extend_from_slice(&self.synced.to_be_bytes());
        out.extend_from_slice(&self.letters.to_be_bytes());
    }
}

impl Decode for Head {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let head = Self {
            clock: Time(fields.u64()?),
            synced: fields.u64()?,
            letters: fields.u64()?,
        };
        fields.end(head)
    }
}

// === impl Record ===

impl Encode for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.state.number());
        out.extend_from_slice(&self.attempts.to_be_bytes());
        out.extend_from_slice(&self.doubts.to_be_bytes());
        encode_time(self.doubted_at, out);
        out.push(u8::from(self.in_doubt));
        encode_time(self.acts_until, out);
        out.extend_from_slice(self.fingerprint.as_bytes());
        out.extend_from_slice(&self.born.0.to_be_bytes());
        out.extend_from_slice(&self.fence.0.to_be_bytes());
        out.extend_from_slice(&self.owner.0);
        out.extend_from_slice(&self.lease_until.0.to_be_bytes());
        out.extend_from_slice(&self.expires_at.0.to_be_bytes());
        encode_label(&self.label, out);
        encode_result(self.result.as_ref(), out);
    }
}

impl Decode for Record {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let outline = decode_outline(&mut fields)?;
        Some(Self {
            label: decode_label(&mut fields)?,
            result: decode_result(fields)?,
            ..outline
        })
    }
}

impl Decode for Outline {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        decode_outline(&mut fields).map(Self)
    }
}

/// Reads everything but label and result.
fn decode_outline(fields: &mut Fields<'_>) -> Option<Record> {
    Some(Record {
        state: State::from_number(fields.u8()?)?,
        attempts: fields.u32()?,
        doubts: fields.u32()?,
        doubted_at: decode_time(fields)?,
        in_doubt: fields.flag()?,
        acts_until: decode_time(fields)?,
        fingerprint: Fingerprint::from_bytes(fields.array()?),
        born: Fence(fields.u64()?),
        fence: Fence(fields.u64()?),
        owner: Owner(fields.array()?),
        lease_until: Time(fields.u64()?),
        expires_at: Time(fields.u64()?),
        result: None,
        label: Bytes::new(),
        history: Vec::new(),
    })
}

fn encode_time(time: Option<Time>, out: &mut Vec<u8>) {
    out.push(u8::from(time.is_some()));
    if let Some(time) = time {
        out.extend_from_slice(&time.0.to_be_bytes());
    }
}

fn decode_time(fields: &mut Fields<'_>) -> Option<Option<Time>> {
    if fields.flag()? {
        return Some(Some(Time(fields.u64()?)));
    }
    Some(None)
}

/// A label is written again by whatever writes the record: that is cheaper than a second row in journal and tables.
fn encode_label(label: &Bytes, out: &mut Vec<u8>) {
    let length = u16::try_from(label.len()).expect("the length of a label is checked first");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(label);
}

fn decode_label(fields: &mut Fields<'_>) -> Option<Bytes> {
    let length = usize::from(fields.u16()?);
    Some(Bytes::copy_from_slice(fields.bytes(length)?))
}

fn encode_result(result: Option<&Bytes>, out: &mut Vec<u8>) {
    out.push(u8::from(result.is_some()));
    if let Some(result) = result {
        out.extend_from_slice(result);
    }
}

fn decode_result(mut fields: Fields<'_>) -> Option<Option<Bytes>> {
    if fields.flag()? {
        return Some(Some(Bytes::copy_from_slice(fields.rest())));
    }
    fields.end(None)
}

// === impl History ===

impl Encode for History {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&encode_history(&self.0));
    }
}

impl Decode for History {
    fn decode(fields: Fields<'_>) -> Option<Self> {
        decode_history(Bytes::copy_from_slice(fields.rest())).map(Self)
    }
}

// === impl FoundUntil ===

impl Encode for FoundUntil {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.0.to_be_bytes());
    }
}

impl Decode for FoundUntil {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let until = Self(Time(fields.u64()?));
        fields.end(until)
    }
}

// === impl StepRecord ===

impl Encode for StepRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.fence.0.to_be_bytes());
        encode_result(self.result.as_ref(), out);
    }
}

impl Decode for StepRecord {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self {
            fence: Fence(fields.u64()?),
            result: decode_result(fields)?,
        })
    }
}

// === impl Nothing ===

impl Encode for Nothing {
    fn encode(&self, _out: &mut Vec<u8>) {}
}

// === impl KeptLetter ===

const OPEN: u8 = 1;
const CLOSED: u8 = 2;

impl Encode for KeptLetter {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(&self.created_at.0.to_be_bytes());
        match &self.stored {
            Stored::Open(letter) => {
                out.push(OPEN);
                letter.head(self.created_at).encode(out);
                out.extend_from_slice(&micros(letter.retention).to_be_bytes());
                out.extend_from_slice(&letter.delivery);
            }
            Stored::Closed(tombstone) => {
                out.push(CLOSED);
                out.extend_from_slice(&tombstone.fence.0.to_be_bytes());
                out.extend_from_slice(&tombstone.expires_at.0.to_be_bytes());
            }
        }
    }
}

impl Decode for KeptLetter {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let number = fields.u64()?;
        let created_at = Time(fields.u64()?);
        let stored = match fields.u8()? {
            OPEN => Stored::Open(decode_letter(fields)?),
            CLOSED => {
                let tombstone = Tombstone {
                    fence: Fence(fields.u64()?),
                    expires_at: Time(fields.u64()?),
                };
                Stored::Closed(fields.end(tombstone)?)
            }
            _ => return None,
        };
        Some(Self {
            stored,
            number,
            created_at,
        })
    }
}

fn decode_letter(mut fields: Fields<'_>) -> Option<Letter> {
    let head = decode_head(&mut fields)?;
    Some(Letter {
        id: head.id,
        key: head.key,
        route: head.route,
        reason: head.reason,
        fence: head.fence,
        retention: Duration::from_micros(fields.u64()?),
        redriven: head.redriven,
        alarmed: head.alarmed,
        delivery: Bytes::copy_from_slice(fields.rest()),
    })
}

/// A retention is at most a year, which is checked before it comes here.
fn micros(retention: Duration) -> u64 {
    u64::try_from(retention.as_micros()).unwrap_or(u64::MAX)
}

impl Encode for LetterHead {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0);
        out.push(self.reason.number());
        out.extend_from_slice(&self.fence.0.to_be_bytes());
        out.push(u8::from(self.redriven));
        out.push(u8::from(self.alarmed));
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&self.created_at.0.to_be_bytes());
        out.push(u8::from(self.key.is_some()));
        if let Some(key) = &self.key {
            out.extend_from_slice(key.as_bytes());
        }
        let length = u16::try_from(self.route.len()).expect("the name of a route is checked first");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(self.route.as_bytes());
    }
}

impl Decode for LetterHead {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let head = decode_head(&mut fields)?;
        fields.end(head)
    }
}

fn decode_head(fields: &mut Fields<'_>) -> Option<LetterHead> {
    Some(LetterHead {
        id: LetterId(fields.array()?),
        reason: Reason::from_number(fields.u8()?)?,
        fence: Fence(fields.u64()?),
        redriven: fields.flag()?,
        alarmed: fields.flag()?,
        bytes: fields.u64()?,
        created_at: Time(fields.u64()?),
        key: if fields.flag()? {
            Some(Key::from_bytes(fields.array()?))
        } else {
            None
        },
        route: {
            let length = usize::from(fields.u16()?);
            String::from_utf8(fields.bytes(length)?.to_vec()).ok()?
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Damage, Row, describe, record, seal, unseal};
    use super::*;
    use std::fmt::Debug;

    const KEY: Key = Key::from_bytes([7; 32]);

    fn settled() -> Record {
        Record {
            fingerprint: Fingerprint::of(b"payload"),
            state: State::Succeeded,
            attempts: 3,
            doubts: 2,
            doubted_at: Some(Time(15)),
            in_doubt: true,
            acts_until: Some(Time(25)),
            born: Fence(10),
            fence: Fence(12),
            owner: Owner([9; 16]),
            lease_until: Time(20),
            expires_at: Time(30),
            result: Some(Bytes::from_static(b"done")),
            label: Bytes::from_static(b"order 7"),
            history: Vec::new(),
        }
    }

    fn survives<T: Encode + Decode + PartialEq + Debug>(value: T) {
        let bytes = seal(b"under", &value, 5, &mut Vec::new());
        assert_eq!(unseal::<T>(b"under", &bytes), Ok(Row { value, group: 5 }));
    }

    #[test]
    fn every_kind_of_row_reads_back_as_it_was_written() {
        survives(settled());
        survives(Record {
            result: None,
            label: Bytes::new(),
            acts_until: None,
            doubted_at: None,
            state: State::Running,
            ..settled()
        });
        survives(Record {
            result: Some(Bytes::new()),
            ..settled()
        });
        survives(StepRecord {
            fence: Fence(4),
            result: Some(Bytes::from_static(b"charged")),
        });
        survives(FoundUntil(Time(9)));
        survives(History(vec![Superseded {
            fence: Fence(10),
            state: State::Waiting,
            in_doubt: true,
            until: Time(11),
            at: Time(12),
            by: Bytes::from_static(b"gate a"),
            result: Bytes::from_static(b"why"),
        }]));
        survives(Head {
            clock: Time(1),
            synced: 2,
            letters: 3,
        });
        for (key, redriven) in [(None, true), (Some(KEY), false)] {
            let letter = Letter {
                id: LetterId([1; 32]),
                key,
                route: "orders".into(),
                reason: Reason::Parked,
                fence: Fence(11),
                retention: Duration::from_micros(12),
                redriven,
                alarmed: !redriven,
                delivery: Bytes::from_static(b"POST /orders"),
            };
            survives(letter.head(Time(8)));
            survives(KeptLetter {
                stored: Stored::Open(letter),
                number: 6,
                created_at: Time(8),
            });
        }
        survives(KeptLetter {
            stored: Stored::Closed(Tombstone {
                fence: Fence(11),
                expires_at: Time(99),
            }),
            number: 6,
            created_at: Time(8),
        });
    }

    #[test]
    fn no_single_changed_byte_passes() {
        let key = record(&KEY);
        let good = seal(&key, &settled(), 5, &mut Vec::new());
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.to_vec();
                bad[at] ^= 1 << bit;
                assert!(unseal::<Record>(&key, &bad).is_err(), "byte {at} bit {bit}");
            }
        }
        for length in 0..good.len() {
            assert!(unseal::<Record>(&key, &good[..length]).is_err());
        }
    }

    #[test]
    fn a_sound_value_under_another_key_fails() {
        let good = seal(&record(&KEY), &settled(), 5, &mut Vec::new());
        let other = record(&Key::from_bytes([8; 32]));
        assert_eq!(unseal::<Record>(&other, &good), Err(Damage::Checksum));
    }

    #[test]
    fn messages_name_the_row() {
        assert_eq!(describe(&record(&KEY)), format!("record {KEY}"));
        let step = super::super::step(&KEY, Fence(1), "charge");
        assert_eq!(describe(&step), format!("step \"charge\" of {KEY}"));
    }
}
