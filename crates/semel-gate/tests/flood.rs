//! Many requests of one client at once: answers it does not read, heads without bodies, bodies that take
//! long to read, handlers that say nothing.

use crate::http2;
use crate::support::prelude::*;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

const SHORT: Duration = Duration::from_millis(300);

/// Leaves one answer of `length` unread, and asks for small ones all the time.
async fn leaves_unread(length: usize) {
    let bed = Bed::with(|settings| {
        settings.limits.answer_idle_max = SHORT;
        settings.limits.idle_max = SHORT;
        settings.routes[0].answer_bytes_max = 1024 * 1024;
    })
    .await;
    bed.handler
        .answers(Say::new(200, Bytes::from(vec![b'x'; length])));
    let (mut sender, mut connection) = http2::connect(bed.gate, 1).await;
    let unread = sender.send_request(Sender::Task.sends("unread", "{}").request(bed.gate));
    let unread = within("a reply", unread).await.unwrap();
    let refreshes = async {
        let mut beat = tokio::time::interval(SHORT / 4);
        for n in 0.. {
            beat.tick().await;
            bed.handler.answers(Say::new(200, ""));
            let small = Sender::Task.sends(&n.to_string(), "{}").request(bed.gate);
            if let Ok(answer) = sender.send_request(small).await {
                assert_eq!(answer.status(), 200);
            }
        }
    };
    let ended = within("the end of the connection", async {
        tokio::select! {
            ended = &mut connection => drop(ended),
            () = refreshes => {}
        }
    });
    ended.await;
    let line = "semel_connections_cut_total{listener=\"deliveries\",reason=\"answer_unread\"} 1\n";
    bed.counts(line).await;
    drop(unread);
}

#[tokio::test]
async fn small_answers_that_are_read_do_not_excuse_a_large_one_that_is_not() {
    leaves_unread(512 * 1024).await;
}

/// It fits into what hyper takes of an answer at a time.
#[tokio::test]
async fn an_answer_of_one_piece_is_read_or_cut_too() {
    leaves_unread(32 * 1024).await;
}

/// A head of 56 KiB.
fn long_head(ask: Ask) -> Ask {
    (0..14).fold(ask, |ask, n| {
        ask.header(&format!("x-long-{n}"), &"x".repeat(4096))
    })
}

/// Runs that do not end, with heads that are all there is of their requests.
async fn heads_are_refused(ask: impl Fn(usize) -> Ask, status: u16) {
    const ALL: usize = 1024 * 1024;
    let bed = Bed::with(|settings| {
        pass(settings, &["/pass"]);
        settings.bodies_bytes_max = ALL;
        settings.routes[0].body_bytes_max = ALL / 16;
    })
    .await;
    let mut streams = FuturesUnordered::new();
    let (mut sender, connection) = http2::connect(bed.gate, 65_535).await;
    for n in 0..8 {
        bed.handler.will(Act::Hang);
        streams.push(sender.send_request(long_head(ask(n)).request(bed.gate)));
    }
    // What is in hand is more than one connection may have; others still have their part.
    let refused = within("a refusal", streams.next()).await.unwrap().unwrap();
    assert_eq!(refused.status(), status);
    let line = "semel_bodies_refused_total{reason=\"no_room\"}";
    bed.counts(line).await;
    drop((streams, sender, connection));
}

#[tokio::test]
async fn heads_of_deliveries_take_room() {
    let task = |n: usize| Sender::Task.sends(&n.to_string(), "");
    heads_are_refused(task, 409).await;
}

#[tokio::test]
async fn heads_of_passed_requests_take_room() {
    heads_are_refused(|_| Ask::get("/pass"), 429).await;
}

#[tokio::test]
async fn an_http2_connection_has_a_hundred_streams() {
    let bed = Bed::new().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut stream = connect(bed.gate, preface).await;
    // The first frame: its length, its type (4: settings), then a word and four bytes for each.
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!((head[0], head[1], head[3]), (0, 0, 4));
    let mut settings = vec![0; head[2].into()];
    stream.read_exact(&mut settings).await.unwrap();
    let streams = settings.chunks(6).find(|it| it[..2] == [0, 3]).unwrap();
    assert_eq!(streams[2..], [0, 0, 0, 100]);
}

/// On one thread, so that whatever holds it up holds up everything.
#[tokio::test]
async fn a_large_body_that_is_read_does_not_hold_up_the_others() {
    let bed = Bed::with(|settings| settings.routes[0].body_bytes_max = 4 * 1024 * 1024).await;
    let nested = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let body = format!("[{}1]", format!("{nested},").repeat(3_000));
    let begun = Instant::now();
    let mut large = bed.begin(Sender::Event.sends("large", &body));
    let (mut last, mut longest) = (begun, Duration::ZERO);
    let answer = loop {
        tokio::select! {
            answer = &mut large => break answer.unwrap(),
            health = bed.admin("/healthz") => assert_eq!(health.status, 200),
        }
        longest = longest.max(last.elapsed());
        last = Instant::now();
    };
    answer.is(200);
    let longest = longest.max(last.elapsed());
    let whole = begun.elapsed();
    assert!(longest < whole / 2, "health took {longest:?} of {whole:?}");
}

#[tokio::test]
async fn a_handler_that_says_nothing_to_a_passed_request_holds_nobody() {
    let bed = Bed::with(|settings| {
        pass(settings, &["/pass"]);
        settings.limits.handler_silence_max = SHORT;
    })
    .await;
    bed.handler.will(Act::Hang);
    // It sends a request and hangs up, which looks like having no more to say.
    let raw = b"GET /pass HTTP/1.1\r\nhost: gate\r\n\r\n";
    let mut stream = connect(bed.gate, raw).await;
    stream.shutdown().await.unwrap();
    bed.handler.arrived().await;
    let said = closed(stream).await;
    said.is_problem("", 504, "handler-timeout");
    // A handler that answers is left alone.
    bed.ask(Ask::get("/pass")).await.is(200);
}

/// Asks for an answer of 10 bytes, of which the handler sends 4.
async fn half_an_answer(ask: Ask, change: impl FnOnce(&mut Settings)) {
    let listener = TcpListener::bind(here()).await.unwrap();
    let handler = upstream(listener.local_addr().unwrap());
    let bed = Bed::with(|settings| {
        settings.limits.handler_silence_max = SHORT;
        settings.routes[0].upstream = handler;
        pass(settings, &["/pass"]);
        change(settings);
    })
    .await;
    let stream = connect(bed.gate, ask.raw()).await;
    let (mut asked, _) = within("a request", listener.accept()).await.unwrap();
    asked
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        .await
        .unwrap();
    let said = closed(stream).await;
    said.is(200);
    let is_half = said.contains("half") && !said.contains("\r\n0\r\n");
    assert!(is_half, "{said}");
}

#[tokio::test]
async fn a_handler_that_stops_in_the_middle_of_a_passed_answer_holds_nobody() {
    half_an_answer(Ask::get("/pass"), |_| {}).await;
}

#[tokio::test]
async fn a_handler_that_stops_behind_what_is_kept_holds_nobody() {
    let ask = Sender::Task.sends("n", "{}");
    half_an_answer(ask, |settings| settings.routes[0].answer_bytes_max = 2).await;
}
