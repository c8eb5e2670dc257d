//! Connections that send nothing, read nothing or stay for nothing, and what they leave to others.

use crate::http2;
use crate::support::prelude::*;

const HTTP2_PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const NONE_LEFT: &str = "semel_connections{listener=\"deliveries\"} 0\n";

/// Long enough to tell a limit from an end at once, short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

fn short(settings: &mut Settings) {
    let limits = &mut settings.limits;
    limits.head_within = SHORT;
    limits.idle_max = SHORT;
    limits.answer_idle_max = SHORT;
    limits.body_idle_max = SHORT;
}

/// All three addresses of a gate; that of the steps is told to handlers only.
async fn addresses(bed: &Bed) -> [(&'static str, SocketAddr); 3] {
    let seen = bed.forwards(Sender::Task.sends("n", "{}")).await;
    let steps = seen.header("semel-steps").unwrap().to_owned();
    let host = steps.strip_prefix("http://").unwrap();
    let steps = host.split('/').next().unwrap().parse().unwrap();
    [
        ("deliveries", bed.gate),
        ("admin", bed.admin),
        ("steps", steps),
    ]
}

/// Waits until connections of this listener were cut for this reason, so many where it is told.
async fn until_cut(bed: &Bed, listener: &str, reason: &str, count: Option<usize>) {
    let labels = format!("listener=\"{listener}\",reason=\"{reason}\"");
    let count = count.map_or(String::new(), |count| format!(" {count}\n"));
    let line = format!("semel_connections_cut_total{{{labels}}}{count}");
    bed.until_counted(&line).await;
}

#[tokio::test]
async fn whoever_sends_less_than_a_request_is_cut_on_every_listener() {
    let bed = Bed::with(short).await;
    for (listener, address) in addresses(&bed).await {
        for sent in [
            "",
            "PRI * H",
            "POST /work HT",
            "POST /work HTTP/1.1\r\nhost: gate\r\nx-half: ",
        ] {
            let stream = connect(address, sent).await;
            let since = Instant::now();
            let said = closed(stream).await;
            assert!(since.elapsed() > SHORT / 2, "{listener} {sent:?}: at once");
            assert!(!said.starts_with("HTTP/1.1 2"), "{listener} {sent:?}");
        }
        until_cut(&bed, listener, "no_request", None).await;
    }
}

#[tokio::test]
async fn whoever_sends_no_more_than_a_preface_is_cut() {
    let bed = Bed::with(short).await;
    for sent in ["PRI * HTTP/2.0\r\n\r\nSM", HTTP2_PREFACE] {
        let stream = connect(bed.gate, sent).await;
        let since = Instant::now();
        closed(stream).await;
        assert!(since.elapsed() > SHORT / 2, "{sent:?}: at once");
    }
    // Nothing else speaks HTTP/2: there, bodies are bounded by the number of connections.
    for (listener, address) in addresses(&bed).await.into_iter().skip(1) {
        let said = closed(connect(address, HTTP2_PREFACE).await).await;
        assert!(!said.starts_with("HTTP/1.1 2"), "{listener}");
    }
}

#[tokio::test]
async fn drips_of_a_head_do_not_buy_time() {
    let bed = Bed::with(short).await;
    for (_, address) in addresses(&bed).await {
        let stream = connect(address, b"GET / HTTP/1.1\r\nx: ").await;
        dripping(stream, b"x", SHORT / 10).await;
    }
}

#[tokio::test]
async fn a_quiet_connection_is_not_kept_for_ever() {
    let bed = Bed::with(short).await;
    for (listener, address) in addresses(&bed).await {
        let mut stream =
            connect(address, b"GET /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await;
        let mut first = [0; 9];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 ", "{listener}");
        closed(stream).await;
    }
}

#[tokio::test]
async fn a_quiet_http2_connection_is_not_kept_for_ever() {
    let bed = Bed::with(short).await;
    let (mut sender, connection) = http2::connect(bed.gate, 65_535).await;
    let request = Ask::get("/nothing").request(bed.gate);
    let answer = within("a reply", sender.send_request(request)).await;
    assert!(answer.unwrap().status().is_client_error());
    let since = Instant::now();
    // The client keeps its side: only the gate can end this.
    let ended = within("the end of the connection", connection).await;
    ended.unwrap().unwrap();
    assert!(since.elapsed() > SHORT / 2, "at once");
    drop(sender);
}

/// Its answer comes before its body, which never comes.
#[tokio::test]
async fn a_refused_request_does_not_keep_its_connection() {
    let bed = Bed::with(short).await;
    let raw = b"POST /nothing HTTP/1.1\r\nhost: gate\r\ncontent-length: 1000000\r\n\r\nx";
    let said = closed(connect(bed.gate, raw).await).await;
    said.is(404);
}

#[tokio::test]
async fn a_running_handler_keeps_its_connection() {
    let bed = Bed::with(short).await;
    for ask in [
        Sender::Task.sends("1", "{}"),
        Sender::Task.sends("2", "{}").h2c(),
    ] {
        let asked = bed.hold(ask).await;
        // Longer than any limit of a connection here.
        tokio::time::sleep(3 * SHORT).await;
        bed.go(asked).await.is(200);
    }
}

#[tokio::test]
async fn a_flood_of_silence_leaves_health_alone_and_passes() {
    const MOST: usize = 4;
    let bed = Bed::with(|settings| {
        settings.connections_max = MOST;
        settings.limits.head_within = Duration::from_secs(2);
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..MOST {
        silent.push(connect(bed.gate, b"").await);
    }
    let line = "semel_connections_full_total{listener=\"deliveries\"} 1\n";
    bed.until_counted(line).await;
    let waiting = bed.begin(Sender::Task.sends("n", "{}"));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(bed.admin(path).await.status, 200, "{path}");
    }
    assert!(!waiting.is_finished(), "all connections are taken");
    within("a place", waiting).await.unwrap().is(200);
    for stream in silent {
        closed(stream).await;
    }
    until_cut(&bed, "deliveries", "no_request", Some(MOST)).await;
}

#[tokio::test]
async fn a_flood_at_the_admin_address_passes() {
    let bed = Bed::with(|settings| {
        short(settings);
        settings.limits.admin_connections_max = 2;
    })
    .await;
    let silent = [
        connect(bed.admin, b"").await,
        connect(bed.admin, b"PRI").await,
    ];
    assert_eq!(bed.admin("/healthz").await.status, 200);
    for stream in silent {
        closed(stream).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_cut() {
    let bed = Bed::with(short).await;
    // No socket buffer holds it.
    let large = Bytes::from(vec![b'x'; 64 * 1024 * 1024]);
    bed.handler.answers(Say::new(200, large));
    let stream = connect(bed.gate, Sender::Task.sends("n", "{}").raw()).await;
    until_cut(&bed, "deliveries", "answer_unread", Some(1)).await;
    bed.until_counted(NONE_LEFT).await;
    drop(stream);
}

#[tokio::test]
async fn an_http2_client_that_does_not_read_its_answer_is_cut() {
    let bed = Bed::with(short).await;
    // Even an answer of one byte more than the client lets in.
    bed.handler.answers(Say::new(200, "12"));
    let (mut sender, connection) = http2::connect(bed.gate, 1).await;
    let request = Sender::Task.sends("n", "{}").request(bed.gate);
    let answer = within("a reply", sender.send_request(request))
        .await
        .unwrap();
    drop(within("the end of the connection", connection).await);
    drop((sender, answer));
    bed.until_counted(NONE_LEFT).await;
}

/// Reads 64 KiB now and then: slow, but not dead.
#[tokio::test]
async fn a_slow_reader_gets_all_of_its_answer() {
    let bed = Bed::with(|settings| {
        short(settings);
        settings.routes[0].answer_bytes_max = 32 * 1024 * 1024;
    })
    .await;
    let length = 16 * 1024 * 1024;
    let large = Bytes::from(vec![b'x'; length]);
    bed.handler.answers(Say::new(200, large));
    let ask = Sender::Task.sends("n", "{}");
    let mut stream = connect(bed.gate, ask.raw()).await;
    let (mut read, mut piece) = (0, vec![0; 1024 * 1024]);
    let mut beat = tokio::time::interval(SHORT / 6);
    while read < length {
        beat.tick().await;
        let more = within("more", stream.read(&mut piece)).await.unwrap();
        assert!(more > 0, "cut after {read} bytes");
        read += more;
    }
}

/// HTTP/2 frames of a delivery: preface, settings, and a head that is all of it.
fn delivery_frames() -> Vec<u8> {
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (":path", "/work"),
        (":authority", "gate"),
        ("x-cloudtasks-queuename", "q"),
        ("x-cloudtasks-taskname", "t"),
    ] {
        head.push(0);
        for text in [name, value] {
            head.push(u8::try_from(text.len()).unwrap());
            head.extend_from_slice(text.as_bytes());
        }
    }
    let mut frames = HTTP2_PREFACE.as_bytes().to_vec();
    frames.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    frames.extend([0, 0, u8::try_from(head.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    frames.extend(head);
    frames
}

#[tokio::test]
async fn an_http2_client_that_vanished_is_noticed() {
    let bed = Bed::with(|settings| {
        settings.limits.ping_every = Duration::from_millis(100);
        settings.limits.ping_within = Duration::from_millis(200);
        // By itself the handler would hold the connection longer than this test waits.
        terms_of(&mut settings.routes[0], |terms| {
            terms.timeout = Duration::from_secs(60);
        });
    })
    .await;
    bed.handler.will(Act::Hang);
    // It never answers a ping.
    let stream = connect(bed.gate, delivery_frames()).await;
    bed.handler.arrived().await;
    closed(stream).await;
    until_cut(&bed, "deliveries", "vanished", Some(1)).await;
}

#[tokio::test]
async fn bodies_that_stop_are_cut_at_the_other_listeners_too() {
    let bed = Bed::with(short).await;
    let [_, (_, admin), (_, steps)] = addresses(&bed).await;
    let (key, _) = bed.records().await[0];
    let acts = [
        (admin, format!("POST /records/{key}/resolve")),
        (steps, format!("PUT /steps/{}/name", "0".repeat(32))),
    ];
    for (address, line) in acts {
        let raw = format!("{line} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10\r\n\r\n{{");
        let said = closed(connect(address, raw).await).await;
        assert!(said.starts_with("HTTP/1.1 4"), "{line}: {said}");
    }
}
