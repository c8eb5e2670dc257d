//! What is known of work that somebody looks for: its record, its letters, and what this gate remembers.

use crate::letters::StoredDelivery;
use crate::operate::{LETTERS_COUNTED_MAX, Operator, PAGE_ITEMS_MAX, Refused};
use crate::recent::{Meant, RecentDelivery, indexed_as};
use crate::source;
use bytes::Bytes;
use http::StatusCode;
use semel::Key;
use semel::letter::{Letter, LetterHead};
use semel::store::{INDEX_ID_BYTES_MAX, Letters, StoreExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many letters are opened to look for a name in them: each is read as a whole.
pub(crate) const LETTERS_OPENED_MAX: usize = 1000;

/// How many bytes of letters are read for that: they can be large.
const LETTERS_OPENED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How many pieces of work one name may stand for.
pub(crate) const WORKS_MAX: usize = 100;

/// What may still be read of letters in one search.
#[derive(Debug)]
struct Room {
    letters: usize,
    bytes: u64,
    /// Whether a letter was left out.
    is_short: bool,
}

/// What is known of one piece of work.
#[derive(Debug, Default)]
struct Work {
    letters: Vec<LetterHead>,
    deliveries: Vec<Arc<RecentDelivery>>,
}

// === impl Operator ===

impl Operator {
    /// What is known of these keys, and of what a text stands for that is no key itself. Keys of which nothing is known are
    /// left out.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn find_work(&self, keys: Vec<Key>, text: Option<&str>) -> Result<Value, Refused> {
        let mut works: BTreeMap<Key, Work> =
            keys.iter().map(|key| (*key, Work::default())).collect();
        let mut nameless = Vec::new();
        let name = text.filter(|text| text.parse::<Key>().is_err());
        if let Some(name) = name {
            for delivery in self.remembered(name) {
                match delivery.key {
                    Some(key) => drop(works.entry(key).or_default()),
                    None => nameless.push(delivery.json()),
                }
            }
            for key in self.indexed(name).await? {
                works.entry(key).or_default();
            }
        }
        let (heads, all_read) = self.letters_of(&mut works, name).await?;
        let mut told = Vec::new();
        for (key, mut work) in works {
            if told.len() == WORKS_MAX {
                break;
            }
            work.deliveries = self.remembered_of(&key);
            let record = match self.record(&key, false).await {
                Ok(record) => record,
                Err(refused) if refused.status == StatusCode::NOT_FOUND => Value::Null,
                Err(refused) => return Err(refused),
            };
            if !record.is_null() || !work.deliveries.is_empty() || !work.letters.is_empty() {
                told.push(work.json(&key, &record));
            }
        }
        let looked: Vec<_> = keys.iter().map(ToString::to_string).collect();
        Ok(json!({
            "gate": self.gate().map(|gate| gate.settings.name.as_str()),
            "keys": looked,
            "works": told,
            "deliveries": nameless,
            "letters": heads.iter().map(letter_json).collect::<Vec<_>>(),
            "letters_all_read": all_read,
        }))
    }

    /// The keys that the store's index has for this name, if a gate writes one.
    pub(crate) async fn indexed(&self, text: &str) -> Result<Vec<Key>, Refused> {
        let id = indexed_as(text);
        if id.len() > INDEX_ID_BYTES_MAX {
            return Ok(Vec::new());
        }
        Ok(self.store().find(Bytes::from(id)).await?)
    }

    fn remembered(&self, text: &str) -> Vec<Arc<RecentDelivery>> {
        self.gate()
            .map(|gate| gate.recent.find(text))
            .unwrap_or_default()
    }

    fn remembered_of(&self, key: &Key) -> Vec<Arc<RecentDelivery>> {
        self.gate()
            .map(|gate| gate.recent.of_key(key))
            .unwrap_or_default()
    }

    /// Adds the letters of these pieces of work, and those that keep a delivery of this name; those of them that have no key
    /// are handed back, and whether all letters were read.
    async fn letters_of(
        &self,
        works: &mut BTreeMap<Key, Work>,
        name: Option<&str>,
    ) -> Result<(Vec<LetterHead>, bool), Refused> {
        let (mut nameless, mut seen, mut room, mut after) = (Vec::new(), 0, Room::new(), None);
        let meant = name.map(Meant::of);
        loop {
            let page = Letters::list(self.letter_store(), after.as_ref(), PAGE_ITEMS_MAX).await?;
            for head in page.items {
                seen += 1;
                let is_known = head.key.is_some_and(|key| works.contains_key(&key));
                let is_named = match meant
                    .as_ref()
                    .filter(|_| !is_known && room.takes(head.bytes))
                {
                    None => false,
                    Some(meant) => {
                        let letter = self.letter_store().get(&head.id).await?;
                        letter.is_some_and(|letter| keeps(&letter, meant))
                    }
                };
                match head.key {
                    Some(key) if is_known || is_named => {
                        works.entry(key).or_default().letters.push(head);
                    }
                    None if is_named => nameless.push(head),
                    Some(_) | None => {}
                }
            }
            after = page.next;
            if after.is_none() || seen >= LETTERS_COUNTED_MAX {
                return Ok((nameless, after.is_none() && !room.is_short));
            }
        }
    }
}

