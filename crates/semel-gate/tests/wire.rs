//! Hostile bytes on the wire: the handler sees exactly what was meant, and never a hidden request.

use crate::support::prelude::*;

const HIDDEN: &str = "POST /work HTTP/1.1\r\nhost: gate\r\nx-cloudtasks-queuename: q\r\n\
                      x-cloudtasks-taskname: hidden\r\ncontent-length: 0\r\n\r\n";

/// A request in this frame, and behind it a hidden one.
fn request(framing: &str, body: &str) -> String {
    format!(
        "POST /work HTTP/1.1\r\nhost: gate\r\nx-cloudtasks-queuename: q\r\n\
         x-cloudtasks-taskname: open\r\n{framing}\r\n{body}{HIDDEN}"
    )
}

/// Requests whose end two readers could see in two places.
fn smuggling() -> Vec<(&'static str, String)> {
    let whole = HIDDEN.len();
    let two = format!("content-length: 0\r\ncontent-length: {whole}\r\n");
    let list = format!("content-length: 0, {whole}\r\n");
    let lengths = [
        ("two lengths", two.as_str()),
        ("a length list", &list),
        ("a signed length", "content-length: +0\r\n"),
        ("a length in hex", "content-length: 0x0\r\n"),
    ];
    let codings = [
        ("chunks twice", "transfer-encoding: chunked, identity\r\n"),
        ("unknown coding", "transfer-encoding: xchunked\r\n"),
        ("a folded header", "transfer-encoding:\r\n chunked\r\n"),
        ("a space before", "transfer-encoding : chunked\r\n"),
    ];
    let lengths = lengths.map(|(what, framing)| (what, request(framing, "")));
    let codings = codings.map(|(what, framing)| (what, request(framing, "0\r\n\r\n")));
    lengths.into_iter().chain(codings).collect()
}

#[tokio::test]
async fn a_request_whose_end_is_ambiguous_hides_no_other() {
    for (what, raw) in smuggling() {
        let bed = Bed::new().await;
        let reply = exchange(bed.gate, raw).await;
        reply.is_for(what, 400);
        assert_eq!(reply.answers(), 1, "{what}: {reply}");
        assert_eq!(bed.runs(), 0, "{what}: {reply}");
    }
}

/// Read by its chunks, as RFC 9112 says, and the last one on its connection.
#[tokio::test]
async fn a_request_with_length_and_chunks_hides_no_other() {
    let length = format!("content-length: {}\r\n", HIDDEN.len() + 5);
    for framing in [
        format!("{length}transfer-encoding: chunked\r\n"),
        format!("transfer-encoding: chunked\r\n{length}"),
        "content-length: 5\r\ntransfer-encoding: chunked\r\n".to_owned(),
    ] {
        let bed = Bed::new().await;
        let reply = exchange(bed.gate, request(&framing, "0\r\n\r\n").as_bytes()).await;
        assert_eq!(reply.answers(), 1, "{reply}");
        assert!(reply.contains("connection: close"), "{reply}");
        let seen = bed.handler.arrived().await;
        seen.has("x-cloudtasks-taskname", "open");
        assert_eq!((seen.body.len(), bed.runs()), (0, 1), "{reply}");
    }
}

#[tokio::test]
async fn http_1_0_with_chunks_hides_no_other() {
    let bed = Bed::new().await;
    let raw = format!(
        "POST /work HTTP/1.0\r\nhost: gate\r\nconnection: keep-alive\r\n\
         x-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: open\r\n\
         transfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
    );
    let reply = exchange(bed.gate, raw).await;
    assert!(
        reply.starts_with("HTTP/1.0 400") || reply.starts_with("HTTP/1.1 400"),
        "{reply}"
    );
    assert_eq!(bed.runs(), 0, "{reply}");
}

#[tokio::test]
async fn a_request_hidden_in_the_body_of_a_duplicate_is_not_run() {
    let bed = Bed::new().await;
    let ask = Sender::Task.sends("open", HIDDEN);
    bed.ask(ask.clone()).await.is(200);
    let twice = [ask.raw(), ask.raw()].concat();
    let replies = exchange(bed.gate, &twice).await;
    assert_eq!(replies.matches("HTTP/1.1 200").count(), 2, "{replies}");
    let replays = replies.matches("idempotent-replayed: true");
    assert_eq!(replays.count(), 2, "{replies}");
    assert_eq!((bed.runs(), bed.records().await.len()), (1, 1));
}

#[tokio::test]
async fn a_request_hidden_in_a_body_that_is_refused_is_not_run() {
    let bed = Bed::route(|route| route.body_bytes_max = 10).await;
    let replies = exchange(bed.gate, &Sender::Task.sends("open", HIDDEN).raw()).await;
    replies.is(413);
    assert_eq!(replies.answers(), 1, "{replies}");
    assert_eq!(bed.runs(), 0);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let bed = Bed::new().await;
    let both = [
        Sender::Task.sends("1", "{}").raw(),
        Sender::Task.sends("2", "{}").raw(),
    ];
    let replies = exchange(bed.gate, &both.concat()).await;
    let [first, second] = ["run 1", "run 2"].map(|run| replies.find(run).unwrap());
    assert!(first < second, "{replies}");
}

#[tokio::test]
async fn the_target_is_the_upstream_whatever_the_request_names() {
    let bed = Bed::new().await;
    let elsewhere = Handler::start().await;
    for line in [
        format!(
            "POST http://{}/work HTTP/1.1\r\nhost: {0}\r\n",
            elsewhere.address
        ),
        format!("POST /work HTTP/1.1\r\nhost: {}\r\n", elsewhere.address),
    ] {
        let raw = format!(
            "{line}x-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: {}\r\n\
             content-length: 0\r\n\r\n",
            line.len()
        );
        exchange(bed.gate, raw).await.is(200);
        assert_eq!(bed.handler.arrived().await.path, "/work");
    }
    assert_eq!((bed.runs(), elsewhere.count()), (2, 0));
    let connect = format!("CONNECT {} HTTP/1.1\r\nhost: x\r\n\r\n", elsewhere.address);
    let reply = exchange(bed.gate, connect.as_bytes()).await;
    assert!(
        reply.starts_with("HTTP/1.1 4") || reply.starts_with("HTTP/1.1 501"),
        "{reply}"
    );
    assert_eq!((bed.runs(), elsewhere.count()), (2, 0));
}

#[tokio::test]
async fn an_upgrade_is_not_taken_through_a_protected_path() {
    let bed = Bed::new().await;
    let ask = Sender::Task
        .sends("1", "{}")
        .header("Connection", "upgrade");
    let raw = ask.header("Upgrade", "websocket").raw();
    let reply = exchange(bed.gate, raw).await;
    assert!(!reply.starts_with("HTTP/1.1 101"), "{reply}");
    let seen = bed.handler.arrived().await;
    seen.lacks("upgrade").lacks("connection");
}

#[tokio::test]
async fn a_head_over_the_limits_is_refused() {
    let bed = Bed::new().await;
    let large = Sender::Task
        .sends("n", "{}")
        .header("x-large", &"x".repeat(70_000));
    let mut many = Sender::Task.sends("n", "{}");
    for n in 0..120 {
        many = many.header(&format!("x-{n}"), "1");
    }
    for ask in [large, many] {
        let reply = bed.send_raw(&ask).await;
        assert!(!reply.starts_with("HTTP/1.1 200"), "{reply}");
    }
    assert_eq!(bed.runs(), 0);
}
