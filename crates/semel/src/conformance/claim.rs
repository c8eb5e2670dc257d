//! Asking to run: every answer, and that none but a grant disturbs the record.

use super::answer::{Judged, about, end, granted, is, that};
use super::behaviour::behaviours;
use super::stage::is_next_run;
use super::stage::{AT_ONCE, DELAY, DONE, LEASE, Piece, RETENTION, Stage, WAITING, WHY};
use crate::record::{Claim, Claimed, Ending, InDoubt, State};
use crate::store::StoreExt;
use crate::{Fingerprint, Key};
use std::num::NonZeroU32;

behaviours![
    BEHAVIOURS:
    an_absent_key_is_granted,
    a_live_lease_is_busy,
    same_owner_is_granted_again,
    same_owner_after_the_lapse_is_a_new_run,
    a_lapsed_lease_is_taken_over,
    a_success_is_replayed,
    a_final_failure_is_replayed,
    a_waiting_record_is_not_yet_due,
    a_waiting_record_that_is_due_is_granted,
    another_fingerprint_is_mismatched_in_every_state,
    another_fingerprint_does_not_take_over_a_lapsed_lease,
    a_lapse_under_park_is_parked,
    a_lapse_of_the_same_owner_under_park_is_parked,
    a_lapse_at_max_attempts_is_parked,
    a_lapse_below_max_attempts_runs_again,
    keys_that_differ_in_one_bit_are_apart,
];

async fn an_absent_key_is_granted(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    piece.is_absent().await?;
    let claim = piece.claim();
    let lease = piece.grant_to(&claim).await?;
    let so = lease.key == piece.key
        && lease.owner == claim.owner
        && lease.attempt == 1
        && lease.born == lease.fence;
    let expected = "the claim's key and owner, attempt 1, born = fence";
    that(so, expected, &lease)?;
    let record = piece.is_in(State::Running).await?;
    let so = record.fingerprint == piece.fingerprint
        && record.attempts == 1
        && record.is_of(&lease)
        && record.born == lease.born
        && record.result.is_none();
    that(so, "look shows what was granted, without a result", &record)?;
    let kept = record.expires_at.since(record.lease_until);
    let so = kept >= RETENTION;
    that(so, "retention begins where the lease ends", kept)
}

async fn a_live_lease_is_busy(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    match stage.store.claim(&piece.claim()).await {
        Ok(Claimed::Busy { retry_after }) => about("retry after", LEASE, retry_after)?,
        other => return that(false, "claim of a live lease: Busy", other),
    }
    piece.is_still(&before).await
}

async fn same_owner_is_granted_again(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let claim = piece.claim();
    let lease = piece.grant_to(&claim).await?;
    let before = piece.record().await?;
    let again = stage.store.claim(&claim).await;
    is("the same claim again", Claimed::Granted(lease), again)?;
    piece.is_still(&before).await
}

async fn same_owner_after_the_lapse_is_a_new_run(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let claim = piece.claim();
    let first = piece.grant_to(&claim).await?;
    stage.pass(LEASE).await;
    let second = piece.grant_to(&claim).await?;
    is_next_run(&first, &second, 2)
}

async fn a_lapsed_lease_is_taken_over(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let second = piece.grant().await?;
    is_next_run(&first, &second, 2)?;
    let record = piece.is_in(State::Running).await?;
    let so = record.is_of(&second) && record.attempts == 2;
    that(so, "the record is the new run's", record)
}

async fn a_success_is_replayed(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Succeeded).await?;
    let before = piece.record().await?;
    let so = before.is_of(&lease);
    that(so, "the completion's fence and owner", &before)?;
    replayed(stage, &piece, Ending::Succeeded, DONE).await?;
    piece.is_still(&before).await
}

async fn a_final_failure_is_replayed(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Failed).await?;
    let before = piece.record().await?;
    replayed(stage, &piece, Ending::Failed, WHY).await?;
    piece.is_still(&before).await
}

/// A duplicate is told the end, and how long it is remembered at least.
async fn replayed(stage: &Stage<'_>, piece: &Piece, ending: Ending, result: &[u8]) -> Judged {
    let answered = stage.store.claim(&piece.claim()).await;
    let expected = Claimed::Replayed(end(ending, result));
    if let Ok(Claimed::Replayed(settled)) = &answered {
        about("what is left of retention", LEASE + RETENTION, settled.keep)?;
    }
    is("claim of settled work", expected, answered)
}

