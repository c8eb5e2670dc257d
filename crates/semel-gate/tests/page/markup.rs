//! Whatever a delivery or an operator says stays text, on every screen.

use super::bed::{PageBed, encoded};
use crate::support::prelude::*;
use semel::letter::{Letter, LetterId, Put};
use semel::protocol::{Claim, Claimed, Fence};
use semel::store::Letters;
use semel::{Fingerprint, Key};
use semel_gate::StorePage;
use semel_gate::letters::StoredDelivery;
use semel_gate::settings::Secret;
use tokio::sync::oneshot;

/// What would be run if it were not escaped, in content, in attributes and in addresses.
const MARKUP: &str = r#"<script>alert("x")</script>'"><img src=x onerror=alert(1)>"#;

/// The beginnings that must not be there raw.
const RAW: [&str; 3] = ["<script>alert", "<img src=x", "onerror=alert(1)>"];

#[tokio::test]
async fn markup_in_every_field_stays_text_on_every_screen() {
    let bed = PageBed::with(|settings| settings.routes[0].keep_payload = true).await;
    fill(&bed).await;
    let mut screens: Vec<String> = [
        "",
        "live",
        "running",
        "letters",
        "doubt",
        "mismatches",
        "routes",
        "routes/work",
        "duplicates",
        "audit",
    ]
    .map(|path| format!("/ui/{path}"))
    .to_vec();
    screens.push(format!("/ui/search?q={}", encoded(MARKUP)));
    screens.push(format!("/ui/routes/{}", encoded(MARKUP)));
    screens.push(format!("/ui/letters/{}", encoded(MARKUP)));
    screens.push(format!("/ui/letters?group={}", encoded(MARKUP)));
    screens.push(format!("/ui/records/{}", encoded(MARKUP)));
    for key in bed.keys().await {
        screens.push(format!("/ui/records/{key}"));
    }
    for head in bed.letters().await {
        screens.push(format!("/ui/letters/{}", head.id));
    }
    bed.sees("/ui/letters", "alert").await;
    bed.sees("/ui/running", "alert").await;
    assert!(screens.len() > 18, "{screens:?}");
    let path = format!("/ui/records/{}", Key::from_bytes([1; 32]));
    let steps = "<h2>Steps</h2><ul><li><b>&lt;script&gt;alert";
    assert!(bed.look(&path).await.contains(steps));
    let mut told = 0;
    for path in &screens {
        let page = bed.get(path).await;
        assert!(
            [200, 303, 400, 404].contains(&page.status),
            "{path}: {page:?}"
        );
        clean(path, page.text());
        told += usize::from(page.text().contains("alert("));
    }
    assert!(
        told >= 10,
        "the markup is shown as text on most screens, here on {told}"
    );
    let tried = bed.post(
        "/ui/routes/work",
        &[
            ("method", "POST"),
            ("path", MARKUP),
            ("headers", MARKUP),
            ("body", MARKUP),
        ],
    );
    clean("the test box", tried.await.text());
    let refused = bed.post("/ui/letters/try", &[("letter", MARKUP)]).await;
    clean("a refusal", refused.text());
    jobs(&bed).await;
}

