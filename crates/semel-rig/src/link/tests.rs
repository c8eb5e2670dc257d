//! A link to an echo.

use super::*;
use tokio::time::timeout;

/// Long enough to see that something does not come.
const A_WHILE: Duration = Duration::from_millis(50);

/// A link to an echo, and a connection over it.
async fn linked() -> (Link, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let target = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await.ok();
            });
        }
    });
    let link = Link::to(target).await.unwrap();
    let client = connect(&[link.port()], Duration::ZERO).await.unwrap().0;
    (link, client)
}

async fn echoed(client: &mut TcpStream, length: usize) -> String {
    let mut read = vec![0; length];
    client.read_exact(&mut read).await.unwrap();
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn held_bytes_arrive_when_it_forwards() {
    let (link, mut client) = linked().await;
    client.write_all(b"one").await.unwrap();
    assert_eq!(echoed(&mut client, 3).await, "one");
    link.hold();
    client.write_all(b"two").await.unwrap();
    let early = timeout(A_WHILE, client.read_u8()).await;
    assert!(early.is_err(), "{early:?}");
    link.forward();
    assert_eq!(echoed(&mut client, 3).await, "two");
}

#[tokio::test]
async fn swallowed_bytes_never_arrive_and_a_cut_link_ends() {
    let (link, mut client) = linked().await;
    client.write_all(b"one").await.unwrap();
    assert_eq!(echoed(&mut client, 3).await, "one");
    link.swallow();
    client.write_all(b"two").await.unwrap();
    let early = timeout(A_WHILE, client.read_u8()).await;
    assert!(early.is_err(), "{early:?}");
    link.cut();
    // Closed with bytes unread or in order: either way it is over.
    assert!(!matches!(client.read(&mut [0; 8]).await, Ok(1..)));
}

#[tokio::test]
async fn message_stops_halfway_until_it_is_let_go() {
    let (link, mut client) = linked().await;
    let stopped = link.stop_halfway(Direction::ToTarget);
    client.write_all(b"abcd").await.unwrap();
    let halfway = stopped.await.unwrap();
    assert_eq!(echoed(&mut client, 2).await, "ab");
    drop(halfway);
    assert_eq!(echoed(&mut client, 2).await, "cd");
}
