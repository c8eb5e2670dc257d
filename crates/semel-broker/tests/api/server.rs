//! One port: who may use it, what it serves, and how it stops.

use crate::support::grpc::by_grpc;
use crate::support::{Broker, settings};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use semel_broker::{Bound, Keep, Settings};
use tokio::net::{TcpListener, TcpStream};

async fn status(broker: &Broker, request: http::request::Builder) -> u16 {
    broker.send(request, "").await.status.as_u16()
}

#[tokio::test]
async fn one_port_serves_rest_and_grpc() {
    let broker = Broker::start(&[]).await;
    let queue = broker.get("/v2/projects/p/locations/l/queues/q").await;
    assert_eq!(queue.unwrap_err().status, "NOT_FOUND");
    for (method, message, status) in [
        (
            "/google.cloud.tasks.v2.CloudTasks/GetQueue",
            &b"\x0a\x23projects/p/locations/l/queues/queue"[..],
            "5",
        ),
        (
            "/google.pubsub.v1.Publisher/GetTopic",
            b"\x0a\x17projects/p/topics/topic",
            "5",
        ),
        (
            "/google.cloud.tasks.v2.CloudTasks/BatchCreateTasks",
            b"",
            "12",
        ),
        ("/google.longrunning.Operations/GetOperation", b"", "12"),
    ] {
        let (code, _) = by_grpc(&broker, method, message).await;
        assert_eq!(code, status, "{method}");
    }
    broker.stop().await;
}

#[tokio::test]
async fn web_pages_are_refused() {
    let broker = Broker::start(&[]).await;
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-origin"),
    ] {
        let page = Request::get("/v1/projects/p/topics").header(name, value);
        assert_eq!(status(&broker, page).await, 403, "{name}: {value}");
    }
    let person = Request::get("/v2/bogus").header("sec-fetch-site", "none");
    assert_eq!(status(&broker, person).await, 404);
}

#[tokio::test]
async fn a_page_whose_name_leads_here_reads_nothing() {
    let broker = Broker::start(&[]).await;
    let port = broker.address.port();
    let ask = async |method: &str, host: &str| {
        let request = Request::builder()
            .method(method)
            .uri("/v2/projects/p/locations/l/queues")
            .header("host", format!("{host}:{port}"));
        status(&broker, request).await
    };
    assert_eq!(ask("GET", "evil.example").await, 403);
    for host in ["localhost", "127.0.0.1", "[::1]", "host.docker.internal"] {
        assert_eq!(ask("GET", host).await, 200, "{host}");
    }
    // A page that writes says where it comes from; a program may have its own name for this machine.
    assert_eq!(ask("POST", "evil.example").await, 400);
}

#[tokio::test]
async fn a_stop_ends_idle_connections_at_once_and_frees_the_address() {
    let broker = Broker::start(&[]).await;
    let address = broker.address;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let ask = Request::get("/v2/bogus").header("host", address.to_string());
    let answer = sender
        .send_request(ask.body(Full::<Bytes>::default()).unwrap())
        .await;
    answer.unwrap().into_body().collect().await.unwrap();
    broker.stop().await;
    connection.await.unwrap().unwrap();
    TcpListener::bind(address).await.unwrap();
}

#[tokio::test]
async fn other_machines_need_a_word_and_a_token() {
    let remote = |allow_remote, token: Option<&str>| Settings {
        listen: "0.0.0.0:0".parse().unwrap(),
        allow_remote,
        admin_token: token.map(Into::into),
        ..Settings::default()
    };
    for (settings, says) in [
        (remote(false, Some("t")), "--allow-remote"),
        (remote(true, None), "--admin-token"),
        (remote(true, Some("")), "--admin-token"),
    ] {
        let error = Bound::bind(settings).await.unwrap_err();
        assert!(
            error.is_mistake() && error.to_string().contains(says),
            "{error}"
        );
    }
    let bound = Bound::bind(remote(true, Some("t"))).await.unwrap();
    assert_ne!(bound.address().port(), 0);
}

#[tokio::test]
async fn a_taken_address_and_a_taken_directory_are_named() {
    let broker = Broker::start(&[]).await;
    let taken = Settings {
        listen: broker.address,
        ..Settings::default()
    };
    let error = Bound::bind(taken).await.unwrap_err().to_string();
    assert!(error.contains(&broker.address.to_string()), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let stored = Settings {
        keep: Keep::Directory(directory.path().join("kept")),
        ..settings()
    };
    let first = Bound::bind(stored.clone()).await.unwrap();
    let error = Bound::bind(stored).await.unwrap_err();
    assert!(!error.is_mistake(), "{error}");
    drop(first);
}

#[test]
fn the_token_is_not_shown() {
    let settings = Settings {
        admin_token: Some("s3cret".into()),
        ..Settings::default()
    };
    assert!(!format!("{settings:?}").contains("s3cret"));
}
