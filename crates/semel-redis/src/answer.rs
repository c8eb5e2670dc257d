//! One translation: what a function answered → the words of the protocol.

use bytes::{Buf, Bytes};
use redis::Value;
use semel::clock::Time;
use semel::letter::{Letter, LetterHead, LetterId, Marked, Put, Reason};
use semel::protocol::{
    Acted, Answer, Claim, Claimed, Ending, Fence, Held, Lease, Operation, Owner, Record, Settled,
    State, StepBegun, StepRecord, Superseded,
};
use semel::{Error, Fingerprint, Key};
use std::time::Duration;
use std::vec;

/// The fields of an answer, from the first on.
pub(crate) struct Fields {
    fields: vec::IntoIter<Value>,
}

/// The answer to an operation.
pub(crate) fn answer(answer: Value, operation: &Operation) -> Result<Answer, Error> {
    match operation {
        Operation::Claim(claim) => claimed(answer, claim).map(Answer::Claimed),
        Operation::Renew { .. }
        | Operation::Complete { .. }
        | Operation::Fail { .. }
        | Operation::Release { .. }
        | Operation::StepRestart { .. }
        | Operation::StepComplete { .. } => held(answer).map(Answer::Held),
        Operation::Look(_) => looked(answer).map(Answer::Looked),
        Operation::StepBegin { .. } => step_begun(answer).map(Answer::StepBegun),
        Operation::Resolve { .. }
        | Operation::Redrive { .. }
        | Operation::Retain { .. }
        | Operation::ReleaseByOperator { .. }
        | Operation::Forget(_) => acted(answer).map(Answer::Acted),
        Operation::Steps(_) => steps(answer).map(Answer::Steps),
        Operation::Index { .. } => Ok(Answer::Indexed),
        Operation::Find(_) => found(answer).map(Answer::Found),
        Operation::Ready => Ok(Answer::Ready),
    }
}

fn claimed(answer: Value, claim: &Claim) -> Result<Claimed, Error> {
    let mut answer = Fields::new(answer)?;
    let word = answer.word()?;
    let fence = answer.fence()?;
    Ok(match word.as_slice() {
        b"granted" => {
            let _lease_until = answer.number()?;
            Claimed::Granted(Lease {
                key: claim.key,
                owner: claim.owner,
                fence,
                attempt: answer.count()?,
                born: answer.fence()?,
                in_doubt: answer.flag()?,
            })
        }
        b"replayed" => Claimed::Replayed(answer.settled()?),
        b"busy" => Claimed::Busy {
            retry_after: answer.duration()?,
        },
        b"not_yet" => Claimed::NotYet {
            retry_after: answer.duration()?,
        },
        b"parked" => Claimed::Parked,
        b"mismatched" => Claimed::Mismatched,
        other => return Err(unknown(other)),
    })
}

fn held(answer: Value) -> Result<Held, Error> {
    let mut answer = Fields::new(answer)?;
    let word = answer.word()?;
    Ok(match word.as_slice() {
        b"applied" => Held::Applied(answer.state()?),
        b"already" => Held::Already(answer.state()?),
        b"settled" => Held::Settled(answer.settled()?),
        b"parked" => Held::Parked,
        b"stale" => Held::Stale,
        other => return Err(unknown(other)),
    })
}

fn step_begun(answer: Value) -> Result<StepBegun, Error> {
    let mut answer = Fields::new(answer)?;
    let word = answer.word()?;
    Ok(match word.as_slice() {
        b"run" => StepBegun::Run,
        b"memo" => StepBegun::Memo {
            fence: answer.fence()?,
            result: answer.bytes()?.into(),
        },
        b"in_doubt" => StepBegun::InDoubt(answer.fence()?),
        b"settled" => StepBegun::Settled(answer.settled()?),
        b"parked" => StepBegun::Parked,
        b"stale" => StepBegun::Stale,
        other => return Err(unknown(other)),
    })
}

pub(crate) fn looked(answer: Value) -> Result<Option<Record>, Error> {
    let mut answer = Fields::new(answer)?;
    let word = answer.word()?;
    if word == b"absent" {
        return Ok(None);
    }
    let state = state(&word)?;
    let fence = answer.fence()?;
    let owner = Owner(answer.array()?);
    let attempts = answer.count()?;
    let born = answer.fence()?;
    let lease_until = Time(answer.number()?);
    let expires_at = Time(answer.number()?);
    let fingerprint = Fingerprint::from_bytes(answer.array()?);
    Ok(Some(Record {
        fingerprint,
        state,
        attempts,
        doubts: answer.count()?,
        in_doubt: answer.flag()?,
        acts_until: answer.maybe_time()?,
        doubted_at: answer.maybe_time()?,
        born,
        fence,
        owner,
        lease_until,
        expires_at,
        result: answer.maybe_bytes()?,
        label: answer.maybe_bytes()?.unwrap_or_default(),
        history: history(answer.maybe_bytes()?.unwrap_or_default())?,
    }))
}

