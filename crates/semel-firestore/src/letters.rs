//! Letters: read, decide, commit, as records are.

use crate::attempts::{Attempts, Outcome};
use crate::client::{Client, Failure};
use crate::errors;
use crate::letter_document::{HEAD, closed_fields, open_fields, read_head, read_letter};
use crate::list::document_after;
use crate::names::{Collection, id};
use crate::parts::{Parts, Placed};
use crate::proto::value::ValueType;
use crate::proto::{Document, Value, Write};
use crate::query;
use crate::snapshot::version;
use crate::turn::Turns;
use crate::value::reference;
use crate::writes::{Version, replace};
use prost::Message;
use semel::Error;
use semel::clock::Time;
use semel::letter::{Letter, LetterDecision, LetterHead, LetterId, Stored};
use semel::store::{Cursor, Page};
use std::time::Duration;

/// A letter or its tombstone as it was read.
struct Found {
    stored: Stored,
    created_at: Option<Time>,
    parts: Option<Parts>,
    version: Version,
}

/// Does what `decide` says to the letter.
pub(crate) async fn change<A: Clone>(
    client: &Client,
    id: &LetterId,
    decide: impl Fn(Option<&Stored>, Time) -> LetterDecision<A>,
    timeout: Duration,
) -> Result<A, Error> {
    let mut turns = Turns::new(client, timeout);
    let mut attempts = Attempts::default();
    loop {
        match turn(client, id, &decide, &mut turns, &mut attempts).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => turns.after(failure).await?,
        }
    }
}

/// Reads the letter, if it is open.
pub(crate) async fn get(
    client: &Client,
    id: &LetterId,
    timeout: Duration,
) -> Result<Option<Letter>, Error> {
    let mut turns = Turns::new(client, timeout);
    loop {
        match Found::read(client, id, &mut turns).await {
            Ok((found, _)) => return Ok(found.and_then(|it| it.stored.open().cloned())),
            Err(failure) => turns.after(failure).await?,
        }
    }
}

/// Lists open letters, oldest first.
pub(crate) async fn list(
    client: &Client,
    after: Option<&Cursor>,
    limit: u32,
    timeout: Duration,
) -> Result<Page<LetterHead>, Error> {
    let limit = limit.max(1);
    let after = after.map(|cursor| place(client, cursor)).transpose()?;
    let letters = query::by_field(
        client,
        Collection::Letters,
        "created_at",
        &HEAD,
        after,
        limit,
    );
    let mut turns = Turns::new(client, timeout);
    let rows = loop {
        match client.query(letters.clone(), turns.within()).await {
            Ok(rows) => break rows,
            Err(failure) => turns.after(failure).await?,
        }
    };
    let last = rows.documents.last();
    let last = last.filter(|_| rows.documents.len() >= limit as usize);
    let head = |it: &Document| client.foreign.pass_over(&it.name, read_head(it));
    Ok(Page {
        items: rows.documents.iter().filter_map(head).collect(),
        next: last.and_then(cursor),
    })
}

async fn turn<A: Clone>(
    client: &Client,
    id: &LetterId,
    decide: &impl Fn(Option<&Stored>, Time) -> LetterDecision<A>,
    turns: &mut Turns<'_>,
    attempts: &mut Attempts<Stored, A>,
) -> Result<A, Failure> {
    let (found, now) = Found::read(client, id, turns).await?;
    match attempts.compare(found.as_ref().map(|it| (&it.stored, it.version))) {
        Outcome::Made(answer) => return Ok(answer),
        Outcome::Unknown => return Err(errors::unknown(&client.place).into()),
        Outcome::Open => {}
    }
    let decision = decide(found.as_ref().map(|it| &it.stored), now);
    let Some(new) = decision.write else {
        return match attempts.may_be_late() {
            true => Err(errors::unknown(&client.place).into()),
            false => Ok(decision.answer),
        };
    };
    let on = found.as_ref().map(|it| it.version);
    let writes = writes(client, id, found, &new, now, turns).await?;
    attempts.begin(on, new, decision.answer.clone());
    let committed = client.commit(writes, turns.within()).await;
    committed.inspect_err(|failure| {
        if !failure.may_have_written() {
            attempts.refused();
        }
    })?;
    Ok(decision.answer)
}

/// What is committed, after what no document can hold.
async fn writes(
    client: &Client,
    id: &LetterId,
    found: Option<Found>,
    new: &Stored,
    now: Time,
    turns: &mut Turns<'_>,
) -> Result<Vec<Write>, Failure> {
    let name = client.names.letter(id);
    let was_open = found.as_ref().and_then(|it| it.stored.open());
    let old = was_open.map(|it| {
        (
            Some(&it.delivery),
            found.as_ref().and_then(|it| it.parts.as_ref()),
        )
    });
    let delivery = new.open().map(|letter| &letter.delivery);
    let parts = Placed::of(client, &name, delivery, old, turns).await?;
    let fields = match new {
        Stored::Open(letter) => {
            // One that is new, or reopened, comes last.
            let since = found.as_ref().and_then(|it| it.created_at).unwrap_or(now);
            open_fields(letter, since, parts.now.as_ref())
        }
        Stored::Closed(tombstone) => closed_fields(*tombstone),
    };
    let mut writes = vec![replace(name, fields, found.map(|it| it.version))];
    writes.extend(parts.removed);
    Ok(writes)
}

/// What the last letter that was seen has for a time, and its name.
fn place(client: &Client, cursor: &Cursor) -> Result<[Value; 2], Error> {
    let split = cursor.0.split_first();
    let split = split.and_then(|(len, rest)| rest.split_at_checked((*len).into()));
    let (time, id) = split.unwrap_or_default();
    let name = document_after(client, Collection::Letters, id)?;
    let time = Value::decode(time).map_err(|_| {
        Error::invalid("the cursor is none of this store's; begin the list again without one")
    })?;
    Ok([time, reference(name)])
}

/// Somebody else's document may have anything for a time. What is neither a number nor before all numbers comes after ours.
fn cursor(last: &Document) -> Option<Cursor> {
    let time = last.fields.get("created_at")?;
    let (ValueType::NullValue(_)
    | ValueType::BooleanValue(_)
    | ValueType::IntegerValue(_)
    | ValueType::DoubleValue(_)) = time.value_type.as_ref()?
    else {
        return None;
    };
    let time = time.encode_to_vec();
    let mut bytes = vec![u8::try_from(time.len()).ok()?];
    bytes.extend_from_slice(&time);
    bytes.extend_from_slice(id(&last.name).as_bytes());
    Some(Cursor(bytes.into()))
}

// === impl Found ===

impl Found {
    /// The letter whole, and the server's time.
    async fn read(
        client: &Client,
        id: &LetterId,
        turns: &mut Turns<'_>,
    ) -> Result<(Option<Self>, Time), Failure> {
        let names = vec![client.names.letter(id)];
        let seen = client.read(names, turns.within()).await?;
        let Some(document) = seen.documents.into_iter().next().flatten() else {
            return Ok((None, seen.now));
        };
        let read = read_letter(&document)?;
        let (mut stored, created_at) = read.value;
        if let (Stored::Open(letter), Some(parts)) = (&mut stored, &read.parts) {
            letter.delivery = parts.fetch(client, turns).await?;
        }
        let found = Self {
            stored,
            created_at,
            parts: read.parts,
            version: version(&document)?,
        };
        Ok((Some(found), seen.now))
    }
}
