//! Letters: kept once, in order, until they are closed.

use super::answer::{Judged, broken, is, ok, that};
use super::behaviour::behaviours;
use super::stage::{AGES, RETENTION, Stage, WINDOWS_MAX};
use crate::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put, Reason};
use crate::record::Fence;
use crate::store::Letters;
use crate::{Fingerprint, Key};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::slice::from_ref;

behaviours![
    BEHAVIOURS:
    a_letter_is_kept_as_it_was_put,
    a_letter_is_put_once,
    an_unknown_letter_is_not_there,
    letters_are_listed_oldest_first,
    letters_are_listed_once_each,
    a_page_of_letters_is_no_longer_than_asked,
    letters_do_not_expire,
    letters_put_while_listing_disturb_nothing,
];

/// A letter that the store has never seen.
#[allow(
    clippy::disallowed_methods,
    reason = "a key of its own on a store that others use"
)]
pub(super) fn letter(reason: Reason, delivery: &[u8]) -> Letter {
    let key = Key::from_bytes(rand::random());
    let fingerprint = Fingerprint::of(delivery);
    Letter {
        id: LetterId::of_key(reason, &key, &fingerprint),
        key: Some(key).filter(|_| reason != Reason::Invalid),
        route: "orders/\u{e9}: '1'".into(),
        reason,
        fence: Fence(1_800_000_000_000_007),
        retention: RETENTION,
        redriven: false,
        alarmed: false,
        delivery: Bytes::copy_from_slice(delivery),
    }
}

pub(super) async fn put(stage: &Stage<'_>, letter: &Letter, expected: Put) -> Judged {
    is("put a letter", expected, stage.letters().put(letter).await)
}

async fn put_many(stage: &Stage<'_>, how_many: usize) -> Judged<Vec<Letter>> {
    let mut letters = Vec::new();
    for (n, reason) in (0..how_many).zip(Reason::ALL.into_iter().cycle()) {
        let letter = letter(reason, &vec![7; n]);
        put(stage, &letter, Put::Applied).await?;
        letters.push(letter);
    }
    Ok(letters)
}

pub(super) async fn mark(
    stage: &Stage<'_>,
    letter: &Letter,
    mark: Mark,
    expected: Marked,
) -> Judged {
    let answered = stage.letters().mark(&letter.id, mark).await;
    is(&format!("mark a letter {mark:?}"), expected, answered)
}

pub(super) async fn close_all(stage: &Stage<'_>, letters: &[Letter]) -> Judged {
    for letter in letters {
        mark(stage, letter, Mark::Closed, Marked::Applied).await?;
    }
    Ok(())
}

/// All heads in the order listed, among them whatever else the store keeps.
pub(super) async fn list(stage: &Stage<'_>, limit: u32) -> Judged<Vec<LetterHead>> {
    let (mut heads, mut after) = (Vec::new(), None);
    for _ in 0..WINDOWS_MAX {
        let page = Letters::list(stage.letters().as_ref(), after.as_ref(), limit).await;
        let page = ok("list letters", page)?;
        let so = page.items.len() <= limit as usize;
        that(so, &format!("at most {limit} letters"), page.items.len())?;
        heads.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(heads),
        }
    }
    broken("the list comes to an end", "ever another cursor")
}

/// The heads of these letters alone.
pub(super) fn of(heads: &[LetterHead], letters: &[Letter]) -> Vec<LetterHead> {
    let ids: BTreeSet<_> = letters.iter().map(|letter| letter.id).collect();
    let mine = heads.iter().filter(|head| ids.contains(&head.id));
    mine.cloned().collect()
}

async fn a_letter_is_kept_as_it_was_put(stage: &Stage<'_>) -> Judged {
    let large = vec![0xA5; 1_048_576];
    for reason in Reason::ALL {
        let deliveries: [&[u8]; 3] = [b"", b"\0\xff:'\n", &large];
        let flags = [(false, false), (true, false), (false, true)];
        for (delivery, (redriven, alarmed)) in deliveries.into_iter().zip(flags) {
            let letter = Letter {
                redriven,
                alarmed,
                ..letter(reason, delivery)
            };
            put(stage, &letter, Put::Applied).await?;
            let kept = stage.letters().get(&letter.id).await;
            is("get the letter", Some(letter.clone()), kept)?;
            close_all(stage, &[letter]).await?;
        }
    }
    Ok(())
}