/// Reads what `supersede` wrote.
fn history(mut text: Bytes) -> Result<Vec<Superseded>, Error> {
    let bad = || corrupt("a history that makes no sense");
    let mut history = Vec::new();
    while !text.is_empty() {
        let end = text.iter().position(|byte| *byte == b':').ok_or_else(bad)?;
        let head = text.split_to(end);
        text.advance(1);
        let fields: Vec<_> = head.split(|byte| *byte == b' ').collect();
        let [how, fence, until, at, who, result] = fields.as_slice() else {
            return Err(bad());
        };
        let [stood, in_doubt] = how else {
            return Err(bad());
        };
        let mut part = |digits: &[u8]| {
            let length = usize::try_from(number(digits)?).map_err(|_| bad())?;
            if length > text.len() {
                return Err(bad());
            }
            Ok(text.split_to(length))
        };
        history.push(Superseded {
            fence: Fence(number(fence)?),
            state: state(&[*stood])?,
            in_doubt: *in_doubt == b'1',
            until: Time(number(until)?),
            at: Time(number(at)?),
            by: part(who)?,
            result: part(result)?,
        });
    }
    Ok(history)
}

fn steps(answer: Value) -> Result<Vec<(String, StepRecord)>, Error> {
    let step = |answer| {
        let mut answer = Fields::new(answer)?;
        let name = answer.text()?;
        let fence = answer.fence()?;
        let done = answer.flag()?;
        let result = Bytes::from(answer.bytes()?);
        let result = done.then_some(result);
        Ok((name, StepRecord { fence, result }))
    };
    Fields::new(answer)?.fields.map(step).collect()
}

/// Keys, or digests of transport ids.
pub(crate) fn arrays(answer: Value) -> Result<Vec<[u8; 32]>, Error> {
    let mut answer = Fields::new(answer)?;
    let count = answer.fields.len();
    (0..count).map(|_| answer.array()).collect()
}

fn found(answer: Value) -> Result<Vec<Key>, Error> {
    let keys = arrays(answer)?.into_iter();
    Ok(keys.map(Key::from_bytes).collect())
}

fn acted(answer: Value) -> Result<Acted, Error> {
    let mut answer = Fields::new(answer)?;
    let word = answer.word()?;
    Ok(match word.as_slice() {
        b"applied" => Acted::Applied,
        b"refused" => Acted::Refused,
        b"gone" => match answer.word()?.as_slice() {
            b"0" => Acted::Gone(None),
            number => Acted::Gone(Some(state(number)?)),
        },
        other => return Err(unknown(other)),
    })
}

pub(crate) fn put(answer: Value) -> Result<Put, Error> {
    match Fields::new(answer)?.word()?.as_slice() {
        b"applied" => Ok(Put::Applied),
        b"already" => Ok(Put::Already),
        b"closed" => Ok(Put::Closed),
        other => Err(unknown(other)),
    }
}

pub(crate) fn marked(answer: Value) -> Result<Marked, Error> {
    match Fields::new(answer)?.word()?.as_slice() {
        b"applied" => Ok(Marked::Applied),
        b"gone" => Ok(Marked::Gone),
        other => Err(unknown(other)),
    }
}

pub(crate) fn letter(answer: Value, id: LetterId) -> Result<Option<Letter>, Error> {
    let mut answer = Fields::new(answer)?;
    match answer.word()?.as_slice() {
        b"gone" => Ok(None),
        b"letter" => Ok(Some(Letter {
            id,
            key: answer.letter_key()?,
            route: answer.text()?,
            reason: answer.reason()?,
            fence: answer.fence()?,
            retention: answer.duration()?,
            redriven: answer.flag()?,
            alarmed: answer.flag()?,
            delivery: answer.bytes()?.into(),
        })),
        other => Err(unknown(other)),
    }
}

pub(crate) fn letter_heads(answer: Value) -> Result<Vec<LetterHead>, Error> {
    Fields::new(answer)?.fields.map(letter_head).collect()
}

