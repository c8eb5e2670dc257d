//! The page of a store without a gate.

use crate::support::prelude::*;
use semel::key::{Field, Scope};
use semel::protocol::{Claim, Claimed};
use semel::{Fingerprint, Key};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_gate::StorePage;
use semel_gate::settings::Secret;
use tokio::sync::oneshot;

#[tokio::test]
async fn a_store_has_the_same_page_without_a_gate() {
    let directory = tempfile::tempdir().unwrap();
    let opened = EmbeddedStore::open(directory.path(), EmbeddedSettings::default());
    let store = Arc::new(opened.unwrap());
    let order = Field {
        kind: 's',
        bytes: b"A-1".to_vec(),
    };
    let key = Key::of(&Scope::new("default", "shop.charge"), &[order]).unwrap();
    let claim = Claim {
        label: Bytes::from_static(b"\xffany bytes"),
        ..Claim::new(key, Fingerprint::of(b"x"))
    };
    let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
        panic!("a new key is granted")
    };
    let outcome = Outcome::ok("the-answer").encode();
    let held = store.complete(&lease, &outcome, claim.retention).await;
    drop(held.unwrap());

    let page = StorePage {
        place: "store · embedded".into(),
        namespace: "default".into(),
        hosts: Vec::new(),
        act_token: None,
        view_token: None,
        show_bodies: true,
    };
    let socket = TcpListener::bind(here()).await.unwrap();
    let at = socket.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let kept: Arc<EmbeddedStore> = Arc::clone(&store);
    let served = tokio::spawn(page.serve(kept, socket, async { drop(stopped.await) }));
    let look = async |path: &str| Ask::get(path).send(at).await;

    let overview = async || look("/ui/").await.text().contains("1 record in the store");
    until("the overview has counted", overview).await;
    look("/ui/").await.tells("without a gate");
    for screen in ["routes", "duplicates", "mismatches"] {
        look(&format!("/ui/{screen}"))
            .await
            .tells("Open the page of a running gate");
    }
    for screen in ["running", "doubt", "letters", "audit"] {
        assert_eq!(look(&format!("/ui/{screen}")).await.status, 200, "{screen}");
    }
    let record = look(&format!("/ui/records/{key}")).await;
    record
        .tells("any bytes")
        .tells("the-answer")
        .tells("took effect");
    let found = look(&format!("/ui/search?q={key}")).await;
    let record = format!("records/{key}");
    assert_eq!(found.header("location"), Some(record.as_str()));
    let found = look("/ui/search?q=shop.charge+order_id%3DA-1").await;
    assert_eq!(found.header("location"), Some(record.as_str()));
    look("/ui/search?q=shop.charge+order_id%3DA-2")
        .await
        .tells("Nothing is known of")
        .tells("shop.charge order_id=A-1");
    let parts: Vec<_> = (0..64).map(|number| format!("a{number}%3D1")).collect();
    look(&format!("/ui/search?q=shop.charge+{}", parts.join("+")))
        .await
        .tells("Nothing is known of");
    assert_eq!(look("/").await.header("location"), Some("ui/"));

    drop(stop);
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn whoever_looks_at_a_store_signs_in_with_one_of_its_tokens() {
    let directory = tempfile::tempdir().unwrap();
    let opened = EmbeddedStore::open(directory.path(), EmbeddedSettings::default());
    let page = StorePage {
        place: "store · embedded".into(),
        namespace: "default".into(),
        hosts: Vec::new(),
        act_token: Some(Secret("a-token-that-acts".into())),
        view_token: Some(Secret("a-token-that-looks".into())),
        show_bodies: false,
    };
    let socket = TcpListener::bind(here()).await.unwrap();
    let at = socket.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(page.serve(Arc::new(opened.unwrap()), socket, async {
        drop(stopped.await)
    }));
    let post = async |path: &str, cookie: &str, form: String| {
        let ask = Ask::post(path).header("Content-Type", "application/x-www-form-urlencoded");
        let ask = ask.header("Origin", &format!("http://{at}"));
        ask.header("Cookie", cookie).body(form).send(at).await
    };
    let outside = Ask::get("/ui/letters").send(at).await;
    assert_eq!(outside.header("location"), Some("sign-in?to=letters"));
    assert_eq!(
        post("/ui/sign-in", "", "token=wrong".into()).await.status,
        401
    );

    for (token, may, status) in [
        ("looks", "look, not act", 403),
        ("acts", "look and act", 303),
    ] {
        let form = format!("token=a-token-that-{token}&name=Ada&to=letters");
        let said = post("/ui/sign-in", "", form).await;
        assert_eq!(
            (said.status, said.header("location")),
            (303, Some("letters"))
        );
        let cookie = said.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let page = Ask::get("/ui/letters")
            .header("Cookie", cookie)
            .send(at)
            .await;
        assert_eq!(page.status, 200);
        let page = page.text();
        assert!(
            page.contains("Signed in: Ada (") && page.contains(may),
            "{page}"
        );
        let csrf = super::bed::hidden(page, "csrf").unwrap();
        let tried = post("/ui/letters/try", cookie, format!("csrf={csrf}")).await;
        assert_eq!(tried.status, status, "{tried:?}");
    }
    drop(stop);
    served.await.unwrap().unwrap();
}
