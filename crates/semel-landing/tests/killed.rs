//! A process that is killed in the middle of its work, at every point of it: what it had acknowledged is in closed files
//! after the next start, whole lines only. And a disk that does not sync.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod ending;

use ending::{acknowledged, land_until_the_end};
use semel_landing::failpoint::Point;
use semel_landing::{FileSettings, FileSink, Landing, Row};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn the_process_that_ends() {
    land_until_the_end(|directory| {
        let mut settings = FileSettings::new(directory);
        settings.file_bytes_max = 1_500;
        FileSink::open(settings).unwrap()
    });
}

fn landed(directory: &Path) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        assert!(!path.to_string_lossy().ends_with(".open"), "{path:?}");
        if path.extension().is_some_and(|it| it == "jsonl") {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let row: Value = serde_json::from_str(line).unwrap();
                ids.insert(row["delivery_id"].as_str().unwrap().to_owned());
            }
        }
    }
    ids
}

#[test]
fn what_was_acknowledged_has_landed_wherever_the_process_ended() {
    let mut seen = 0;
    for point in Point::ALL {
        for nth in [1, 2, 3, 5] {
            let home = TempDir::new().unwrap();
            let place = home.path().to_str().unwrap();
            let acknowledged = acknowledged(place, point, nth);
            drop(FileSink::open(FileSettings::new(home.path())).unwrap());
            let landed = landed(home.path());
            assert!(
                acknowledged.is_subset(&landed),
                "{point:?} {nth}: {acknowledged:?} of {landed:?}"
            );
            seen += acknowledged.len();
        }
    }
    assert!(seen > 20, "only {seen} rows were acknowledged at all");
}

#[tokio::test]
async fn a_sync_that_failed_is_not_repeated_on_its_file() {
    static TO_FAIL: AtomicUsize = AtomicUsize::new(0);
    let take = |left: usize| left.checked_sub(1);
    semel_rig::failpoint::fail_if(move |word| {
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        word == Point::Written.word() && TO_FAIL.fetch_update(set, fetch, take).is_ok()
    });
    let home = TempDir::new().unwrap();
    let landing = Landing::begin(FileSink::open(FileSettings::new(home.path())).unwrap());
    let land = async |id: &str, failing: usize| {
        TO_FAIL.store(failing, Ordering::SeqCst);
        let mut row = Row::new("pubsub", "{}").named("v1_7", "f0");
        row.delivery_id = id.into();
        landing.land(row, Duration::from_secs(20)).await
    };
    land("first", 0).await.unwrap();
    land("in a new file", 1).await.unwrap();
    land("refused", 2).await.unwrap_err();
    land("last", 0).await.unwrap();
    landing.close().await;
    let expected = ["first", "in a new file", "last"].map(str::to_owned);
    assert_eq!(landed(home.path()), expected.into());
    let files = std::fs::read_dir(home.path()).unwrap().flatten();
    let closed = files.filter(|it| it.path().extension().is_some_and(|it| it == "jsonl"));
    assert_eq!(closed.count(), 3, "a file each");
}
