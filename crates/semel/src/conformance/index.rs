//! The index of transport ids: best effort, several per key and per id, for a while, and decided by never.

use super::answer::{Judged, invalid, is, ok, that};
use super::behaviour::behaviours;
use super::stage::{MOMENT, RETENTION, Stage};
use crate::Key;
use crate::record::Operation;
use crate::record::{Owner, State};
use crate::store::{FOUND_KEYS_MAX, INDEX_ID_BYTES_MAX, INDEX_IDS_MAX, RETENTION_MAX, StoreExt};
use bytes::Bytes;

behaviours![
    BEHAVIOURS:
    an_id_that_was_not_indexed_finds_nothing,
    a_key_is_found_by_each_of_its_ids,
    an_id_finds_each_of_its_keys,
    an_id_finds_no_more_keys_than_the_limit,
    indexing_again_changes_nothing_but_the_end,
    what_is_indexed_is_forgotten_in_time,
    any_bytes_are_an_id,
    an_index_takes_no_more_than_its_limits,
    an_index_needs_no_record_and_makes_none,
];

behaviours![
    OPERATORS:
    forgetting_removes_a_key_from_the_index,
];

/// An id that nobody has used.
fn id() -> Bytes {
    Bytes::from(format!("projects/p/tasks/{}", Owner::random()))
}

async fn index(stage: &Stage<'_>, key: &Key, ids: &[&Bytes]) -> Judged {
    let ids = ids.iter().copied().cloned().collect();
    ok("index", stage.store.index(key, ids, RETENTION).await)
}

async fn finds(stage: &Stage<'_>, id: &Bytes, keys: &[&Key]) -> Judged {
    let mut expected: Vec<Key> = keys.iter().copied().copied().collect();
    expected.sort_unstable();
    let found = ok("find", stage.store.find(id.clone()).await)?;
    that(
        found == expected,
        &format!("{id:?} finds {expected:?}"),
        &found,
    )
}

async fn an_id_that_was_not_indexed_finds_nothing(stage: &Stage<'_>) -> Judged {
    finds(stage, &id(), &[]).await
}

async fn a_key_is_found_by_each_of_its_ids(stage: &Stage<'_>) -> Judged {
    let (key, ids) = (stage.piece().key, [id(), id(), id()]);
    let [a, b, c] = &ids;
    index(stage, &key, &[a, b]).await?;
    index(stage, &key, &[c]).await?;
    index(stage, &key, &[]).await?;
    for id in &ids {
        finds(stage, id, &[&key]).await?;
    }
    Ok(())
}

async fn an_id_finds_each_of_its_keys(stage: &Stage<'_>) -> Judged {
    let (id, other) = (id(), id());
    let keys = [stage.piece().key, stage.piece().key];
    for key in &keys {
        index(stage, key, &[&id]).await?;
    }
    let [a, b] = &keys;
    index(stage, a, &[&other]).await?;
    finds(stage, &id, &[a, b]).await?;
    finds(stage, &other, &[a]).await
}

async fn an_id_finds_no_more_keys_than_the_limit(stage: &Stage<'_>) -> Judged {
    let id = id();
    for _ in 0..FOUND_KEYS_MAX + 2 {
        index(stage, &stage.piece().key, &[&id]).await?;
    }
    let found = ok("find", stage.store.find(id).await)?;
    let expected = format!("{FOUND_KEYS_MAX} keys");
    that(found.len() == FOUND_KEYS_MAX, &expected, &found)
}

async fn indexing_again_changes_nothing_but_the_end(stage: &Stage<'_>) -> Judged {
    let (key, id) = (stage.piece().key, id());
    index(stage, &key, &[&id, &id]).await?;
    stage.pass(RETENTION / 2).await;
    index(stage, &key, &[&id]).await?;
    // A shorter time does not bring the end nearer.
    let shorter = stage.store.index(&key, vec![id.clone()], MOMENT).await;
    ok("index", shorter)?;
    finds(stage, &id, &[&key]).await?;
    stage.pass(RETENTION / 2 + MOMENT).await;
    finds(stage, &id, &[&key]).await
}

async fn what_is_indexed_is_forgotten_in_time(stage: &Stage<'_>) -> Judged {
    for sweep in [false, true] {
        let (key, id) = (stage.piece().key, id());
        index(stage, &key, &[&id]).await?;
        stage.pass(RETENTION).await;
        if sweep {
            stage.sweep().await?;
        }
        finds(stage, &id, &[]).await?;
        index(stage, &key, &[&id]).await?;
        finds(stage, &id, &[&key]).await?;
    }
    Ok(())
}

async fn any_bytes_are_an_id(stage: &Stage<'_>) -> Judged {
    let key = stage.piece().key;
    let longest = Bytes::from(id().repeat(INDEX_ID_BYTES_MAX / id().len()));
    let own = Bytes::from([&b"\0\xff/"[..], &id()].concat());
    for id in [own, longest] {
        index(stage, &key, &[&id]).await?;
        finds(stage, &id, &[&key]).await?;
    }
    Ok(())
}

async fn an_index_takes_no_more_than_its_limits(stage: &Stage<'_>) -> Judged {
    let key = stage.piece().key;
    let many: Vec<_> = (0..=INDEX_IDS_MAX).map(|_| id()).collect();
    let long = vec![Bytes::from(vec![b'x'; INDEX_ID_BYTES_MAX + 1])];
    for (ids, keep) in [
        (many.clone(), RETENTION),
        (long, RETENTION),
        (vec![id()], RETENTION_MAX + MOMENT),
    ] {
        let refused = stage.store.index(&key, ids, keep).await;
        invalid("index beyond a limit", "transport id", &refused)?;
    }
    for id in &many {
        finds(stage, id, &[]).await?;
    }
    Ok(())
}

async fn an_index_needs_no_record_and_makes_none(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    index(stage, &piece.key, &[&id()]).await?;
    piece.is_absent().await?;
    for state in State::ALL {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        index(stage, &piece.key, &[&id()]).await?;
        piece.is_still(&before).await?;
    }
    Ok(())
}

async fn forgetting_removes_a_key_from_the_index(stage: &Stage<'_>) -> Judged {
    let (shared, own) = (id(), id());
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let other = stage.piece().key;
    index(stage, &piece.key, &[&shared, &own]).await?;
    index(stage, &other, &[&shared]).await?;
    // Refused while it runs: then it is still found.
    piece
        .act(Operation::Forget, crate::record::Acted::Refused)
        .await?;
    finds(stage, &own, &[&piece.key]).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    piece.applies(Operation::Forget).await?;
    finds(stage, &own, &[]).await?;
    finds(stage, &shared, &[&other]).await?;
    let looked = stage.store.look(&piece.key).await;
    is("look", None, looked)
}
