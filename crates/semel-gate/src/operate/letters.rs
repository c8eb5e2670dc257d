//! Letters: looking at them, and discarding one. Redriving needs a gate.

use super::{
    BODY_HIDDEN, LETTERS_COUNTED_MAX, Operator, PAGE_ITEMS_MAX, Refused, body, cursor, moment, set,
};
use crate::audit::AuditedAct;
use crate::hiding::{shown_path, shown_value};
use crate::letters::StoredDelivery;
use crate::letters::status::{self, LetterStatus, Observed};
use semel::clock::Time;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Reason, Standing};
use semel::protocol::State;
use semel::store::{Cursor, Letters, StoreExt};
use semel::{Error, Key};
use serde_json::{Map, Value, json};

/// The shortest beginning of an id that stands for it.
const PREFIX_DIGITS_MIN: usize = 8;
const ID_DIGITS: usize = 64;

// === impl Operator ===

impl Operator {
    /// A page of open letters, oldest first, each with the standing of its work. Those whose work has
    /// succeeded are closed by being looked at, and left out.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn letters(&self, after: Option<&Cursor>, limit: u32) -> Result<Value, Refused> {
        let page = Letters::list(self.letter_store(), after, limit).await?;
        let mut letters = Vec::with_capacity(page.items.len());
        for item in &page.items {
            letters.extend(listed(item, status::see(self.letter_store(), item).await?));
        }
        Ok(json!({"letters": letters, "next": cursor(page.next.as_ref())}))
    }

    /// One letter with its delivery. `id` may be a beginning of at least 8 digits.
    ///
    /// # Errors
    /// When there is none, its work has succeeded, it cannot be read, or those of the store.
    pub async fn letter(&self, id: &str) -> Result<Value, Refused> {
        let letter = self.find(id).await?;
        let seen = status::see(self.letter_store(), &letter.head(Time(0))).await?;
        if let Some(LetterStatus { key, .. }) = succeeded(seen) {
            return Err(Refused::absent(
                "the work of this letter has succeeded, so the letter is closed",
                "`semel records show` shows what became of its key",
            )
            .with("key", key.to_string()));
        }
        let kept = StoredDelivery::decode(&letter.delivery)?;
        let listed = self.head_of(&letter.id).await?;
        let shows = self.sees_bodies(&kept.head.route);
        let private_path = self
            .gate()
            .and_then(|gate| gate.private_path(&kept.head.route));
        let mut told = json!({
            "id": letter.id.to_string(),
            "reason": letter.reason.word(),
            "record": record_word(seen),
            "redriven": letter.redriven,
            "for_operator": letter.head(Time(0)).is_for_operator(),
            "key": letter.key.map(|key| key.to_string()),
            "created_at": listed.map_or(Value::Null, |head| moment(head.created_at)),
            "route": kept.head.route,
            "method": kept.head.method,
            "path": shown_path(&kept.head.path, private_path, shows),
            "headers": headers(&kept, shows),
            "why": kept.head.why,
            "latest_run": seen.says(),
            "status": seen.status(),
            "body_bytes": kept.body.len(),
        });
        if shows {
            set(&mut told, "body", body(&kept.body));
        } else {
            set(&mut told, "body_hidden", BODY_HIDDEN.into());
        }
        Ok(told)
    }

    /// Closes a letter without running it. A tombstone stays for the route's retention, so that the next
    /// duplicate does not bring it back while its record stays as it is.
    ///
    /// # Errors
    /// When there is none, its work is running, or those of the store.
    pub async fn discard(&self, id: &str) -> Result<Value, Refused> {
        let letter = self.find(id).await?;
        self.not_running(&letter.work_key()).await?;
        let key = letter.key.map(|key| key.to_string());
        match self.close(&letter.id, letter.key, letter.reason).await? {
            Marked::Applied => Ok(json!({
                "act": "discard", "letter": letter.id.to_string(), "key": key,
                "before": letter.reason.word(), "after": "discarded",
                "says": "this delivery is gone for good; its record, if there is one, stays as it is, and as long as it \
                         does a duplicate is not kept again during the route's retention; after an act on that \
                         record (`semel records resolve` or `forget`) a duplicate may run or be kept as a letter",
            })),
            Marked::Gone => Err(no_letter()),
        }
    }

    /// Closes a letter, and audits that.
    pub(super) async fn close(
        &self,
        id: &LetterId,
        key: Option<Key>,
        reason: Reason,
    ) -> Result<Marked, Error> {
        let closed = self.letter_store().mark(id, Mark::Closed).await;
        let after = match &closed {
            Ok(Marked::Applied) => "discarded",
            Ok(Marked::Gone) => "unchanged",
            Err(_) => "unknown",
        };
        self.audit().note(AuditedAct {
            key,
            letter: Some(*id),
            before: reason.word().into(),
            after: after.into(),
            ..AuditedAct::new("discard", self.who())
        });
        closed
    }

    /// What runs may yet succeed, or fail and be kept again: who discards it now does not know what they throw away.
    pub(super) async fn not_running(&self, work: &Key) -> Result<(), Refused> {
        let record = self.store().look(work).await?;
        let now = self.audit().now();
        match record {
            Some(record) if record.state == State::Running && record.lease_until > now => {
                Err(Refused::conflict(
                    "its work is running",
                    "wait for its end, then look again, or release it first (`semel records release`); nothing was done, the \
                     letter stays",
                )
                .with("outcome", "running"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The letter of this id, or of an id that begins so.
    pub(crate) async fn find(&self, text: &str) -> Result<Letter, Refused> {
        let id = self.id(text).await?;
        let letter = self.letter_store().get(&id).await?;
        letter.ok_or_else(no_letter)
    }

    /// What lists show of an open letter.
    pub(crate) async fn head_of(&self, id: &LetterId) -> Result<Option<LetterHead>, Refused> {
        Ok(first(self.letter_store(), |head| head.id == *id).await?)
    }

    /// The open letters of this key, among the oldest [`LETTERS_COUNTED_MAX`].
    pub(crate) async fn letters_of_key(&self, key: &Key) -> Result<Vec<LetterHead>, Refused> {
        let mut letters = Vec::new();
        let note = |head: &LetterHead| {
            if head.key.as_ref() == Some(key) {
                letters.push(head.clone());
            }
            false
        };
        first(self.letter_store(), note).await?;
        Ok(letters)
    }

    async fn id(&self, text: &str) -> Result<LetterId, Refused> {
        let digits = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        if !(PREFIX_DIGITS_MIN..=ID_DIGITS).contains(&text.len()) || !text.chars().all(digits) {
            return Err(Refused::mistaken(
                format!("{text:?} is not the id of a letter"),
                "an id has 64 lower-case hex digits, of which the first 8 or more will do",
            ));
        }
        let mut bytes = [0; 32];
        if hex::decode_to_slice(text, &mut bytes).is_ok() {
            return Ok(LetterId(bytes));
        }
        let begins = |head: &LetterHead| head.id.to_string().starts_with(text);
        let found = first(self.letter_store(), begins)
            .await?
            .ok_or_else(no_letter)?;
        let other = first(self.letter_store(), |head| {
            head.id != found.id && begins(head)
        })
        .await?;
        match other {
            None => Ok(found.id),
            Some(_) => Err(Refused::conflict(
                format!("more than one letter's id begins with {text}"),
                "give more digits; nothing was changed",
            )),
        }
    }
}

/// How many letters wait, counted up to [`LETTERS_COUNTED_MAX`].
pub(crate) async fn count(letters: &dyn Letters) -> Result<usize, Error> {
    let mut count = 0;
    first(letters, |_| {
        count += 1;
        false
    })
    .await?;
    Ok(count.min(LETTERS_COUNTED_MAX))
}

/// The first letter that is meant, among the oldest [`LETTERS_COUNTED_MAX`].
async fn first(
    letters: &dyn Letters,
    mut is_meant: impl FnMut(&LetterHead) -> bool,
) -> Result<Option<LetterHead>, Error> {
    let (mut seen, mut after) = (0, None);
    while seen < LETTERS_COUNTED_MAX {
        let page = Letters::list(letters, after.as_ref(), PAGE_ITEMS_MAX).await?;
        seen += page.items.len();
        if let Some(head) = page.items.into_iter().find(&mut is_meant) {
            return Ok(Some(head));
        }
        match page.next {
            None => break,
            next => after = next,
        }
    }
    Ok(None)
}

pub(crate) fn no_letter() -> Refused {
    Refused::absent(
        "no letter of this id is open: its work has succeeded, it was discarded, or it was never here",
        "`semel letters list` shows what is there",
    )
}

/// A letter as lists show it; `None` when it is closed by now.
fn listed(head: &LetterHead, seen: Observed) -> Option<Value> {
    succeeded(seen).is_none().then(|| {
        json!({
            "id": head.id.to_string(),
            "reason": head.reason.word(),
            "record": record_word(seen),
            "latest_run": seen.says(),
            "status": seen.status(),
            "redriven": head.redriven,
            "for_operator": head.is_for_operator(),
            "route": head.route,
            "key": head.key.map(|key| key.to_string()),
            "bytes": head.bytes,
            "created_at": moment(head.created_at),
        })
    })
}

/// By which record it is closed, if it is.
fn succeeded(seen: Observed) -> Option<LetterStatus> {
    match seen {
        Observed::Status(stands) => Some(stands).filter(|it| it.standing == Standing::Succeeded),
        Observed::Damaged => None,
    }
}

/// What the record of a letter's work says.
const fn record_word(seen: Observed) -> &'static str {
    match seen {
        Observed::Damaged => "damaged",
        Observed::Status(stands) => match stands.standing {
            Standing::Succeeded => State::Succeeded.word(),
            Standing::Unfinished(state) => state.word(),
            Standing::NotRun => "not run",
            Standing::Unknown => "unknown",
        },
    }
}

/// Each header with all its values, as far as they are shown.
fn headers(kept: &StoredDelivery, shows: bool) -> Value {
    let mut headers: Map<String, Value> = Map::new();
    for (name, value) in &kept.head.headers {
        let values = headers.entry(name).or_insert_with(|| json!([]));
        if let Some(values) = values.as_array_mut() {
            values.push(shown_value(name, value, shows).into());
        }
    }
    Value::Object(headers)
}
