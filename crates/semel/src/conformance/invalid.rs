//! Wrong calls: refused in words that name the thing, with nothing written.

use super::answer::{Judged, invalid, is, that};
use super::behaviour::behaviours;
use super::letter::letter;
use super::stage::{DONE, LEASE, RETENTION, Stage, WHY};
use crate::Error;
use crate::letter::{Letter, Mark, Marked, Put, ROUTE_BYTES_MAX, Reason};
use crate::record::{Claim, State};
use crate::store::{Cursor, LEASE_MAX, Letters, RETENTION_MAX, STEP_NAME_BYTES_MAX, StoreExt};
use bytes::Bytes;
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    a_wrong_lease_or_retention_is_invalid,
    a_run_that_may_outlive_its_record_is_invalid,
    renewal_with_a_wrong_lease_is_invalid,
    a_wrong_name_is_invalid,
    a_strange_list_cursor_is_refused_or_harmless,
];

behaviours![
    LETTERS:
    a_strange_letter_cursor_is_refused_or_harmless,
    a_letter_that_no_store_can_keep_is_invalid,
];

async fn a_wrong_lease_or_retention_is_invalid(stage: &Stage<'_>) -> Judged {
    let long = RETENTION_MAX + Duration::from_secs(1);
    for (lease, retention, names) in [
        (Duration::ZERO, RETENTION, "lease"),
        (LEASE_MAX + Duration::from_secs(1), RETENTION_MAX, "lease"),
        (LEASE + Duration::from_millis(1), LEASE, "retention"),
        (LEASE, long, "retention"),
    ] {
        let piece = stage.piece();
        let claim = Claim {
            lease,
            retention,
            ..piece.claim()
        };
        let answered = stage.store.claim(&claim).await;
        let call = format!("claim with lease {lease:?} and retention {retention:?}");
        invalid(&call, names, &answered)?;
        piece.is_absent().await?;
    }
    Ok(())
}

async fn a_run_that_may_outlive_its_record_is_invalid(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let claim = Claim {
        acts_for: Some(RETENTION + Duration::from_millis(1)),
        ..piece.claim()
    };
    let answered = stage.store.claim(&claim).await;
    invalid("claim of a run that acts for long", "act", &answered)?;
    piece.is_absent().await
}

async fn renewal_with_a_wrong_lease_is_invalid(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    for (lease_for, retention) in [(Duration::ZERO, RETENTION), (LEASE, LEASE / 2)] {
        let answered = stage.store.renew(&lease, lease_for, retention).await;
        invalid("renew with a wrong lease", "lease", &answered)?;
    }
    piece.is_still(&before).await
}

async fn a_wrong_name_is_invalid(stage: &Stage<'_>) -> Judged {
    let (_, lease) = stage.piece_in(State::Running).await?;
    let long = "n".repeat(STEP_NAME_BYTES_MAX + 1);
    for name in ["", "with\0nul", &long] {
        let result = Bytes::from_static(DONE);
        let begun = stage.store.step_begin(&lease, name).await;
        invalid("begin", "step name", &begun)?;
        let restarted = stage.store.step_restart(&lease, name).await;
        invalid("restart", "step name", &restarted)?;
        let completed = stage.store.step_complete(&lease, name, &result).await;
        invalid("complete", "step name", &completed)?;
    }
    Ok(())
}

/// A cursor from elsewhere may be refused, or lead anywhere in the list, but no further.
async fn a_strange_list_cursor_is_refused_or_harmless(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Succeeded).await?;
    let before = piece.record().await?;
    for after in strange_cursors() {
        match stage.store.list(None, Some(&after), 10).await {
            Ok(page) => that(page.items.len() <= 10, "a page of at most 10", page)?,
            Err(Error::Invalid(_)) => {}
            other => return that(false, "a page, or Invalid", other),
        }
        match stage.store.sweep(Some(&after)).await {
            Ok(_) | Err(Error::Invalid(_)) => {}
            other => return that(false, "a window swept, or Invalid", other),
        }
    }
    piece.is_still(&before).await
}

async fn a_strange_letter_cursor_is_refused_or_harmless(stage: &Stage<'_>) -> Judged {
    let letter = letter(Reason::Failed, WHY);
    let (letters, id) = (stage.letters(), &letter.id);
    is("put a letter", Put::Applied, letters.put(&letter).await)?;
    for after in strange_cursors() {
        match Letters::list(letters.as_ref(), Some(&after), 10).await {
            Ok(page) => that(page.items.len() <= 10, "a page of at most 10", page)?,
            Err(Error::Invalid(_)) => {}
            other => return that(false, "a page, or Invalid", other),
        }
    }
    is(
        "get the letter",
        Some(letter.clone()),
        letters.get(id).await,
    )?;
    is(
        "close the letter",
        Marked::Applied,
        letters.mark(id, Mark::Closed).await,
    )
}

async fn a_letter_that_no_store_can_keep_is_invalid(stage: &Stage<'_>) -> Judged {
    let good = letter(Reason::Failed, WHY);
    let wrong = [
        Letter {
            route: "r".repeat(ROUTE_BYTES_MAX + 1),
            ..good.clone()
        },
        Letter {
            route: "a\0b".into(),
            ..good.clone()
        },
        Letter {
            retention: RETENTION_MAX + Duration::from_secs(1),
            ..good
        },
    ];
    for letter in wrong {
        let answered = stage.letters().put(&letter).await;
        invalid("put a letter", "letter", &answered)?;
        let kept = stage.letters().get(&letter.id).await;
        is("get the letter", None, kept)?;
    }
    Ok(())
}

/// Cursors that no store gave.
fn strange_cursors() -> [Cursor; 7] {
    [
        &b""[..],
        b"\0",
        b"-1",
        b"from elsewhere",
        &[0xFF; 8],
        &[0xFF; 32],
        &[0xFF; 40],
    ]
    .map(|bytes| Cursor(Bytes::from_static(bytes)))
}
