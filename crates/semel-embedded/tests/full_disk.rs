//! A full disk, made of a small tmpfs: the store says so, and comes back by itself when there is room again.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use bytes::Bytes;
use common::{RETENTION, claim, granted, is_replayed, open, result};
use semel::protocol::{Held, State};
use semel::store::StoreExt;
use semel::{Error, Store};
use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A file system of a few MiB, which ends with this. It needs the rights of root, as tests of CI have them.
struct SmallDisk {
    home: TempDir,
}

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "semel-test"])
            .arg(home.path())
            .status();
        let mounted = mounted.expect("mount can be run");
        assert!(mounted.success(), "a tmpfs can be mounted: run as root");
        Self { home }
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("semel-data")
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        let ballast = self.home.path().join("ballast");
        let zeros = vec![0; 16 * 1024];
        let mut file = std::fs::File::create(&ballast).unwrap();
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let path: &Path = self.home.path();
        drop(Command::new("umount").arg("-l").arg(path).status());
    }
}

/// Settles keys from `first` on until the store refuses; the first key that nobody asked for, and the refusal.
async fn settle_until_refused(store: &dyn Store, first: u64) -> (u64, Error) {
    let body = Bytes::from(vec![b'x'; 64 * 1024]);
    for n in first.. {
        let lease = match store.claim(&claim(n)).await {
            Ok(claimed) => granted(n, Ok(claimed)),
            Err(error) => return (n + 1, error),
        };
        if let Err(error) = store.complete(&lease, &body, RETENTION).await {
            return (n + 1, error);
        }
    }
    unreachable!("the disk has an end")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_gave_up_comes_back_when_there_is_room() {
    let disk = SmallDisk::mount("48m");
    let store = open(&disk.path()).unwrap();
    store.ready().await.unwrap();
    common::settle(&store, 1).await;

    let ballast = disk.fill();
    let (mut next, refused) = settle_until_refused(&store, 1_000).await;
    assert!(
        matches!(refused, Error::Unavailable(_) | Error::Denied(_)),
        "{refused}"
    );
    assert!(refused.source().is_some(), "{refused:?}");
    let mut not_ready = store.ready().await;
    // Opened again on a disk that is still full, it may take what little is left before it refuses.
    while not_ready.is_ok() {
        (next, _) = settle_until_refused(&store, next).await;
        not_ready = store.ready().await;
    }
    assert!(
        matches!(not_ready, Err(Error::Unavailable(_) | Error::Denied(_))),
        "{not_ready:?}"
    );

    std::fs::remove_file(ballast).unwrap();
    let ready = async {
        while store.ready().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ready)
        .await
        .expect("the store comes back");
    is_replayed(&store, 1).await;
    let lease = granted(9, store.claim(&claim(9)).await);
    let held = store.complete(&lease, &result(9), RETENTION).await;
    assert_eq!(held, Ok(Held::Applied(State::Succeeded)));
    is_replayed(&store, 9).await;
}
