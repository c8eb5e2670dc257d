//! The sink of files: what is acknowledged is in a file that readers take, whatever happened to its process or its disk.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

use semel_landing::{Fault, FileSettings, FileSink, Landing, NotLanded, Row};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

fn row(id: &str) -> Row {
    let mut row = Row::new("pubsub", format!("{{\"id\":\"{id}\"}}")).named("v1_7", "f0");
    row.delivery_id = id.into();
    row
}

fn begin(directory: &Path, change: impl FnOnce(&mut FileSettings)) -> Landing {
    let mut settings = FileSettings::new(directory);
    change(&mut settings);
    Landing::begin(FileSink::open(settings).unwrap())
}

async fn land(landing: &Landing, id: &str) -> Result<usize, NotLanded> {
    let landed = landing.land(row(id), PATIENCE).await;
    landed.map(|landed| landed.group_rows)
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == ending))
        .collect();
    paths.sort();
    paths
}

/// The delivery ids in closed files, as a reader finds them.
fn closed(directory: &Path) -> Vec<String> {
    let id = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["delivery_id"].as_str().unwrap().to_owned()
    };
    let mut ids = Vec::new();
    for file in files(directory, "jsonl") {
        ids.extend(fs::read_to_string(file).unwrap().lines().map(id));
    }
    ids.sort();
    ids
}

#[tokio::test]
async fn rows_of_one_group_share_a_sync_and_readers_see_closed_files_only() {
    let home = TempDir::new().unwrap();
    let landing = begin(home.path(), |_| {});
    let ids: Vec<_> = (0..200).map(|n| format!("{n:03}")).collect();
    let all = ids.iter().map(|id| land(&landing, id));
    let groups = joined(all).await;
    assert!(groups.iter().any(|rows| *rows > 1), "{groups:?}");
    assert_eq!(closed(home.path()), Vec::<String>::new());
    assert_eq!(files(home.path(), "open").len(), 1);
    landing.close().await;
    assert_eq!(closed(home.path()), ids);
    assert!(files(home.path(), "open").is_empty());
    assert_eq!(land(&landing, "late").await, Err(NotLanded::Closed));
}

async fn joined<T>(
    all: impl Iterator<Item = impl Future<Output = Result<T, NotLanded>>>,
) -> Vec<T> {
    // All are asked before any is awaited again.
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        all.retain_mut(|future| match future.as_mut().poll(cx) {
            std::task::Poll::Ready(rows) => {
                done.push(rows.unwrap());
                false
            }
            std::task::Poll::Pending => true,
        });
        if all.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done
}

#[tokio::test]
async fn one_row_of_each_group_hears_whose_spans_were_written() {
    let home = TempDir::new().unwrap();
    let landing = begin(home.path(), |_| {});
    let all = (0..200).map(|n| {
        let mut row = row(&n.to_string());
        // A few are not traced.
        row.span = (n % 10 != 0).then(|| n.to_string());
        landing.land(row, PATIENCE)
    });
    let landed = joined(all).await;
    let writes: Vec<_> = landed.iter().filter_map(|it| it.write.as_ref()).collect();
    let mut spans: Vec<_> = writes.iter().flat_map(|it| it.spans.clone()).collect();
    spans.sort_by_key(|span| span.parse::<usize>().unwrap());
    let traced = (0..200).filter(|n| n % 10 != 0).map(|n| n.to_string());
    assert_eq!(spans, traced.collect::<Vec<_>>());
    assert!(writes.len() < spans.len(), "{} groups", writes.len());
}

#[tokio::test]
async fn a_file_that_is_full_or_old_is_renamed() {
    let home = TempDir::new().unwrap();
    let landing = begin(home.path(), |settings| settings.file_bytes_max = 1);
    for id in ["a", "b"] {
        land(&landing, id).await.unwrap();
    }
    assert_eq!(files(home.path(), "jsonl").len(), 2);

    let home = TempDir::new().unwrap();
    let landing = begin(home.path(), |settings| {
        settings.file_age_max = Duration::from_millis(50);
    });
    land(&landing, "a").await.unwrap();
    let renamed = async {
        while closed(home.path()).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, renamed).await.unwrap();
}

#[tokio::test]
async fn what_cannot_stand_among_the_rows_is_in_a_directory_of_its_own() {
    let home = TempDir::new().unwrap();
    let landing = begin(home.path(), |_| {});
    let mut invalid = row("invalid");
    (invalid.event_id, invalid.fingerprint) = (None, None);
    let (word, detail) = ("key-part-missing", "there is no /order".to_owned());
    invalid.fault = Some(Fault { word, detail });
    let mut bytes = row("bytes");
    bytes.payload = vec![0xff].into();
    for row in [invalid, bytes, row("good")] {
        landing.land(row, PATIENCE).await.unwrap();
    }
    landing.close().await;
    assert_eq!(closed(home.path()), ["good"]);
    assert_eq!(closed(&home.path().join("faults")), ["bytes", "invalid"]);
}

