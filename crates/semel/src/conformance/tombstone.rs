//! Closed letters: gone for readers, and not brought back by a duplicate.

use super::answer::{Judged, is, that};
use super::behaviour::behaviours;
use super::letter::{close_all, letter, list, mark, of, put};
use super::stage::{RETENTION, Stage};
use crate::clock::Time;
use crate::letter::{self, Letter, Mark, Marked, Put, Reason, Stored};
use crate::record::Fence;
use bytes::Bytes;
use std::slice::from_ref;

behaviours![
    BEHAVIOURS:
    a_closed_letter_is_gone_for_readers,
    a_duplicate_does_not_reopen_a_closed_letter,
    a_higher_fence_reopens_a_closed_letter,
    a_tombstone_knows_the_highest_fence,
    a_tombstone_ends_with_its_retention,
    a_redrive_is_noted_on_the_letter,
    an_alarm_is_noted_on_the_letter,
    every_short_history_of_a_letter_is_as_decided,
];

/// The same letter under a fence that is higher by so much, with another delivery.
fn later(letter: &Letter, by: u64) -> Letter {
    Letter {
        fence: Fence(letter.fence.0 + by),
        delivery: Bytes::from_static(b"the same again"),
        ..letter.clone()
    }
}

async fn a_closed_letter_is_gone_for_readers(stage: &Stage<'_>) -> Judged {
    let letter = letter(Reason::Failed, b"delivery");
    put(stage, &letter, Put::Applied).await?;
    close_all(stage, from_ref(&letter)).await?;
    is("get it", None, stage.letters().get(&letter.id).await)?;
    let listed = of(&list(stage, 100).await?, from_ref(&letter));
    that(listed.is_empty(), "not listed", listed)?;
    for what in [Mark::Redriven, Mark::Alarmed, Mark::Closed] {
        mark(stage, &letter, what, Marked::Gone).await?;
    }
    Ok(())
}

async fn a_duplicate_does_not_reopen_a_closed_letter(stage: &Stage<'_>) -> Judged {
    for fence in [Fence(0), Fence(5)] {
        let letter = Letter {
            fence,
            ..letter(Reason::Parked, b"delivery")
        };
        put(stage, &letter, Put::Applied).await?;
        close_all(stage, from_ref(&letter)).await?;
        put(stage, &letter, Put::Closed).await?;
        let lower = Letter {
            fence: Fence(fence.0.saturating_sub(1)),
            ..letter.clone()
        };
        put(stage, &lower, Put::Closed).await?;
        stage.pass(RETENTION / 2).await;
        stage.sweep().await?;
        put(stage, &letter, Put::Closed).await?;
        is("get it", None, stage.letters().get(&letter.id).await)?;
    }
    Ok(())
}

async fn a_higher_fence_reopens_a_closed_letter(stage: &Stage<'_>) -> Judged {
    let first = letter(Reason::Failed, b"delivery");
    let other = letter(Reason::Failed, b"put between");
    put(stage, &first, Put::Applied).await?;
    for what in [Mark::Redriven, Mark::Alarmed] {
        mark(stage, &first, what, Marked::Applied).await?;
    }
    close_all(stage, from_ref(&first)).await?;
    put(stage, &other, Put::Applied).await?;
    let next = later(&first, 1);
    put(stage, &next, Put::Applied).await?;
    let kept = stage.letters().get(&next.id).await;
    is("get the new one, without marks", Some(next.clone()), kept)?;
    let both = [first, other];
    let listed = of(&list(stage, 100).await?, &both);
    let ids: Vec<_> = listed.iter().map(|head| head.id).collect();
    let so = ids == [both[1].id, next.id];
    that(so, "listed once, behind what was put before", listed)?;
    close_all(stage, &both).await?;
    put(stage, &next, Put::Closed).await
}

async fn a_tombstone_knows_the_highest_fence(stage: &Stage<'_>) -> Judged {
    let first = letter(Reason::Parked, b"delivery");
    put(stage, &first, Put::Applied).await?;
    put(stage, &later(&first, 9), Put::Already).await?;
    put(stage, &later(&first, 3), Put::Already).await?;
    let risen = Letter {
        fence: Fence(first.fence.0 + 9),
        ..first.clone()
    };
    let kept = stage.letters().get(&first.id).await;
    is(
        "get the first delivery, under the highest fence",
        Some(risen.clone()),
        kept,
    )?;
    let listed = of(&list(stage, 100).await?, from_ref(&first));
    let so = listed.iter().all(|head| head.fence == risen.fence);
    that(so, "listed under the highest fence", listed)?;
    close_all(stage, from_ref(&first)).await?;
    put(stage, &later(&first, 9), Put::Closed).await?;
    put(stage, &later(&first, 10), Put::Applied).await?;
    close_all(stage, &[first]).await
}

