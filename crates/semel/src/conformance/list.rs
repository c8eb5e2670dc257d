//! Listing records: each live one once, by state, in pages.

use super::answer::{Judged, broken, ok, that};
use super::behaviour::behaviours;
use super::stage::{AGES, DELAY, EXPIRING, LEASE, Piece, RETENTION, Stage, WINDOWS_MAX};
use crate::Key;
use crate::record::{Operation, Record, State};
use bytes::Bytes;
use std::collections::BTreeMap;

behaviours![
    BEHAVIOURS:
    every_live_record_is_listed_once,
    a_state_is_listed_alone,
    a_list_shows_what_look_shows_but_result_label_and_history,
    a_page_of_records_is_no_longer_than_asked,
    parked_records_are_listed_for_ever,
];

behaviours![
    OPERATORS:
    expired_and_forgotten_records_are_not_listed,
];

/// Every record of a state, in the order listed, among them whatever else the store keeps.
async fn list(stage: &Stage<'_>, state: Option<State>, limit: u32) -> Judged<Vec<(Key, Record)>> {
    let (mut records, mut after) = (Vec::new(), None);
    for _ in 0..WINDOWS_MAX {
        let page = stage.store.list(state, after.as_ref(), limit).await;
        let page = ok("list", page)?;
        let so = page.items.len() <= limit as usize;
        that(so, &format!("at most {limit} records"), page.items.len())?;
        records.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(records),
        }
    }
    broken("the list comes to an end", "ever another cursor")
}

/// How often each of these pieces was listed.
fn seen(listed: &[(Key, Record)], pieces: &[(State, Piece)]) -> BTreeMap<Key, usize> {
    let times = |key: Key| listed.iter().filter(|(listed, _)| *listed == key).count();
    let keys = pieces.iter().map(|(_, piece)| piece.key);
    keys.map(|key| (key, times(key))).collect()
}

/// Three pieces of work in each state.
async fn pieces(stage: &Stage<'_>) -> Judged<Vec<(State, Piece)>> {
    let mut pieces = Vec::new();
    for state in State::ALL.into_iter().cycle().take(15) {
        pieces.push((state, stage.piece_in(state).await?.0));
    }
    Ok(pieces)
}

/// Old work goes, so that lists are short.
async fn clear(stage: &Stage<'_>, pieces: &[(State, Piece)]) -> Judged {
    if !stage.subject.has_operators() {
        return Ok(());
    }
    stage.pass(LEASE).await;
    for (_, piece) in pieces {
        piece.applies(Operation::Forget).await?;
    }
    Ok(())
}

async fn every_live_record_is_listed_once(stage: &Stage<'_>) -> Judged {
    let pieces = pieces(stage).await?;
    for limit in [2, 7, 1_000] {
        let seen = seen(&list(stage, None, limit).await?, &pieces);
        let so = seen.values().all(|times| *times == 1);
        that(so, &format!("each record once, by pages of {limit}"), seen)?;
    }
    clear(stage, &pieces).await
}

async fn a_state_is_listed_alone(stage: &Stage<'_>) -> Judged {
    let pieces = pieces(stage).await?;
    for state in State::ALL {
        for limit in [2, 1_000] {
            let listed = list(stage, Some(state), limit).await?;
            let alone = listed.iter().all(|(_, record)| record.state == state);
            that(alone, &format!("{state} records alone"), &listed)?;
            let seen = seen(&listed, &pieces);
            let so = pieces
                .iter()
                .all(|(of, piece)| seen.get(&piece.key) == Some(&usize::from(*of == state)));
            let expected = format!("each {state} record once, by pages of {limit}");
            that(so, &expected, seen)?;
        }
    }
    clear(stage, &pieces).await
}

async fn a_list_shows_what_look_shows_but_result_label_and_history(stage: &Stage<'_>) -> Judged {
    let pieces = pieces(stage).await?;
    let listed: BTreeMap<_, _> = list(stage, None, 10).await?.into_iter().collect();
    for (_, piece) in &pieces {
        let expected = Record {
            result: None,
            label: Bytes::new(),
            history: Vec::new(),
            ..piece.record().await?
        };
        let shown = listed.get(&piece.key);
        that(shown == Some(&expected), &format!("{expected:?}"), shown)?;
    }
    clear(stage, &pieces).await
}

async fn a_page_of_records_is_no_longer_than_asked(stage: &Stage<'_>) -> Judged {
    let pieces = pieces(stage).await?;
    list(stage, None, 2).await?;
    clear(stage, &pieces).await
}

async fn expired_and_forgotten_records_are_not_listed(stage: &Stage<'_>) -> Judged {
    let mut pieces = Vec::new();
    for state in EXPIRING {
        pieces.push((state, stage.piece_in(state).await?.0));
    }
    stage.pass(LEASE + DELAY + RETENTION).await;
    let forgotten = stage.piece_in(State::Succeeded).await?.0;
    forgotten.applies(Operation::Forget).await?;
    pieces.push((State::Succeeded, forgotten));
    let seen = seen(&list(stage, None, 1_000).await?, &pieces);
    that(seen.values().all(|times| *times == 0), "none of them", seen)
}

async fn parked_records_are_listed_for_ever(stage: &Stage<'_>) -> Judged {
    let parked = [(State::Parked, stage.piece_in(State::Parked).await?.0)];
    stage.pass(AGES).await;
    stage.sweep().await?;
    for state in [None, Some(State::Parked)] {
        let seen = seen(&list(stage, state, 10).await?, &parked);
        that(seen.values().all(|times| *times == 1), "listed once", seen)?;
    }
    clear(stage, &parked).await
}