/// Whether a letter keeps a delivery that its sender called so. One that cannot be read keeps none.
fn keeps(letter: &Letter, meant: &Meant<'_>) -> bool {
    let Some(request) = StoredDelivery::decode(&letter.delivery)
        .ok()
        .and_then(|kept| kept.request().ok())
    else {
        return false;
    };
    let sender = source::sender(&crate::settings::Source::ALL, &request);
    let Ok(delivery) = source::read(sender, &request) else {
        return false;
    };
    let transport = delivery.transport;
    let is_name = |id: &Option<String>| id.as_deref().is_some_and(|id| meant.is_name(id));
    let trace = transport.traceparent.as_deref();
    is_name(&transport.task_name)
        || is_name(&transport.message_id)
        || trace.is_some_and(|trace| meant.is_trace(trace))
}

fn letter_json(head: &LetterHead) -> Value {
    json!({
        "id": head.id.to_string(),
        "reason": head.reason.word(),
        "route": head.route,
        "redriven": head.redriven,
        "for_operator": head.is_for_operator(),
    })
}

// === impl Room ===

impl Room {
    const fn new() -> Self {
        Self {
            letters: LETTERS_OPENED_MAX,
            bytes: LETTERS_OPENED_BYTES_MAX,
            is_short: false,
        }
    }

    /// Whether a letter of this size may be opened, too. A smaller one after it still may.
    fn takes(&mut self, bytes: u64) -> bool {
        let takes = self.letters > 0 && self.bytes >= bytes;
        if takes {
            self.letters -= 1;
            self.bytes -= bytes;
        } else {
            self.is_short = true;
        }
        takes
    }
}

// === impl Work ===

impl Work {
    fn json(&self, key: &Key, record: &Value) -> Value {
        let deliveries: Vec<_> = self.deliveries.iter().map(|it| it.json()).collect();
        let letters: Vec<_> = self.letters.iter().map(letter_json).collect();
        json!({
            "key": key.to_string(),
            "record": record,
            "letters": letters,
            "deliveries": deliveries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_search_reads_more_letters_or_bytes_than_it_may() {
        let mut room = Room::new();
        let opened = (0..LETTERS_OPENED_MAX + 5)
            .filter(|_| room.takes(1))
            .count();
        assert_eq!((opened, room.is_short), (LETTERS_OPENED_MAX, true));

        let large = LETTERS_OPENED_BYTES_MAX / 4;
        let mut room = Room::new();
        let opened = (0..4).filter(|_| room.takes(large)).count();
        assert_eq!((opened, room.is_short), (4, false));
        assert!(!room.takes(1) && room.is_short);
    }
}