#[tokio::test]
async fn what_a_dead_process_left_is_cut_at_its_last_line_and_a_living_ones_is_left_alone() {
    let home = TempDir::new().unwrap();
    let landing = begin(home.path(), |_| {});
    land(&landing, "living").await.unwrap();
    let dead = home.path().join("20260101T000000Z-0.jsonl.open");
    fs::write(
        &dead,
        format!("{}{{\"delivery_id\":\"torn", row("dead").line()),
    )
    .unwrap();
    fs::write(home.path().join("20260101T000000Z-1.jsonl.open"), "{\"torn").unwrap();

    let other = begin(home.path(), |_| {});
    assert_eq!(closed(home.path()), ["dead"]);
    assert_eq!(files(home.path(), "open").len(), 1);
    land(&other, "other").await.unwrap();
    land(&landing, "living too").await.unwrap();
    landing.close().await;
    other.close().await;
    assert_eq!(
        closed(home.path()),
        ["dead", "living", "living too", "other"]
    );
}

#[tokio::test]
async fn files_of_others_are_left_alone_and_zeros_end_what_is_whole() {
    let home = TempDir::new().unwrap();
    for (name, text) in [("notes.open", "mine"), ("door.open", "a\nb")] {
        fs::write(home.path().join(name), text).unwrap();
    }
    fs::create_dir(home.path().join("x.jsonl.open")).unwrap();
    let torn = format!("{}\0\0\0\n{}", row("whole").line(), row("after").line());
    fs::write(home.path().join("20260101T000000Z-0.jsonl.open"), torn).unwrap();
    begin(home.path(), |_| {}).close().await;
    let left = fs::read_to_string(home.path().join("notes.open")).unwrap();
    assert_eq!(left, "mine");
    assert_eq!(closed(home.path()), ["whole"]);
}

#[tokio::test]
async fn who_holds_the_lock_holds_nobody_for_ever() {
    let home = TempDir::new().unwrap();
    let landing = begin(home.path(), |_| {});
    let lock = fs::File::open(home.path().join(".lock")).unwrap();
    lock.lock().unwrap();
    let why = land(&landing, "held").await.unwrap_err().to_string();
    assert!(why.contains("has held .lock"), "{why}");
    drop(lock);
    land(&landing, "free").await.unwrap();
    landing.close().await;
    assert_eq!(closed(home.path()), ["free"]);
}

#[tokio::test]
async fn what_is_written_into_a_file_that_was_removed_is_not_acknowledged_there() {
    let home = TempDir::new().unwrap();
    let directory = home.path().join("landing");
    let landing = begin(&directory, |_| {});
    land(&landing, "removed").await.unwrap();
    for open in files(&directory, "open") {
        fs::remove_file(open).unwrap();
    }
    land(&landing, "kept").await.unwrap();
    fs::rename(&directory, home.path().join("elsewhere")).unwrap();
    land(&landing, "nowhere").await.unwrap_err();
    fs::rename(home.path().join("elsewhere"), &directory).unwrap();
    land(&landing, "back").await.unwrap();
    landing.close().await;
    begin(&directory, |_| {}).close().await;
    assert_eq!(closed(&directory), ["back", "kept"]);
}

/// A file system so small that it is soon full.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let home = TempDir::new().unwrap();
        let size = format!("size={size}");
        let mut mount = Command::new("mount");
        let mounted = mount
            .args(["-t", "tmpfs", "-o", &size, "semel-test"])
            .arg(home.path())
            .status();
        assert!(mounted.unwrap().success(), "mount a tmpfs: run as root");
        Self(home)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let umount = Command::new("umount").arg("-l").arg(self.0.path()).status();
        drop(umount);
    }
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_acknowledged_that_did_not_land_and_room_heals_it() {
    let disk = SmallDisk::mount("256k");
    let (directory, ballast) = (disk.0.path().join("landing"), disk.0.path().join("ballast"));
    let landing = begin(&directory, |_| {});
    let mut acknowledged = vec!["before".to_owned()];
    land(&landing, "before").await.unwrap();
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&ballast)
        .unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    // What is left of the page that is begun takes a few more.
    let mut refused = 0;
    for n in 0..100 {
        let id = format!("full {n:02}");
        match land(&landing, &id).await {
            Ok(_) => acknowledged.push(id),
            Err(NotLanded::Sink(why)) => {
                assert!(why.contains("a retry is safe"), "{why}");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 50, "{refused}");
    assert!(matches!(
        landing.ready(PATIENCE).await,
        Err(NotLanded::Sink(_))
    ));
    fs::remove_file(&ballast).unwrap();
    drop(file);
    // The landing tries a marker by itself: nothing else lands meanwhile.
    while landing.ready(PATIENCE).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    land(&landing, "room").await.unwrap();
    acknowledged.push("room".into());
    landing.close().await;
    let landed = closed(&directory);
    for id in &acknowledged {
        assert!(landed.contains(id), "{id} of {landed:?}");
    }
    // Markers and attempts leave nothing behind.
    assert!(files(&directory, "open").is_empty());
    assert!(files(&directory, "jsonl").len() < 10);
}