fn letter_head(answer: Value) -> Result<LetterHead, Error> {
    let mut answer = Fields::new(answer)?;
    Ok(LetterHead {
        id: LetterId(answer.array()?),
        key: answer.letter_key()?,
        route: answer.text()?,
        reason: answer.reason()?,
        fence: answer.fence()?,
        redriven: answer.flag()?,
        alarmed: answer.flag()?,
        bytes: answer.number()?,
        created_at: Time(answer.number()?),
    })
}

// === impl Fields ===

impl Fields {
    pub(crate) fn new(answer: Value) -> Result<Self, Error> {
        let Value::Array(fields) = answer else {
            return Err(Error::bug(format!("Redis answered {answer:?} to a call")));
        };
        Ok(Self {
            fields: fields.into_iter(),
        })
    }

    fn maybe_bytes(&mut self) -> Result<Option<Bytes>, Error> {
        match self.fields.next() {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes.into())),
            Some(Value::Nil) | None => Ok(None),
            Some(other) => Err(Error::bug(format!("Redis answered {other:?} as a field"))),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        if let Some(Value::BulkString(bytes)) = self.fields.next() {
            return Ok(bytes);
        }
        Err(Error::bug("Redis answered with a field too few"))
    }

    fn word(&mut self) -> Result<Vec<u8>, Error> {
        self.bytes()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.bytes()?;
        let found = bytes.len();
        <[u8; N]>::try_from(bytes)
            .map_err(|_| corrupt(&format!("a field of {found} bytes where {N} should be")))
    }

    pub(crate) fn number(&mut self) -> Result<u64, Error> {
        number(&self.bytes()?)
    }

    fn fence(&mut self) -> Result<Fence, Error> {
        Ok(Fence(self.number()?))
    }

    /// A number of runs.
    fn count(&mut self) -> Result<u32, Error> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| corrupt(&format!("{number} runs")))
    }

    /// A time, or nothing.
    fn maybe_time(&mut self) -> Result<Option<Time>, Error> {
        let bytes = self.bytes()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        number(&bytes).map(|number| Some(Time(number)))
    }

    fn duration(&mut self) -> Result<Duration, Error> {
        Ok(Duration::from_micros(self.number()?))
    }

    fn state(&mut self) -> Result<State, Error> {
        state(&self.bytes()?)
    }

    fn settled(&mut self) -> Result<Settled, Error> {
        let state = self.state()?;
        let ending: Option<Ending> = state.ending();
        Ok(Settled {
            ending: ending.ok_or_else(|| corrupt(&format!("{state} where an end should be")))?,
            keep: self.duration()?,
            result: self.bytes()?.into(),
        })
    }

    fn letter_key(&mut self) -> Result<Option<Key>, Error> {
        let digits = self.bytes()?;
        if digits == b"-" {
            return Ok(None);
        }
        let mut key = [0; 32];
        hex::decode_to_slice(&digits, &mut key).map_err(|_| corrupt("a letter with a bad key"))?;
        Ok(Some(Key::from_bytes(key)))
    }

    fn text(&mut self) -> Result<String, Error> {
        String::from_utf8(self.bytes()?).map_err(|_| corrupt("a name that is no text"))
    }

    fn flag(&mut self) -> Result<bool, Error> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(corrupt(&format!("{other} where 0 or 1 should be"))),
        }
    }

    fn reason(&mut self) -> Result<Reason, Error> {
        let number = self.number()?;
        let reason = u8::try_from(number).ok().and_then(Reason::from_number);
        reason.ok_or_else(|| corrupt(&format!("reason {number} of a letter")))
    }
}

fn number(digits: &[u8]) -> Result<u64, Error> {
    let text = String::from_utf8_lossy(digits);
    text.parse()
        .map_err(|_| corrupt(&format!("{text:?} where a number should be")))
}

fn state(digits: &[u8]) -> Result<State, Error> {
    let number = match digits {
        [digit @ b'1'..=b'5'] => digit - b'0',
        other => {
            let other = String::from_utf8_lossy(other);
            return Err(corrupt(&format!("{other:?} where a state should be")));
        }
    };
    State::from_number(number).ok_or_else(|| corrupt(&format!("state {number}")))
}

fn corrupt(what: &str) -> Error {
    Error::corrupt(format!(
        "Redis keeps {what}; stop and look who else writes under this prefix; a retry fails again"
    ))
}

fn unknown(word: &[u8]) -> Error {
    let word = String::from_utf8_lossy(word);
    Error::bug(format!(
        "Redis answered {word:?}, which does not answer that"
    ))
}
