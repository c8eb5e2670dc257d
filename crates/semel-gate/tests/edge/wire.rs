//! Requests that say twice, or not at all, where they go and where they end.

use crate::support::prelude::*;

/// A delivery with this first line and these headers, and behind it another one.
fn request(first_line: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "{first_line}\r\n{headers}x-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: open\r\n\r\n{body}\
         POST /work HTTP/1.1\r\nhost: gate\r\nx-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: hidden\r\n\
         content-length: 0\r\n\r\n"
    )
    .into_bytes()
}

const HEADERS: &str = "host: gate\r\ncontent-length: 0\r\n";

async fn refused(what: &str, raw: &[u8], statuses: &[&str]) {
    let bed = Bed::new().await;
    let reply = exchange(bed.gate, raw).await;
    let status = reply.get(9..12).unwrap_or_default();
    assert!(statuses.contains(&status), "{what}: {reply}");
    assert_eq!(reply.answers(), 1, "{what}: {reply}");
    assert!(reply.contains("connection: close"), "{what}: {reply}");
    let nothing = (bed.runs(), bed.records().await.len());
    assert_eq!(nothing, (0, 0), "{what}: {reply}");
}

#[tokio::test]
async fn a_request_has_one_host() {
    const LENGTH: &str = "content-length: 0\r\n";
    for (what, hosts) in [
        ("none", ""),
        ("two", "host: gate\r\nhost: gate\r\n"),
        ("two others", "Host: gate\r\nHOST: elsewhere\r\n"),
        ("an empty one", "host:\r\n"),
        ("one with a user", "host: user@gate\r\n"),
        ("one with a path", "host: gate/work\r\n"),
        ("one with a space", "host: gate elsewhere\r\n"),
        ("one that is not text", "host: gate\u{e9}\r\n"),
    ] {
        let raw = request("POST /work HTTP/1.1", &format!("{hosts}{LENGTH}"), "");
        refused(what, &raw, &["400"]).await;
    }
    for host in ["", "host: elsewhere\r\n"] {
        let headers = format!("{host}{LENGTH}");
        let raw = request("POST http://gate/work HTTP/1.1", &headers, "");
        refused(host, &raw, &["400"]).await;
    }
}

#[tokio::test]
async fn http_1_0_needs_no_host() {
    let bed = Bed::new().await;
    let raw = "POST /work HTTP/1.0\r\nx-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: t\r\n\
               content-length: 0\r\n\r\n";
    let reply = exchange(bed.gate, raw).await;
    assert!(reply.contains(" 200 OK"), "{reply}");
    let seen = bed.handler.arrived().await;
    let own = bed.handler.address.to_string();
    seen.has("host", &own);
}

#[tokio::test]
async fn only_chunks_are_taken_apart() {
    for coding in [
        "gzip, chunked",
        "chunked, gzip",
        "identity",
        "identity, chunked",
        "xchunked",
        "chunked, chunked",
        "gzip",
        "chunked;q=1",
        "\"chunked\"",
        ", chunked",
        "chunked\r\ntransfer-encoding: chunked",
        "gzip\r\ntransfer-encoding: chunked",
        "chunked\r\ntransfer-encoding: identity",
    ] {
        let headers = format!("host: gate\r\ntransfer-encoding: {coding}\r\n");
        let raw = request("POST /work HTTP/1.1", &headers, "0\r\n\r\n");
        refused(coding, &raw, &["400", "501"]).await;
    }
    let bed = Bed::new().await;
    let headers = "host: gate\r\ntransfer-encoding: Chunked\r\n";
    let raw = request("POST /work HTTP/1.1", headers, "0\r\n\r\n");
    let reply = exchange(bed.gate, raw).await;
    assert_eq!(reply.matches("HTTP/1.1 200").count(), 2, "{reply}");
}

#[tokio::test]
async fn a_tunnel_is_not_opened() {
    for target in ["gate:80", "127.0.0.1:1", "/work", "http://gate/work"] {
        let line = format!("CONNECT {target} HTTP/1.1");
        refused(target, &request(&line, HEADERS, ""), &["400", "501"]).await;
    }
}

#[tokio::test]
async fn a_method_in_lower_case_is_nobodys() {
    for method in ["post", "Post", "get"] {
        let line = format!("{method} /work HTTP/1.1");
        refused(method, &request(&line, HEADERS, ""), &["400", "501"]).await;
    }
}

#[tokio::test]
async fn the_handler_hears_the_host_that_its_sender_named() {
    let bed = Bed::new().await;
    exchange(bed.gate, &Sender::Task.sends("1", "{}").raw()).await;
    assert_eq!(bed.handler.arrived().await.header("host"), Some("gate"));
    bed.ask(Sender::Task.sends("2", "{}").h2c()).await.is(200);
    let (seen, named) = (bed.handler.arrived().await, bed.gate.to_string());
    seen.has("host", &named);
    let twice = Sender::Task
        .sends("3", "{}")
        .header("host", "elsewhere")
        .h2c();
    bed.ask(twice).await.is_problem(400, "bad-host");
}
