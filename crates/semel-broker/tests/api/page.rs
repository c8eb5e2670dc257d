//! The page, asked as a browser asks: what it shows, what its forms do, and whose forms are taken.

use crate::support::{Broker, Handler, Response, settings};
use http::Request;
use semel_broker::Settings;
use serde_json::json;

const MARKUP: &str = "<script>alert(1)</script>";
const QUEUE: &str = "projects/p/locations/l/queues/q";

/// A broker and somebody's browser.
struct Page {
    broker: Broker,
    cookie: String,
    csrf: String,
}

// === impl Page ===

impl Page {
    async fn open() -> Self {
        let mut page = Self {
            broker: Broker::start(&[]).await,
            cookie: String::new(),
            csrf: String::new(),
        };
        page.csrf = page.find_csrf().await;
        page
    }

    /// What a form sends back; a page without forms for somebody who may not act has one to sign out.
    async fn find_csrf(&self) -> String {
        let page = self.look("").await;
        let (_, rest) = page.split_once(r#"name="csrf" value=""#).unwrap();
        rest.split('"').next().unwrap().into()
    }

    async fn get(&self, path: &str) -> Response {
        let request = Request::get(format!("/ui/{path}")).header("cookie", &self.cookie);
        self.broker.send(request, "").await
    }

    async fn look(&self, path: &str) -> String {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text);
        assert!(!response.text.contains(MARKUP), "{path}");
        response.text
    }

    /// Sends a form as the page itself would.
    async fn post(&self, path: &str, form: &str) -> Response {
        let form = format!("csrf={}&{form}", self.csrf);
        self.broker.send(self.form(path), &form).await
    }