/// A dry run names groups and letters; a redrive says why letters stay.
async fn jobs(bed: &PageBed) {
    let page = bed.look("/ui/letters").await;
    let (before, _) = page.split_once(r#"aria-label="choose &lt;script"#).unwrap();
    let (_, group) = before.rsplit_once(r#"name="group" value=""#).unwrap();
    let group = group.split('"').next().unwrap();
    let tried = bed.acts("/ui/letters/try", &[("group", group)]).await;
    let page = bed.sees(&tried, ">done<").await;
    clean("a dry run", &page);
    assert!(page.contains("Dry run of &lt;script&gt;alert"), "{page}");
    let fields = [("reason", MARKUP), ("per_second", "1000")];
    let redriven = bed.acts(&format!("{tried}/redrive"), &fields).await;
    let page = bed.sees(&redriven, ">done<").await;
    clean("a redrive", &page);
    let (_, notes) = page.split_once("Letters that stay").unwrap();
    assert!(
        notes.contains("no route &quot;&lt;script&gt;alert"),
        "{notes}"
    );
    clean("the list of acts", &bed.look("/ui/letters").await);
}

#[tokio::test]
async fn markup_stays_text_where_somebody_signs_in() {
    let token = || Some(Secret("correct-horse".into()));
    let bed = PageBed::with(|settings| settings.admin_token = token()).await;
    let to = encoded(MARKUP);
    for path in [format!("/ui/sign-in?to={to}"), format!("/ui/search?q={to}")] {
        clean(&path, bed.get(&path).await.text());
    }
    let ask = Ask::post("/ui/sign-in")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", &format!("http://{}", bed.admin))
        .body(format!("token=wrong&to={to}"));
    clean("a wrong token", ask.send(bed.admin).await.text());
}

#[tokio::test]
async fn markup_stays_text_on_the_page_of_a_store() {
    let bed = PageBed::new().await;
    fill(&bed).await;
    let page = StorePage {
        place: MARKUP.into(),
        namespace: MARKUP.into(),
        hosts: Vec::new(),
        act_token: None,
        view_token: None,
        show_bodies: true,
    };
    let socket = TcpListener::bind(here()).await.unwrap();
    let at = socket.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let kept = Arc::clone(&bed.store);
    let served = tokio::spawn(page.serve(kept, socket, async { drop(stopped.await) }));
    let screens = ["", "running", "doubt", "letters", "audit", "search"];
    let mut screens: Vec<_> = screens.map(|path| format!("/ui/{path}")).to_vec();
    for key in bed.keys().await {
        screens.push(format!("/ui/records/{key}"));
    }
    for head in bed.letters().await {
        screens.push(format!("/ui/letters/{}", head.id));
    }
    for path in screens {
        let said = Ask::get(&path).send(at).await;
        assert_eq!(said.status, 200, "{path}: {said:?}");
        assert!(said.text().contains("&lt;script&gt;alert"), "{path}");
        clean(&path, said.text());
    }
    drop(stop);
    served.await.unwrap().unwrap();
}

/// Deliveries, letters, records and acts with markup wherever they have text.
async fn fill(bed: &PageBed) {
    let body = json!({"order_id": MARKUP, "more": MARKUP}).to_string();
    let ask = |name: &str, body: &str| {
        Ask::post(&format!("/work?q={}", encoded(MARKUP)))
            .header("X-CloudTasks-QueueName", MARKUP)
            .header("X-CloudTasks-TaskName", &format!("{name}{MARKUP}"))
            .header("X-Own", MARKUP)
            .header("traceparent", MARKUP)
            .header("Content-Type", "application/json")
            .body(body.to_owned())
    };
    bed.handler
        .answers(Say::new(200, MARKUP).header("Content-Type", "text/html"));
    ask("a", &body).send(bed.gate).await.is(200);
    let other = json!({"order_id": MARKUP, "more": "other"}).to_string();
    ask("b", &other).send(bed.gate).await.is(200);
    ask("c", MARKUP).send(bed.gate).await.is(200);
    bed.handler.answers(Say::new(422, MARKUP));
    ask("d", r#"{"order_id":"<img src=x onerror=alert(1)>"}"#)
        .send(bed.gate)
        .await
        .is(200);
    bed.handler.answers(Say::new(500, MARKUP));
    ask("e", r#"{"order_id":"<script>alert(2)</script>"}"#)
        .send(bed.gate)
        .await
        .is(200);
    // As the library writes them: any bytes.
    let label = [MARKUP.as_bytes(), b"\xff\x00"].concat();
    for (number, label) in [(1, label), (2, format!("{{\"parts\":{{\"{0}\":\"<img src=x>\"}},\"route\":\"<script>alert(3)\",\"gate\":\"<script>alert(4)\"}}", "<script>alert").into_bytes())] {
        let claim = Claim {
            label: label.into(),
            by: MARKUP.into(),
            ..Claim::new(Key::from_bytes([number; 32]), Fingerprint::of(b"x"))
        };
        drop(bed.store.claim(&claim).await.unwrap());
    }
    assert_eq!(bed.store.put(&letter()).await.unwrap(), Put::Applied);
    let key = Key::from_bytes([1; 32]);
    bed.acts(&format!("/ui/records/{key}/release"), &[("reason", MARKUP)])
        .await;
    let json = format!("/records/{key}/release?why={}", encoded(MARKUP));
    Ask::post(&json).send(bed.admin).await;
    let claim = Claim::new(key, Fingerprint::of(b"x"));
    let Claimed::Granted(lease) = bed.store.claim(&claim).await.unwrap() else {
        panic!("it was released")
    };
    drop(bed.store.step_begin(&lease, MARKUP).await.unwrap());
}

/// A letter whose route and cause have markup.
fn letter() -> Letter {
    let request = Request::post("/work").header("x-own", MARKUP);
    let request = request.body(Bytes::from_static(MARKUP.as_bytes())).unwrap();
    Letter {
        id: LetterId([9; 32]),
        key: None,
        route: MARKUP.into(),
        reason: Reason::Invalid,
        fence: Fence(0),
        retention: Duration::from_secs(60),
        redriven: false,
        alarmed: false,
        delivery: StoredDelivery::of(MARKUP, &request, MARKUP.into()).encode(),
    }
}

fn clean(path: &str, page: &str) {
    for raw in RAW {
        let at = page.find(raw);
        let around = at.map(|at| &page[at.saturating_sub(200)..(at + 80).min(page.len())]);
        assert!(at.is_none(), "{path} has {raw} raw: {around:?}");
    }
}