async fn a_letter_is_put_once(stage: &Stage<'_>) -> Judged {
    let first = letter(Reason::Parked, b"first");
    put(stage, &first, Put::Applied).await?;
    let second = Letter {
        reason: Reason::Failed,
        delivery: Bytes::from_static(b"second"),
        ..first.clone()
    };
    put(stage, &first, Put::Already).await?;
    put(stage, &second, Put::Already).await?;
    let kept = stage.letters().get(&first.id).await;
    is("get the letter", Some(first.clone()), kept)?;
    let listed = of(&list(stage, 100).await?, from_ref(&first));
    that(listed.len() == 1, "listed once", listed)?;
    close_all(stage, &[first]).await
}

async fn an_unknown_letter_is_not_there(stage: &Stage<'_>) -> Judged {
    let letter = letter(Reason::Failed, b"never put");
    is("get it", None, stage.letters().get(&letter.id).await)?;
    for what in [Mark::Redriven, Mark::Alarmed, Mark::Closed] {
        mark(stage, &letter, what, Marked::Gone).await?;
    }
    Ok(())
}

async fn letters_are_listed_oldest_first(stage: &Stage<'_>) -> Judged {
    let letters = put_many(stage, 9).await?;
    let listed = of(&list(stage, 4).await?, &letters);
    let ids = |of: &[LetterHead]| of.iter().map(|head| head.id).collect::<Vec<_>>();
    let expected: Vec<_> = letters.iter().map(|letter| letter.id).collect();
    let so = ids(&listed) == expected;
    that(so, "the order they were put in", ids(&listed))?;
    for (head, letter) in listed.iter().zip(&letters) {
        let so = *head == letter.head(head.created_at);
        that(so, "all that was put but the delivery", head)?;
    }
    let so = listed.is_sorted_by_key(|head| head.created_at);
    that(so, "times that do not fall", listed)?;
    close_all(stage, &letters).await
}

async fn letters_are_listed_once_each(stage: &Stage<'_>) -> Judged {
    let letters = put_many(stage, 12).await?;
    for limit in [1, 2, 3, 5, 12, 100] {
        let listed = of(&list(stage, limit).await?, &letters);
        let distinct: BTreeSet<_> = listed.iter().map(|head| head.id).collect();
        let so = listed.len() == 12 && distinct.len() == 12;
        let expected = format!("each of 12 letters once, by pages of {limit}");
        that(so, &expected, listed)?;
    }
    close_all(stage, &letters).await
}

async fn a_page_of_letters_is_no_longer_than_asked(stage: &Stage<'_>) -> Judged {
    let letters = put_many(stage, 5).await?;
    list(stage, 2).await?;
    close_all(stage, &letters).await
}

async fn letters_do_not_expire(stage: &Stage<'_>) -> Judged {
    let letter = letter(Reason::Parked, b"delivery");
    put(stage, &letter, Put::Applied).await?;
    stage.pass(AGES).await;
    stage.sweep().await?;
    let kept = stage.letters().get(&letter.id).await;
    is("get it much later", Some(letter.clone()), kept)?;
    close_all(stage, &[letter]).await
}

async fn letters_put_while_listing_disturb_nothing(stage: &Stage<'_>) -> Judged {
    let letters = put_many(stage, 6).await?;
    let (mut heads, mut after, mut late) = (Vec::new(), None, Vec::new());
    for _ in 0..WINDOWS_MAX {
        let page = ok(
            "list letters",
            Letters::list(stage.letters().as_ref(), after.as_ref(), 2).await,
        )?;
        heads.extend(page.items);
        if late.len() < 3 {
            late.extend(put_many(stage, 1).await?);
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let listed = of(&heads, &letters);
    let so = listed.len() == letters.len();
    that(so, "each of the first 6 letters once", listed)?;
    close_all(stage, &letters).await?;
    close_all(stage, &late).await
}
