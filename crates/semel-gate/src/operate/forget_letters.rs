//! Forgetting a key with its letters: nothing of its deliveries stays but tombstones without a body.

use super::{Operator, PAGE_ITEMS_MAX, Refused, set};
use http::StatusCode;
use semel::letter::{LetterHead, Marked};
use semel::store::Letters;
use semel::{Error, Key};
use serde_json::{Value, json};

// === impl Operator ===

impl Operator {
    /// Ends the incarnation of a key, and discards its letters: also those that are left of a record that is gone, and
    /// what is recorded of letters that ran under a key of their own.
    ///
    /// # Errors
    /// When it is running, or a letter's work is, there is neither record nor letter, or those of the store. What was done
    /// by then is done, and a retry does the rest.
    pub async fn forget_with_letters(&self, key: &Key) -> Result<Value, Refused> {
        let letters = self.all_letters_of(key).await?;
        self.not_running(key).await?;
        for head in &letters {
            self.not_running(&head.work_key()).await?;
        }
        let mut discarded = Vec::new();
        // Before the record: once that is gone, a new delivery may run, and be kept as the same letter.
        for head in &letters {
            if self.close(&head.id, head.key, head.reason).await? == Marked::Applied {
                discarded.push(Value::from(head.id.to_string()));
            }
        }
        for own in letters.iter().map(LetterHead::work_key) {
            if own != *key
                && let Err(refused) = self.forget(&own).await
                && !was_absent(&refused)
            {
                return Err(refused);
            }
        }
        let mut told = match self.forget(key).await {
            Err(refused) if !was_absent(&refused) => return Err(refused),
            Err(refused) if discarded.is_empty() => return Err(refused),
            Err(_) => json!({
                "act": "forget", "key": key.to_string(), "before": "absent", "after": "absent",
                "says": "it had no record any more; the next delivery of this key runs",
            }),
            Ok(told) => told,
        };
        set(&mut told, "letters", Value::Array(discarded));
        Ok(told)
    }

    /// However many letters there are: one that is left out is not forgotten.
    pub(super) async fn all_letters_of(&self, key: &Key) -> Result<Vec<LetterHead>, Error> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = Letters::list(self.letter_store(), after.as_ref(), PAGE_ITEMS_MAX).await?;
            found.extend(page.items.into_iter().filter(|head| head.key == Some(*key)));
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(found),
            }
        }
    }
}

fn was_absent(refused: &Refused) -> bool {
    refused.status == StatusCode::NOT_FOUND
}