    fn form(&self, path: &str) -> http::request::Builder {
        Request::post(format!("/ui/{path}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("cookie", &self.cookie)
            .header("sec-fetch-site", "same-origin")
            .header("origin", format!("http://{}", self.broker.address))
    }

    async fn sign_in(&mut self, token: &str) {
        let form = format!("token={token}");
        let right = self.broker.send(self.form("sign-in"), &form).await;
        let cookie = right.headers["set-cookie"].to_str().unwrap();
        assert!(right.status == 303 && !cookie.contains(token), "{cookie}");
        self.cookie = cookie.split(';').next().unwrap().into();
        self.csrf = self.find_csrf().await;
    }

    /// The same, when it must be done.
    async fn act(&self, path: &str, form: &str) {
        let response = self.post(path, form).await;
        assert_eq!(response.status, 303, "{path} {form}: {}", response.text);
    }
}

/// Word for word, so that nobody loosens it unseen.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

#[tokio::test]
async fn every_page_and_part_forbids_what_is_inline_or_foreign() {
    let page = Page::open().await;
    for path in ["", "latest", "faults", "clock"] {
        let said = page.get(path).await;
        let policy = said.headers.get("content-security-policy");
        let policy = policy.and_then(|it| it.to_str().ok());
        assert_eq!(
            (said.status.as_u16(), policy),
            (200, Some(POLICY)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_task_is_made_sent_and_looked_at() {
    let (page, handler) = (Page::open().await, Handler::start().await);
    page.act("", "do=queue&project=p&location=l&name=q").await;
    assert!(
        page.look("")
            .await
            .contains(r#"href="queues/projects/p/locations/l/queues/q""#)
    );
    let body = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let url = handler.url.replace(':', "%3A").replace('/', "%2F");
    let form = format!(
        "do=create&method=POST&url={url}%2Fcharge&name=t1&body={body}&headers=x-a%3A+{body}&after=1h"
    );
    page.act(&format!("queues/{QUEUE}"), &form).await;
    assert!(
        page.look(&format!("queues/{QUEUE}"))
            .await
            .contains("/tasks/t1")
    );
    let task = format!("tasks/{QUEUE}/tasks/t1");
    let shown = page.look(&task).await;
    assert!(shown.contains("&lt;script&gt;alert(1)") && shown.contains("It was not sent yet"));
    page.act("clock", "by=2h").await;
    let seen = handler.wait_for(1).await;
    assert_eq!(
        (seen[0].path.as_str(), &seen[0].body[..]),
        ("/charge", MARKUP.as_bytes())
    );
    page.broker.idle(false).await;
    let shown = page.look(&task).await;
    assert!(
        shown.contains("succeeded") && shown.contains("Attempt 1"),
        "{shown}"
    );
    page.broker.stop().await;
}

#[tokio::test]
async fn credentials_of_a_task_are_sent_and_not_shown() {
    let (page, handler) = (Page::open().await, Handler::start().await);
    page.act("", "do=queue&project=p&location=l&name=q").await;
    let url = handler.url.replace(':', "%3A").replace('/', "%2F");
    let headers = "Authorization%3A+Bearer+s3cret-1%0D%0Acookie%3A+a%3Ds3cret-2%0D%0A\
                   Proxy-Authorization%3A+s3cret-3%0D%0Ax-plain%3A+seen";
    let form = format!("do=create&method=POST&url={url}%2F&name=t1&headers={headers}&after=1h");
    page.act(&format!("queues/{QUEUE}"), &form).await;
    let shown = page.look(&format!("tasks/{QUEUE}/tasks/t1")).await;
    assert!(shown.contains("x-plain: seen"), "{shown}");
    for name in ["Authorization", "cookie"] {
        assert!(
            shown.contains(&format!("{name}: (set, not shown)")),
            "{shown}"
        );
    }
    assert!(!shown.contains("s3cret"), "{shown}");
    page.act("clock", "by=2h").await;
    let seen = handler.wait_for(1).await;
    assert_eq!(seen[0].headers["authorization"], "Bearer s3cret-1");
    page.broker.stop().await;
}

#[tokio::test]
async fn a_message_is_published_and_its_backlog_shown() {
    let page = Page::open().await;
    page.act("", "do=topic&project=p&name=events").await;
    page.act(
        "",
        "do=subscription&topic=projects%2Fp%2Ftopics%2Fevents&name=subs",
    )
    .await;
    let form = "do=publish&data=%3Cb%3E&attributes=a%3A+b%0D%0Ac%3A+%3Ci%3E";
    page.act("topics/projects/p/topics/events", form).await;
    let subscription = "subscriptions/projects/p/subscriptions/subs";
    assert!(
        page.look(subscription)
            .await
            .contains("<strong>1</strong> wait")
    );
    assert!(page.look("").await.contains("1 message"));
    let pulled = page
        .broker
        .post(
            "/v1/projects/p/subscriptions/subs:pull",
            json!({ "maxMessages": 1 }),
        )
        .await;
    let message = &pulled.unwrap()["receivedMessages"][0]["message"];
    assert_eq!(
        (&message["data"], &message["attributes"]["c"]),
        (&json!("PGI+"), &json!("<i>"))
    );
    page.act(subscription, "do=drop&reason=tidy").await;
    assert!(
        page.look(subscription)
            .await
            .contains("<strong>0</strong> wait")
    );
    page.act(subscription, "do=delete&reason=tidy").await;
    page.act("topics/projects/p/topics/events", "do=delete&reason=tidy")
        .await;
    assert!(page.look("").await.contains("There is no topic"));
    page.broker.stop().await;
}

#[tokio::test]
async fn queues_are_paused_purged_and_deleted_and_all_is_taken_away() {
    let page = Page::open().await;
    page.act("", "do=queue&project=p&location=l&name=q").await;
    for (word, says) in [
        ("pause", "paused"),
        ("resume", "running"),
        ("purge", "No task waits"),
    ] {
        page.act(
            &format!("queues/{QUEUE}"),
            &format!("do={word}&reason=tidy"),
        )
        .await;
        assert!(
            page.look(&format!("queues/{QUEUE}")).await.contains(says),
            "{word}"
        );
    }
    page.act(&format!("queues/{QUEUE}"), "do=delete&reason=tidy")
        .await;
    assert_eq!(page.get(&format!("queues/{QUEUE}")).await.status, 404);
    page.act("", "do=topic&project=p&name=events").await;
    page.act("", "do=reset&reason=tidy").await;
    assert!(page.look("").await.contains("There is no topic"));
    page.broker.stop().await;
}

#[tokio::test]
async fn faults_are_switched_on_and_off() {
    let page = Page::open().await;
    page.act(
        "faults",
        "do=add&kind=delay&rate=0.5&argument=500ms&resource=orders",
    )
    .await;
    page.act("faults", "do=add&kind=duplicate&rate=1&argument=&resource=")
        .await;
    assert!(
        page.look("faults")
            .await
            .contains("<code>delay=0.5:500ms@orders</code>")
    );
    page.act("faults", "do=remove&fault=delay%3D0.5%3A500ms%40orders")
        .await;
    let faults = page.broker.get("/_semel/faults").await.unwrap();
    assert_eq!(faults["faults"], json!(["duplicate=1"]));
    page.act("faults", "do=clear").await;
    assert!(
        page.look("faults")
            .await
            .contains("Nothing goes wrong on purpose")
    );
    page.broker.stop().await;
}

#[tokio::test]
async fn what_the_broker_refuses_is_said_on_a_page() {
    let page = Page::open().await;
    for (path, form, says) in [
        (
            "",
            "do=queue&project=p&location=l&name=%3Cscript%3E",
            "&lt;script&gt;",
        ),
        ("", "do=nothing", "nothing that this screen does"),
        ("faults", "do=add&kind=delay&rate=7", "is not a fault"),
        ("clock", "by=soon", "is not a duration"),
        (
            "topics/projects/p/topics/none",
            "do=publish&data=x",
            "not found",
        ),
    ] {
        let response = page.post(path, form).await;
        assert!(
            response.status.is_client_error(),
            "{path} {form}: {}",
            response.status
        );
        assert!(
            response.text.contains(says) && !response.text.contains("<script>"),
            "{}",
            response.text
        );
    }
    for path in [
        "queues/projects/p/locations/l/queues/none",
        "topics/x",
        "subscriptions/x",
        "none",
    ] {
        assert!(page.get(path).await.status.is_client_error(), "{path}");
    }
    page.broker.stop().await;
}

#[tokio::test]
async fn only_the_page_itself_sends_its_forms() {
    let page = Page::open().await;
    let form = format!("csrf={}&do=topic&project=p&name=events", page.csrf);
    let other = |name: &str, value: &str| {
        let mut request = page.form("");
        request.headers_mut().unwrap().insert(
            name.parse::<http::HeaderName>().unwrap(),
            value.parse().unwrap(),
        );
        request
    };
    for (request, form) in [
        (page.form(""), "do=topic&project=p&name=events"),
        (page.form(""), "csrf=00&do=topic&project=p&name=events"),
        (other("sec-fetch-site", "cross-site"), &form),
        (other("host", "evil.example"), &form),
    ] {
        let response = page.broker.send(request, form).await;
        assert_eq!(response.status, 403, "{}", response.text);
    }
    let astray = Request::get("/ui/").header("host", "evil.example");
    assert_eq!(page.broker.send(astray, "").await.status, 403);
    assert!(page.look("").await.contains("There is no topic"));
    page.broker.stop().await;
}

#[tokio::test]
async fn a_broker_with_a_token_asks_people_to_sign_in() {
    let broker = Broker::with(Settings {
        admin_token: Some("s3cret".into()),
        ..settings()
    });
    let mut page = Page {
        broker: broker.await,
        cookie: String::new(),
        csrf: String::new(),
    };
    assert_eq!(page.get("").await.headers["location"], "sign-in?to=");
    let wrong = page.broker.send(page.form("sign-in"), "token=other").await;
    assert_eq!(
        (
            wrong.status.as_u16(),
            wrong.headers.contains_key("set-cookie")
        ),
        (401, false)
    );
    page.sign_in("s3cret").await;
    let silent = page.post("faults", "do=add&kind=duplicate&rate=1").await;
    assert!(silent.status == 400 && silent.text.contains("needs a reason"));
    page.act("faults", "do=add&kind=duplicate&rate=1&reason=a+test")
        .await;
    let faults = page.look("faults").await;
    assert!(faults.contains("duplicate=1") && faults.contains(r#"name="reason""#));
    page.broker.stop().await;
}

#[tokio::test]
async fn who_shows_the_token_to_look_may_not_act() {
    let tokens = |act: Option<&str>, view: &str| Settings {
        admin_token: act.map(Into::into),
        admin_view_token: Some(view.into()),
        ..settings()
    };
    for (act, view) in [
        (None, "v13w"),
        (Some("s3cret"), "s3cret"),
        (Some("s3cret"), ""),
    ] {
        let refused = semel_broker::Bound::bind(tokens(act, view))
            .await
            .unwrap_err();
        assert!(refused.is_mistake() && refused.to_string().contains("--admin-view-token"));
    }
    let mut page = Page {
        broker: Broker::with(tokens(Some("s3cret"), "v13w")).await,
        cookie: String::new(),
        csrf: String::new(),
    };
    page.sign_in("v13w").await;
    assert!(page.look("").await.contains("You may look, not act"));
    let form = "do=topic&project=p&name=events&reason=a+test";
    assert_eq!(page.post("", form).await.status, 403);
    assert!(page.look("").await.contains("There is no topic"));
    let reset = Request::post("/_semel/reset").header("authorization", "Bearer v13w");
    assert_eq!(page.broker.send(reset, "").await.status, 401);
    page.sign_in("s3cret").await;
    page.act("", form).await;
    page.broker.stop().await;
}

#[tokio::test]
async fn what_cannot_be_taken_back_is_done_for_a_reason() {
    let page = Page::open().await;
    page.act("", "do=queue&project=p&location=l&name=q").await;
    page.act("", "do=topic&project=p&name=events").await;
    page.act(
        "",
        "do=subscription&topic=projects%2Fp%2Ftopics%2Fevents&name=subs",
    )
    .await;
    for (path, words) in [
        ("", vec!["reset"]),
        (
            "queues/projects/p/locations/l/queues/q",
            vec!["purge", "delete"],
        ),
        ("topics/projects/p/topics/events", vec!["delete"]),
        (
            "subscriptions/projects/p/subscriptions/subs",
            vec!["drop", "delete"],
        ),
    ] {
        let shown = page.look(path).await;
        let asked = shown.matches(r#"name="reason""#).count();
        assert_eq!(asked, words.len(), "{path}");
        for word in words {
            for reason in ["", "&reason=+", "&reason=%E2%80%8B"] {
                let refused = page.post(path, &format!("do={word}{reason}")).await;
                assert_eq!(refused.status, 400, "{path} {word}");
                assert!(refused.text.contains("needs a reason"), "{}", refused.text);
            }
        }
        page.look(path).await;
    }
    page.broker.stop().await;
}

#[tokio::test]
async fn schemas_and_refusals_are_listed() {
    let page = Page::open().await;
    for path in ["schemas", "refusals"] {
        assert!(page.look(path).await.contains(r#"class="empty""#), "{path}");
    }
    // More than a page of them, and none of a project with a topic.
    let definition = format!(r#"{{"type":"enum","name":"E","doc":"{MARKUP}","symbols":["A"]}}"#);
    let schema = json!({ "type": "AVRO", "definition": definition });
    for number in 100..210 {
        let path = format!("/v1/projects/alone/schemas?schemaId=schema-{number}");
        page.broker.post(&path, schema.clone()).await.unwrap();
    }
    let path = "/v1/projects/alone/schemas/schema-209:commit";
    let second = page.broker.post(path, json!({ "schema": schema })).await;
    let topic = json!({ "schemaSettings": { "schema": "projects/alone/schemas/schema-209", "encoding": "JSON" } });
    page.broker
        .put("/v1/projects/p/topics/events", topic)
        .await
        .unwrap();
    let shown = page.look("schemas").await;
    for number in 100..210 {
        assert!(
            shown.contains(&format!("schemas/schema-{number}<")),
            "{number}"
        );
    }
    let (_, last) = shown.split_once("schemas/schema-209<").unwrap();
    let revision = second.unwrap()["revisionId"].as_str().unwrap().to_owned();
    for told in ["AVRO", "<td>2</td>", &revision, "projects/p/topics/events"] {
        assert!(last.contains(told), "{told}: {last}");
    }
    assert!(last.contains("&lt;script&gt;alert(1)"), "{last}");

    let refused = page
        .broker
        .put("/v1/projects/p/topics/other", json!({ "kmsKeyName": "k" }));
    refused.await.unwrap_err();
    let shown = page.look("refusals").await;
    for told in [
        "google.pubsub.v1.Publisher.CreateTopic",
        "Topic.kms_key_name is not served here",
    ] {
        assert!(shown.contains(told), "{shown}");
    }
    page.broker.stop().await;
}
