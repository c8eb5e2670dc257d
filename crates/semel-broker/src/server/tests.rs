use super::*;
use crate::Keep;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A broker that serves until it is told to stop.
struct Served {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn serve(settings: Settings) -> Served {
    let bound = Bound::bind(settings).await.unwrap();
    let address = bound.address();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(bound.serve(async move { drop(stopped.await) }));
    Served {
        address,
        stop,
        ended,
    }
}

fn local() -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        ..Settings::default()
    }
}

fn request(served: &Served, path: &str) -> http::request::Builder {
    let uri = format!("http://{}{path}", served.address);
    Request::builder()
        .uri(uri)
        .header("host", served.address.to_string())
}

async fn by_http1(served: &Served, request: Request<Full<Bytes>>) -> (StatusCode, String) {
    let stream = TcpStream::connect(served.address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// The grpc-status, from the head or the tail.
async fn by_grpc(served: &Served, method: &str, message: &[u8]) -> String {
    let stream = TcpStream::connect(served.address).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let request = request(served, method).method("POST");
    let request = request
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let answer = sender
        .send_request(request.body(Full::<Bytes>::from(framed)).unwrap())
        .await
        .unwrap();
    let status = |headers: &HeaderMap| {
        headers
            .get("grpc-status")
            .map(|it| it.to_str().unwrap().to_owned())
    };
    let head = status(answer.headers());
    let tail = answer.into_body().collect().await.unwrap();
    head.or_else(|| tail.trailers().and_then(status)).unwrap()
}

#[tokio::test]
async fn one_port_serves_rest_and_grpc() {
    let served = serve(local()).await;
    let queue = "/v2/projects/p/locations/l/queues/q";
    let rest = request(&served, queue).body(Full::default()).unwrap();
    let (status, body) = by_http1(&served, rest).await;
    assert_eq!(status, 404, "{body}");
    assert!(body.contains("\"NOT_FOUND\""), "{body}");
    let name = b"\x0a\x23projects/p/locations/l/queues/queue";
    let get = "/google.cloud.tasks.v2.CloudTasks/GetQueue";
    assert_eq!(by_grpc(&served, get, name).await, "5");
    let topic = b"\x0a\x17projects/p/topics/topic";
    assert_eq!(
        by_grpc(&served, "/google.pubsub.v1.Publisher/GetTopic", &topic[..]).await,
        "5"
    );
    assert_eq!(
        by_grpc(
            &served,
            "/google.cloud.tasks.v2.CloudTasks/BatchCreateTasks",
            b""
        )
        .await,
        "12"
    );
    assert_eq!(
        by_grpc(&served, "/google.longrunning.Operations/GetOperation", b"").await,
        "12"
    );
    served.stop.send(()).unwrap();
    served.ended.await.unwrap();
}

#[tokio::test]
async fn web_pages_are_refused() {
    let served = serve(local()).await;
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-origin"),
    ] {
        let page = request(&served, "/v1/projects/p/topics").header(name, value);
        let (status, _) = by_http1(&served, page.body(Full::default()).unwrap()).await;
        assert_eq!(status, 403, "{name}: {value}");
    }
    let person = request(&served, "/v2/bogus").header("sec-fetch-site", "none");
    let (status, _) = by_http1(&served, person.body(Full::default()).unwrap()).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_page_whose_name_leads_here_reads_nothing() {
    let served = serve(local()).await;
    let ask = |method: &str, host: &str| {
        let request = Request::builder()
            .method(method)
            .uri("/v2/projects/p/locations/l/queues")
            .header("host", host);
        request.body(Full::default()).unwrap()
    };
    let port = served.address.port();
    let evil = format!("evil.example:{port}");
    assert_eq!(by_http1(&served, ask("GET", &evil)).await.0, 403);
    for host in ["localhost", "127.0.0.1", "[::1]", "host.docker.internal"] {
        let host = format!("{host}:{port}");
        assert_eq!(by_http1(&served, ask("GET", &host)).await.0, 200, "{host}");
    }
    // A page that writes says where it comes from; a program may have its own name for this machine.
    assert_eq!(by_http1(&served, ask("POST", &evil)).await.0, 400);
}

#[tokio::test]
async fn a_stop_ends_idle_connections_at_once_and_frees_the_address() {
    let served = serve(local()).await;
    let stream = TcpStream::connect(served.address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let ask = request(&served, "/v2/bogus")
        .body(Full::<Bytes>::default())
        .unwrap();
    sender
        .send_request(ask)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    served.stop.send(()).unwrap();
    served.ended.await.unwrap();
    connection.await.unwrap().unwrap();
    TcpListener::bind(served.address).await.unwrap();
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
    let served = serve(local()).await;
    let taken = Settings {
        listen: served.address,
        ..Settings::default()
    };
    let error = Bound::bind(taken).await.unwrap_err();
    assert!(
        error.to_string().contains(&served.address.to_string()),
        "{error}"
    );
    let directory = tempfile::tempdir().unwrap();
    let kept = Settings {
        keep: Keep::Directory(directory.path().join("kept")),
        ..local()
    };
    let first = Bound::bind(kept.clone()).await.unwrap();
    let error = Bound::bind(kept).await.unwrap_err();
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
