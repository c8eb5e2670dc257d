use super::*;

async fn put(storage: &Storage, rows: &[(&str, &str)]) {
    let mut batch = Batch::default();
    for (key, value) in rows {
        batch.put(Table::Tasks, key.as_bytes(), value.as_bytes().to_vec());
    }
    storage.commit(batch).await.unwrap();
}

fn keys(rows: &[Row]) -> Vec<&str> {
    rows.iter()
        .map(|row| std::str::from_utf8(&row.key).unwrap())
        .collect()
}

async fn stores_and_scans(storage: &Storage) {
    put(storage, &[("a/1", "x"), ("a/2", "y"), ("b/1", "z")]).await;
    let mut other = Batch::default();
    other.put(Table::Topics, b"a/3", "another table");
    storage.commit(other).await.unwrap();
    let get = |key: &[u8]| storage.get(Table::Tasks, key).unwrap();
    assert_eq!(get(b"a/2").as_deref(), Some(&b"y"[..]));
    assert_eq!(get(b"a/3"), None);
    let scan =
        |after: Option<&[u8]>, limit| storage.scan(Table::Tasks, b"a/", after, limit).unwrap();
    assert_eq!(keys(&scan(None, 10)), ["a/1", "a/2"]);
    assert_eq!(keys(&scan(None, 1)), ["a/1"]);
    assert_eq!(keys(&scan(Some(b"a/1"), 10)), ["a/2"]);
    let mut gone = Batch::default();
    gone.delete(Table::Tasks, b"a/1");
    storage.commit(gone).await.unwrap();
    assert_eq!(keys(&scan(None, 10)), ["a/2"]);
}

#[tokio::test]
async fn memory_behaves() {
    stores_and_scans(&Storage::in_memory()).await;
}

#[tokio::test]
async fn a_directory_behaves_and_remembers() {
    let home = tempfile::tempdir().unwrap();
    let storage = Storage::open(home.path()).unwrap();
    stores_and_scans(&storage).await;
    let refused = Storage::open(home.path()).unwrap_err();
    assert!(refused.0.contains("held by another broker"), "{refused}");
    drop(storage);
    let mut again = Storage::open(home.path());
    // The writer's thread lets go of the engine a moment after the last handle is dropped.
    while let Err(error) = &again {
        assert!(!error.0.contains("held by another broker"), "{error}");
        again = Storage::open(home.path());
    }
    assert_eq!(
        keys(&again.unwrap().scan(Table::Tasks, b"", None, 10).unwrap()),
        ["a/2", "b/1"]
    );
}
