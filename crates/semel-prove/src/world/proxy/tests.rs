use super::*;
use crate::world::exchange::{Boundary, Hold, Signature};

/// Answers every chunk with the same chunk.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut chunk = vec![0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut chunk).await {
                    stream.write_all(&chunk[..read]).await.unwrap();
                }
            });
        }
    });
    address
}

async fn proxied() -> (Arc<Recorder>, Proxy, TcpStream) {
    let recorder = Arc::<Recorder>::default();
    let config = ProxyConfig {
        process: 3,
        speaker: "handler".to_owned(),
        dependency: 0,
        lane: "ECHO_URL".to_owned(),
        protocol: Protocol::Http,
        upstream: echo().await,
    };
    let proxy = Proxy::open(config, Arc::clone(&recorder)).await.unwrap();
    let client = TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();
    recorder.begin();
    (recorder, proxy, client)
}

const REQUEST: &[u8] = b"POST /a1 HTTP/1.1\r\n\r\n";

async fn ask(client: &mut TcpStream) -> usize {
    say(client, REQUEST).await
}

/// How long the answer is.
async fn say(client: &mut TcpStream, words: &[u8]) -> usize {
    client.write_all(words).await.unwrap();
    let mut answer = vec![0; 1024];
    client.read(&mut answer).await.unwrap()
}

fn outward(nth: u32) -> Boundary {
    Boundary {
        signature: Signature {
            process: 3,
            dependency: 0,
            outward: true,
            shape: "POST /#".to_owned(),
        },
        nth,
    }
}

#[tokio::test]
async fn exchanges_are_numbered_in_both_directions_and_calls_are_counted() {
    let (recorder, _proxy, mut client) = proxied().await;
    for _ in 0..2 {
        assert_eq!(ask(&mut client).await, REQUEST.len());
    }
    let exchanges = recorder.exchanges();
    let seen = exchanges.iter().map(|it| (it.number, it.is_request()));
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [(1, true), (2, false), (3, true), (4, false)]
    );
    assert_eq!(exchanges[2].boundary, outward(2));
    let calls = [(0, "a1"), (0, "b2"), (1, "a1")].map(|(at, id)| recorder.calls(at, id).len());
    assert_eq!(calls, [2, 0, 0]);
    assert!(recorder.quiet().is_some());
}

#[tokio::test]
async fn held_bytes_go_on_when_they_are_let() {
    let (recorder, _proxy, mut client) = proxied().await;
    recorder.hold(Hold::At(outward(1)));
    let asked = tokio::spawn(async move { ask(&mut client).await });
    assert_eq!(recorder.held().await.boundary, outward(1));
    assert_eq!(recorder.calls(0, "a1").len(), 0, "nothing has arrived yet");
    assert!(recorder.quiet().is_none(), "a question is open");
    recorder.release(Release::Forward);
    assert_eq!(asked.await.unwrap(), REQUEST.len());
    assert_eq!(recorder.calls(0, "a1").len(), 1);
}

#[tokio::test]
async fn dropped_bytes_never_arrive_and_the_connection_breaks() {
    let (recorder, _proxy, mut client) = proxied().await;
    recorder.hold(Hold::At(outward(1)));
    let asked = tokio::spawn(async move { ask(&mut client).await });
    recorder.held().await;
    recorder.release(Release::Drop);
    assert_eq!(asked.await.unwrap(), 0);
    assert_eq!(recorder.calls(0, "a1").len(), 0);
}

#[tokio::test]
async fn process_hears_an_answer_in_the_place_of_its_dependency() {
    for at in [1, 2] {
        let (recorder, _proxy, mut client) = proxied().await;
        recorder.hold(Hold::Number(at));
        let asked = tokio::spawn(async move {
            client.write_all(REQUEST).await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            answer
        });
        recorder.held().await;
        recorder.release(Release::Answer(b"no"));
        assert_eq!(asked.await.unwrap(), b"no");
        let arrived = usize::from(at == 2);
        assert_eq!(recorder.calls(0, "a1").len(), arrived, "at boundary {at}");
    }
}

#[tokio::test]
async fn what_is_said_before_any_delivery_is_background() {
    let (recorder, _proxy, mut client) = proxied().await;
    recorder.listen();
    say(&mut client, b"GET /poll HTTP/1.1\r\n\r\n").await;
    recorder.begin();
    say(&mut client, b"GET /poll HTTP/1.1\r\n\r\n").await;
    ask(&mut client).await;
    assert_eq!(recorder.exchanges()[0].message.text, "POST /a1");
}

#[tokio::test]
async fn runners_meet_before_anyone_is_heard() {
    let (recorder, proxy, mut one) = proxied().await;
    let mut two = TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();
    recorder.race(2);
    let first = tokio::spawn(async move { ask(&mut one).await });
    // The first one has asked, and waits.
    while recorder.exchanges().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(recorder.calls(0, "a1").len(), 0, "nothing has arrived yet");
    assert_eq!(ask(&mut two).await, REQUEST.len());
    assert_eq!(first.await.unwrap(), REQUEST.len());
}

#[tokio::test(start_paused = true)]
async fn runner_that_is_alone_is_answered_in_the_end() {
    let recorder = Recorder::default();
    recorder.begin();
    recorder.race(2);
    let question = outward(1).signature;
    assert!(!recorder.met(&question));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(recorder.met(&question));
}

#[tokio::test]
async fn what_an_earlier_trial_left_behind_is_told_apart_and_still_counted() {
    let (recorder, _proxy, mut client) = proxied().await;
    recorder.set_id_prefix("a");
    recorder.owns("a1");
    ask(&mut client).await;
    assert_eq!(recorder.calls(0, "a1").len(), 1);
    recorder.idle();
    ask(&mut client).await;
    recorder.begin();
    recorder.owns("a2");
    recorder.hold(Hold::Number(1));
    ask(&mut client).await;
    let exchanges = recorder.exchanges();
    assert!(exchanges.is_empty(), "{exchanges:?}");
    assert!(recorder.left_behind().is_some());
    assert_eq!(recorder.calls(0, "a1").len(), 3);
    say(&mut client, b"POST /a2 HTTP/1.1\r\n\r\n").await;
    assert_eq!(recorder.exchanges()[0].message.text, "POST /a2");
    assert_eq!(
        (recorder.calls(0, "a1").len(), recorder.calls(0, "a2").len()),
        (3, 1)
    );
}
