//! Answers come back as they were, and no broker is sent elsewhere.

use crate::support::prelude::*;

#[tokio::test]
async fn header_values_replay_byte_for_byte() {
    let bed = Bed::new().await;
    let values: [&[u8]; 4] = [
        b"attachment; filename=\"na\xefve.txt\"",
        "attachment; filename=\"na\u{ef}ve.txt\"".as_bytes(),
        b"\xff\xfe\x80",
        "\u{f7ef} plain".as_bytes(),
    ];
    for (n, value) in values.iter().enumerate() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-disposition: ";
        let said = [&head[..], value, b"\r\n\r\n"].concat();
        bed.handler.will(Act::Bytes(Bytes::from(said)));
        let ask = Sender::Api.sends(&n.to_string(), "{}");
        let first = bed.ask(ask.clone()).await;
        first.is(200);
        let replay = bed.ask(ask).await;
        assert_eq!(replay.headers["idempotent-replayed"], "true");
        for answer in [first, replay] {
            let heard = answer.headers["content-disposition"].as_bytes();
            assert_eq!(heard, *value, "{}", heard.escape_ascii());
        }
    }
    assert_eq!(bed.runs(), values.len());
}

#[tokio::test]
async fn a_letter_runs_again_with_the_path_and_headers_that_it_came_with() {
    let bed = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
    bed.handler.says(422);
    let head = "POST /w%6frk?x=%6f HTTP/1.1\r\nhost: shop\r\nx-cloudtasks-queuename: q\r\n\
                x-cloudtasks-taskname: t\r\ncontent-length: 2\r\nx-name: na";
    let raw = [head.as_bytes(), b"\xefve\r\n\r\n{}"].concat();
    let reply = exchange(bed.gate, raw).await;
    reply.is(200);
    let letters = bed.letters().await;
    assert_eq!(letters.len(), 1, "{reply}");
    let redrive = Ask::post(&format!("/letters/{}/redrive", letters[0].id));
    let redrive = redrive
        .header("Content-Type", "application/json")
        .body("{}");
    assert_eq!(redrive.send(bed.admin).await.status, 200);
    let (first, again) = (bed.handler.arrived().await, bed.handler.arrived().await);
    for seen in [&first, &again] {
        assert_eq!(seen.path, "/work?x=%6f");
        seen.has("host", "shop").has("x-name", "na\u{ef}ve");
    }
    assert_eq!(first.header("semel-key"), again.header("semel-key"));
}

#[tokio::test]
async fn a_redirect_that_a_handler_completed_with_reaches_clients_and_no_broker() {
    for (body, acknowledged) in [("moved", 200), ("", 204)] {
        for sender in BROKERS.into_iter().chain([Sender::Api]) {
            let bed = Bed::route(|route| route.completes = Completes::Handler).await;
            let act = Act::Hold(Say::new(303, "not told"));
            let first = bed.begin_with(act, sender.sends("n", "{}")).await;
            let recorded = Outcome::new(303, body).with_header("location", "/elsewhere");
            bed.complete(recorded).await;
            let first = bed.go(first).await;
            if sender == Sender::Api {
                first.is(303).has("location", "/elsewhere");
            } else {
                first.is(acknowledged).lacks("location");
                bed.deliver(sender, "n").await.is_replay(200);
            }
            assert_eq!((bed.runs(), bed.letters().await.len()), (1, 0));
        }
    }
}
