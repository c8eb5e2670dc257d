//! Many at once on one key: whatever the order, one of them has it.

pub(super) mod once;
pub(super) mod storm;
mod history;
mod rules;
mod kept;

use super::answer::{Judged, Plain, broken, granted, ok, shown, that};
use super::behaviour::behaviours;
use super::stage::{BUSY, LEASE, Piece, Stage, WAITING, is_next_run};
use crate::Error;
use crate::record::{Answer, Claim, Claimed, Lease, Operation, State};
use std::sync::Arc;
use tokio::sync::Barrier;

behaviours![
    BEHAVIOURS:
    one_of_many_claims_is_granted,
    one_of_many_take_overs_is_granted,
    one_of_many_claims_of_waiting_work_is_granted,
    many_claims_of_one_owner_are_one_grant,
    a_lapse_under_park_is_parked_for_all,
    many_keys_do_not_disturb_each_other,
];

/// How many call at once.
const CROWD: usize = 24;

/// How often a race is run.
const TIMES: usize = 8;

/// Makes all these calls at once, and tells in their order what each was told.
async fn at_once<T, Call>(calls: impl IntoIterator<Item = Call>) -> Judged<Vec<T>>
where
    T: Send + 'static,
    Call: Future<Output = Result<T, Error>> + Send + 'static,
{
    let calls: Vec<_> = calls.into_iter().collect();
    let start = Arc::new(Barrier::new(calls.len()));
    let spawn = |call: Call| {
        let start = Arc::clone(&start);
        tokio::spawn(async move {
            start.wait().await;
            call.await
        })
    };
    let asked: Vec<_> = calls.into_iter().map(spawn).collect();
    let mut told = Vec::new();
    for one in asked {
        match one.await {
            Ok(one) => told.push(ok("one of many calls", one)?),
            Err(panic) => return broken("every call answered", &panic.to_string()),
        }
    }
    Ok(told)
}

/// Applies all these operations at once.
async fn apply_at_once(stage: &Stage<'_>, operations: Vec<Operation>) -> Judged<Vec<Answer>> {
    let apply = |operation| {
        let store = Arc::clone(&stage.store);
        async move { store.apply(&operation).await }
    };
    at_once(operations.into_iter().map(apply)).await
}

/// Claims of the same work by many new owners at once.
async fn claims(stage: &Stage<'_>, claims: Vec<Claim>) -> Judged<Vec<Claimed>> {
    let claims = claims.into_iter().map(Operation::Claim).collect();
    let answers = apply_at_once(stage, claims).await?;
    let claimed = answers.into_iter().map(Answer::claimed);
    ok("claims", claimed.collect())
}

/// One grant; everybody else is told the same other thing.
fn one_grant(told: &[Claimed], others: &Claimed) -> Judged<Lease> {
    let grant = |claimed: &Claimed| granted("claim", Ok(claimed.clone())).ok();
    let mut leases = told.iter().filter_map(grant);
    let rest = told.iter().cloned().map(Plain::plain);
    let rest = rest.filter(|claimed| claimed == others).count();
    match (leases.next(), rest + 1 == told.len()) {
        (Some(lease), true) => Ok(lease),
        (Some(_) | None, _) => broken(
            &format!("one Granted, the other {} {others:?}", told.len() - 1),
            &shown(&told),
        ),
    }
}

fn crowd(claim: impl Fn() -> Claim) -> Vec<Claim> {
    (0..CROWD).map(|_| claim()).collect()
}

async fn one_of_many_claims_is_granted(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let piece = stage.piece();
        let told = claims(stage, crowd(|| piece.claim())).await?;
        let lease = one_grant(&told, &BUSY)?;
        let record = piece.is_in(State::Running).await?;
        let so = record.is_of(&lease) && record.attempts == 1;
        let expected = "the record is of the one that was granted";
        that(so, expected, (lease, record))?;
    }
    Ok(())
}

async fn one_of_many_take_overs_is_granted(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, first) = stage.piece_in(State::Running).await?;
        stage.pass(LEASE).await;
        let told = claims(stage, crowd(|| piece.claim())).await?;
        let second = one_grant(&told, &BUSY)?;
        is_next_run(&first, &second, 2)?;
    }
    Ok(())
}

async fn one_of_many_claims_of_waiting_work_is_granted(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, first) = stage.piece_in(State::Running).await?;
        piece.releases(&first, WAITING).await?;
        let told = claims(stage, crowd(|| piece.claim())).await?;
        one_grant(&told, &BUSY)?;
    }
    Ok(())
}

async fn many_claims_of_one_owner_are_one_grant(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let piece = stage.piece();
        let claim = piece.claim();
        let told = claims(stage, crowd(|| claim.clone())).await?;
        let first = told.first();
        let so =
            matches!(first, Some(Claimed::Granted(_))) && told.iter().all(|t| Some(t) == first);
        that(so, "the same grant for all", &told)?;
    }
    Ok(())
}

async fn a_lapse_under_park_is_parked_for_all(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let piece = stage.piece();
        let lease = piece.grant_to(&piece.parking()).await?;
        stage.pass(LEASE).await;
        let told = claims(stage, crowd(|| piece.parking())).await?;
        let so = told.iter().all(|claimed| *claimed == Claimed::Parked);
        that(so, "Parked for all", &told)?;
        let record = piece.is_in(State::Parked).await?;
        let so = record.is_of(&lease);
        that(so, "the fence and owner of the run", record)?;
    }
    Ok(())
}

async fn many_keys_do_not_disturb_each_other(stage: &Stage<'_>) -> Judged {
    let pieces: Vec<Piece> = (0..CROWD * TIMES).map(|_| stage.piece()).collect();
    let told = claims(stage, pieces.iter().map(Piece::claim).collect()).await?;
    let granted = |told: &Claimed| matches!(told, Claimed::Granted(_));
    that(told.iter().all(granted), "Granted for every key", &told)?;
    for piece in &pieces {
        piece.is_in(State::Running).await?;
    }
    Ok(())
}
