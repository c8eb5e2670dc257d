//! Deliveries as they come: what is remembered of them, and the live stream.

use crate::support::prelude::*;

/// A stream of events that somebody reads.
struct Watching {
    socket: TcpStream,
    read: String,
}

// === impl Watching ===

impl Watching {
    async fn begin(bed: &Bed, path: &str) -> Self {
        let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
        let socket = connect(bed.admin, request).await;
        let mut watching = Self {
            socket,
            read: String::new(),
        };
        watching.until("event: gate\n").await;
        watching
    }

    /// Reads until this text has come.
    async fn until(&mut self, text: &str) {
        within(text, async {
            while !self.read.contains(text) {
                let mut buffer = [0; 4096];
                let count = self.socket.read(&mut buffer).await.unwrap();
                assert_ne!(count, 0, "the stream ended: {}", self.read);
                self.read
                    .push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        })
        .await;
    }

    /// Reads to the end.
    async fn end(mut self) -> String {
        let mut rest = Vec::new();
        within("its end", self.socket.read_to_end(&mut rest))
            .await
            .unwrap();
        self.read + &String::from_utf8_lossy(&rest)
    }
}

#[tokio::test]
async fn a_watcher_hears_each_delivery_as_it_comes() {
    let bed = Bed::new().await;
    let mut watching = Watching::begin(&bed, "/deliveries/stream").await;
    watching.until(r#"{"gate":"gate"}"#).await;
    assert!(watching.read.contains("text/event-stream"));
    bed.task("t1").await.is(200);
    watching.until(r#""outcome":"ran""#).await;
    bed.task("t1").await.is_replay(200);
    watching.until(r#""outcome":"replayed""#).await;
    assert!(
        watching
            .read
            .contains(r#""about":"queue orders, task-name t1""#)
    );
}

#[tokio::test]
async fn a_watcher_of_one_key_hears_of_no_other() {
    let bed = Bed::new().await;
    bed.task("t1").await.is(200);
    let key = bed.key().await;
    let path = format!("/deliveries/stream?key={key}");
    let mut watching = Watching::begin(&bed, &path).await;
    bed.task("t2").await.is(200);
    bed.task("t1").await.is_replay(200);
    watching.until(r#""outcome":"replayed""#).await;
    assert!(!watching.read.contains("t2"), "{}", watching.read);
}

#[tokio::test]
async fn so_many_watch_and_the_rest_of_the_address_is_served() {
    let bed = Bed::with(|settings| settings.limits.admin_connections_max = 17).await;
    let mut watching = Vec::new();
    for _ in 0..8 {
        watching.push(Watching::begin(&bed, "/deliveries/stream").await);
    }
    let refused = bed.look("/deliveries/stream").await;
    refused.refused(429, "8 streams of deliveries are open");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(bed.admin(path).await.status, 200, "{path}");
    }
    // Whoever goes leaves a place, once it is told something and does not hear it.
    drop(watching.pop());
    let request = "GET /deliveries/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    until("a place is free", async || {
        bed.task("t1").await;
        let mut socket = connect(bed.admin, request).await;
        let mut status = [0; 12];
        socket.read_exact(&mut status).await.unwrap();
        status == *b"HTTP/1.1 200"
    })
    .await;
}

#[tokio::test]
async fn at_most_sixteen_watch_where_there_is_room_for_more() {
    let bed = Bed::new().await;
    let mut watching = Vec::new();
    for _ in 0..16 {
        watching.push(Watching::begin(&bed, "/deliveries/stream").await);
    }
    let refused = bed.look("/deliveries/stream").await;
    refused.refused(429, "16 streams of deliveries are open");
}

#[tokio::test]
async fn a_stream_ends_with_its_gate() {
    let bed = Bed::new().await;
    let watching = Watching::begin(&bed, "/deliveries/stream").await;
    let (served, _, _) = bed.stop();
    within("its end", served).await.unwrap();
    watching.end().await;
}

#[tokio::test]
async fn the_latest_deliveries_are_told_newest_first() {
    let bed = Bed::new().await;
    for name in ["t1", "t2", "t3"] {
        bed.task(name).await.is(200);
    }
    let ids = async |query: &str| {
        let said = bed.look(&format!("/deliveries{query}")).await;
        let told = said.json["deliveries"].as_array().unwrap().clone();
        let ids = told.iter().map(|it| it["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, ["t3", "t2", "t1"]);
    assert_eq!(ids("?limit=2").await, ["t3", "t2"]);
    assert_eq!(ids("?id=t2").await, ["t2"]);
    bed.look("/deliveries?limit=0")
        .await
        .refused(400, "limit 0");
    let told = bed.look("/deliveries?id=t1").await;
    let first = &told.json["deliveries"][0];
    let says = json!({
        "route": "work", "source": "cloud-tasks", "outcome": "ran", "status": 200, "attempt": 1, "from": "orders",
        "duplicate": false, "end": false, "letter": null, "why": null,
    });
    for (name, value) in says.as_object().unwrap() {
        assert_eq!(&first[name], value, "{name} of {first}");
    }
}

#[tokio::test]
async fn a_delivery_without_a_key_is_remembered_with_its_reason() {
    let bed = Bed::route(|route| keyed_by(route, "/order_id")).await;
    let reply = bed.ask(Sender::Task.sends("t1", "{}")).await;
    assert_eq!((reply.status, reply.header("semel-key")), (200, None));
    let told = bed.look("/deliveries").await;
    let first = &told.json["deliveries"][0];
    assert_eq!(
        (&first["outcome"], &first["key"]),
        (&json!("invalid"), &Value::Null)
    );
    assert!(
        first["why"].as_str().unwrap().contains("/order_id"),
        "{first}"
    );
}

#[tokio::test]
async fn every_reply_to_a_delivery_with_a_key_says_it() {
    let bed = Bed::new().await;
    let first = bed.api("k1").await;
    let key = bed.key().await.to_string();
    first.is(200);
    let mismatched = bed.ask(Sender::Api.sends("k1", r#"{"other": 1}"#)).await;
    mismatched.is_problem(422, "mismatched");
    for reply in [first, bed.api("k1").await, mismatched] {
        assert_eq!(reply.header("semel-key"), Some(&*key), "{reply:?}");
    }
    bed.handler.answers(Say::new(200, vec![b'x'; 100_000]));
    let streamed = bed.api("k2").await;
    assert_eq!(streamed.body.len(), 100_000);
    let of_k2 = bed.look("/find?idempotency_key=k2&caller=alice").await;
    assert_eq!(
        of_k2.json["works"][0]["key"],
        streamed.header("semel-key").unwrap()
    );
}
