//! `semel ui`: the page of a store, without a gate.

use crate::support::said::{command, semel};
use semel::protocol::{Claim, Claimed};
use semel::store::StoreExt;
use semel::{Fingerprint, Key, Outcome};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// One succeeded record in a directory, as the library leaves it.
async fn fill(directory: &std::path::Path, key: Key) {
    let store = EmbeddedStore::open(directory, EmbeddedSettings::default()).unwrap();
    let claim = Claim {
        label: "an order of the library".into(),
        ..Claim::new(key, Fingerprint::of(b"x"))
    };
    let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
        panic!("a new key is granted")
    };
    let result = Outcome::ok("the-answer").encode();
    let held = store.complete(&lease, &result, claim.retention).await;
    drop(held.unwrap());
}

fn get(address: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_store_is_served_without_a_gate() {
    let directory = tempfile::tempdir().unwrap();
    let key = Key::from_bytes([5; 32]);
    fill(directory.path(), key).await;
    let store = format!("dir:{}", directory.path().display());
    let mut page = command(&format!("ui --store {store} --listen 127.0.0.1:0"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = page.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let (_, url) = line.split_once("http://").unwrap();
    let address = url.trim().trim_end_matches("/ui/").to_owned();

    let record = get(&address, &format!("/ui/records/{key}"));
    for told in ["an order of the library", "took effect", "--show-bodies"] {
        assert!(record.contains(told), "no {told} in {record}");
    }
    assert!(
        !record.contains("the-answer"),
        "bodies are shown on request only"
    );
    assert!(!record.contains("This gate remembers"), "{record}");
    let overview = get(&address, "/ui/");
    assert!(overview.contains("without a gate"));
    assert!(
        !overview.contains("Duplicates"),
        "it leads nowhere: {overview}"
    );
    assert!(get(&address, "/ui/routes").contains("Open the page of a running gate"));

    // The store belongs to one process.
    let second = semel(&format!("ui --store {store} --listen 127.0.0.1:0"));
    assert_ne!(second.code, Some(0), "{second:?}");
    page.kill().unwrap();
    page.wait().unwrap();
}

#[test]
fn a_page_that_others_reach_needs_a_token_and_a_store_that_is_there() {
    semel("ui --store dir:. --listen 0.0.0.0:0").ends(1, "set --token");
    semel("ui --store dir:./nowhere").ends(1, "there is no store in");
}