async fn a_tombstone_ends_with_its_retention(stage: &Stage<'_>) -> Judged {
    for swept in [false, true] {
        let letter = letter(Reason::Failed, b"delivery");
        put(stage, &letter, Put::Applied).await?;
        close_all(stage, from_ref(&letter)).await?;
        stage.pass(RETENTION).await;
        if swept {
            stage.sweep().await?;
        }
        put(stage, &letter, Put::Applied).await?;
        stage.sweep().await?;
        let kept = stage.letters().get(&letter.id).await;
        is("get the letter", Some(letter.clone()), kept)?;
        close_all(stage, &[letter]).await?;
    }
    Ok(())
}

async fn a_redrive_is_noted_on_the_letter(stage: &Stage<'_>) -> Judged {
    let note = |letter| Letter {
        redriven: true,
        ..letter
    };
    is_noted(stage, Mark::Redriven, note).await
}

async fn an_alarm_is_noted_on_the_letter(stage: &Stage<'_>) -> Judged {
    let note = |letter| Letter {
        alarmed: true,
        ..letter
    };
    is_noted(stage, Mark::Alarmed, note).await
}

/// The mark must stay on the letter, beside the other one, whatever is put meanwhile.
async fn is_noted(stage: &Stage<'_>, what: Mark, note: impl Fn(Letter) -> Letter) -> Judged {
    for other in [None, Some(Mark::Redriven), Some(Mark::Alarmed)] {
        let letter = letter(Reason::Unfinished, b"delivery");
        put(stage, &letter, Put::Applied).await?;
        for mark_with in other.into_iter().chain([what, what]) {
            mark(stage, &letter, mark_with, Marked::Applied).await?;
        }
        let both = Letter {
            redriven: other == Some(Mark::Redriven),
            alarmed: other == Some(Mark::Alarmed),
            ..letter.clone()
        };
        let noted = note(both);
        put(stage, &letter, Put::Already).await?;
        let kept = stage.letters().get(&letter.id).await;
        is("get the letter", Some(noted.clone()), kept)?;
        let higher = later(&letter, 1);
        put(stage, &higher, Put::Already).await?;
        let listed = of(&list(stage, 100).await?, from_ref(&letter));
        let risen = Letter {
            fence: higher.fence,
            ..noted
        };
        let so = listed.len() == 1
            && listed
                .iter()
                .all(|head| *head == risen.head(head.created_at));
        that(so, "listed with the mark", listed)?;
        close_all(stage, &[letter]).await?;
    }
    Ok(())
}

/// One act on a letter.
#[derive(Clone, Copy, Debug)]
enum LetterAct {
    Put(u64),
    Mark(Mark),
}

const LETTER_ACTS: [LetterAct; 6] = [
    LetterAct::Put(0),
    LetterAct::Put(1),
    LetterAct::Put(2),
    LetterAct::Mark(Mark::Redriven),
    LetterAct::Mark(Mark::Alarmed),
    LetterAct::Mark(Mark::Closed),
];

/// A put, and every three acts after it, against the functions that decide.
async fn every_short_history_of_a_letter_is_as_decided(stage: &Stage<'_>) -> Judged {
    for first in LETTER_ACTS {
        for second in LETTER_ACTS {
            for third in LETTER_ACTS {
                history(stage, [LetterAct::Put(1), first, second, third]).await?;
            }
        }
    }
    Ok(())
}

async fn history(stage: &Stage<'_>, acts: [LetterAct; 4]) -> Judged {
    let (now, letter) = (Time(1), letter(Reason::Parked, b"delivery"));
    let mut stored: Option<Stored> = None;
    for act in acts {
        let write = match act {
            LetterAct::Put(by) => {
                let new = Letter {
                    fence: Fence(letter.fence.0 - 1 + by),
                    ..letter.clone()
                };
                let decided = letter::put(stored.as_ref(), &new, now);
                put(stage, &new, decided.answer).await?;
                decided.write
            }
            LetterAct::Mark(what) => {
                let decided = letter::mark(stored.as_ref(), what, now);
                mark(stage, &letter, what, decided.answer).await?;
                decided.write
            }
        };
        stored = write.or(stored);
    }
    let open = stored.as_ref().and_then(Stored::open).cloned();
    let kept = stage.letters().get(&letter.id).await;
    is(
        &format!("get the letter after {acts:?}"),
        open.clone(),
        kept,
    )?;
    close_all(stage, open.as_slice()).await
}