async fn a_waiting_record_is_not_yet_due(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Waiting).await?;
    let before = piece.record().await?;
    match stage.store.claim(&piece.claim()).await {
        Ok(Claimed::NotYet { retry_after }) => about("retry after", DELAY, retry_after)?,
        other => return that(false, "claim before it is due: NotYet", other),
    }
    piece.is_still(&before).await
}

async fn a_waiting_record_that_is_due_is_granted(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Waiting).await?;
    stage.pass(DELAY).await;
    let second = piece.grant().await?;
    is_next_run(&first, &second, 2)?;
    let record = piece.is_in(State::Running).await?;
    that(record.result.is_none(), "the last failure is gone", record)
}

async fn another_fingerprint_is_mismatched_in_every_state(stage: &Stage<'_>) -> Judged {
    for state in State::ALL {
        let (piece, lease) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        // Even by the owner of the lease.
        for owner in [lease.owner, piece.claim().owner] {
            let other = Claim {
                owner,
                fingerprint: Fingerprint::of(b"another payload"),
                ..piece.claim()
            };
            let call = format!("claim of {state} work with another payload");
            is(&call, Claimed::Mismatched, stage.store.claim(&other).await)?;
        }
        piece.is_still(&before).await?;
    }
    Ok(())
}

async fn another_fingerprint_does_not_take_over_a_lapsed_lease(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let before = piece.record().await?;
    for in_doubt in [InDoubt::Retry, InDoubt::Park] {
        let other = Claim {
            fingerprint: Fingerprint::of(b"another payload"),
            in_doubt,
            ..piece.claim()
        };
        piece.is_told(&other, Claimed::Mismatched).await?;
    }
    piece.is_still(&before).await?;
    piece.reaches(&lease, State::Succeeded).await
}

async fn a_lapse_under_park_is_parked(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let lease = piece.grant_to(&piece.parking()).await?;
    stage.pass(LEASE).await;
    for claim in [piece.parking(), piece.parking(), piece.claim()] {
        piece.is_told(&claim, Claimed::Parked).await?;
    }
    let record = piece.is_in(State::Parked).await?;
    let so = record.is_of(&lease) && record.attempts == 1;
    let expected = "parked with the fence and owner of the lapsed run";
    that(so, expected, record)
}

async fn a_lapse_of_the_same_owner_under_park_is_parked(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let claim = piece.parking();
    piece.grant_to(&claim).await?;
    stage.pass(LEASE).await;
    piece.is_told(&claim, Claimed::Parked).await
}

async fn a_lapse_at_max_attempts_is_parked(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let twice = || Claim {
        max_attempts: NonZeroU32::new(2),
        ..piece.claim()
    };
    for attempt in [1, 2] {
        let lease = piece.grant_to(&twice()).await?;
        let so = lease.attempt == attempt;
        that(so, &format!("attempt {attempt}"), lease)?;
        stage.pass(LEASE).await;
    }
    piece.is_told(&twice(), Claimed::Parked).await
}

async fn a_lapse_below_max_attempts_runs_again(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let thrice = || Claim {
        max_attempts: NonZeroU32::new(3),
        ..piece.claim()
    };
    piece.grant_to(&thrice()).await?;
    stage.pass(LEASE).await;
    let second = piece.grant_to(&thrice()).await?;
    piece.fails(&second, AT_ONCE, WAITING).await?;
    let third = piece.grant_to(&thrice()).await?;
    that(third.attempt == 3, "attempt 3 of 3", third)
}

async fn keys_that_differ_in_one_bit_are_apart(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Succeeded).await?;
    for byte in [0, 15, 16, 31] {
        let mut bytes = *piece.key.as_bytes();
        for (i, b) in bytes.iter_mut().enumerate() {
            *b ^= u8::from(i == byte);
        }
        let other = Claim {
            key: Key::from_bytes(bytes),
            ..piece.claim()
        };
        granted("claim of another key", stage.store.claim(&other).await)?;
    }
    Ok(())
}
