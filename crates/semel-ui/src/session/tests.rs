//! A page with one screen and one act, asked as browsers and others ask.

use super::*;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Request};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use std::sync::Arc;
use tower::ServiceExt;

const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 8081);
const ACT: &str = "correct-horse";
const VIEW: &str = "only-looks";
/// Word for word, so that nobody loosens it unseen.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

struct Page(Router);

/// What came back.
#[derive(Debug)]
struct Told {
    status: u16,
    headers: HeaderMap,
    body: String,
}

/// Somebody's browser.
#[derive(Clone, Debug, Default)]
struct Browser {
    cookie: String,
    csrf: String,
}

// === impl Page ===

impl Page {
    fn new(listens: impl Into<SocketAddr>, act: Option<&str>, view: Option<&str>) -> Self {
        let access = Access::new(AccessSettings {
            place: "shop",
            listens: listens.into(),
            hosts: &["ops.example".into()],
            act_token: act,
            view_token: view,
        });
        let screens = Router::new()
            .route("/", get(async |Extension(it): Extension<Visitor>| it.csrf))
            .route(
                "/deep/er",
                get(async |Extension(it): Extension<Visitor>| it.who),
            )
            .route(
                "/numbers/{number}",
                get(async |Path(it): Path<u64>| it.to_string()),
            )
            .route("/act", post(async |body: String| format!("done {body}")));
        Self(mount(Arc::new(access), screens))
    }

    fn with_tokens() -> Self {
        Self::new(LOOPBACK, Some(ACT), Some(VIEW))
    }

    async fn ask(&self, request: Request) -> Told {
        let response = self.0.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Told {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    async fn look(&self, browser: &Browser, path: &str) -> Told {
        let request = request(Method::GET, path, "").header(COOKIE, &browser.cookie);
        self.ask(request.body(Body::empty()).unwrap()).await
    }

    async fn sign_in(&self, token: &str) -> Told {
        self.sign_in_as("", token).await
    }

    async fn sign_in_as(&self, name: &str, token: &str) -> Told {
        let form = format!("token={token}&name={name}&to=deep/er");
        let request = request(Method::POST, "/ui/sign-in", "http://localhost");
        self.ask(request.body(form.into()).unwrap()).await
    }

    async fn signed_in(&self, token: &str) -> Browser {
        self.browser(self.sign_in(token).await).await
    }

    async fn browser(&self, told: Told) -> Browser {
        assert_eq!(told.status, 303, "{told:?}");
        let cookie = told
            .header(SET_COOKIE)
            .split(';')
            .next()
            .unwrap()
            .to_owned();
        let mut browser = Browser {
            cookie,
            csrf: String::new(),
        };
        browser.csrf = self.look(&browser, "/ui/").await.body;
        browser
    }

    async fn act(&self, browser: &Browser, origin: &str) -> Told {
        let form = format!("csrf={}&what=x", browser.csrf);
        let request = request(Method::POST, "/ui/act", origin).header(COOKIE, &browser.cookie);
        self.ask(request.body(form.into()).unwrap()).await
    }
}

// === impl Told ===

impl Told {
    fn header(&self, name: impl http::header::AsHeaderName) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// A page that says why, and that nothing was done.
    fn refused(&self, status: StatusCode, what: &str) {
        assert_eq!(self.status, status.as_u16(), "{self:?}");
        assert!(self.body.contains(what), "{self:?}");
        assert!(self.body.starts_with("<!DOCTYPE html>") && !self.body.contains("done what"));
        assert_eq!(self.header("content-security-policy"), POLICY);
        assert_eq!(self.header("cache-control"), "no-store");
    }
}

fn request(method: Method, path: &str, origin: &str) -> http::request::Builder {
    let peer: SocketAddr = ([127, 0, 0, 1], 50_000).into();
    let mut builder = Request::builder()
        .method(method)
        .uri(path)
        .extension(ConnectInfo(peer))
        .header("content-type", "application/x-www-form-urlencoded");
    if !origin.is_empty() {
        builder = builder.header(ORIGIN, origin);
    }
    builder.header(HOST, "localhost")
}

#[tokio::test]
async fn who_is_not_signed_in_is_led_there_and_back() {
    let page = Page::with_tokens();
    for (path, way) in [
        ("/ui/", "sign-in?to="),
        (
            "/ui/deep/er?q=a%26b",
            "../sign-in?to=deep%2Fer%3Fq%3Da%2526b",
        ),
    ] {
        let told = page.look(&Browser::default(), path).await;
        assert_eq!((told.status, told.header(LOCATION)), (303, way));
    }
    let told = page
        .look(&Browser::default(), "/ui/sign-in?to=deep/er")
        .await;
    assert_eq!(told.status, 200);
    assert!(
        told.body.contains(r#"name="to" value="deep/er""#),
        "{told:?}"
    );
    let told = page.sign_in(ACT).await;
    assert_eq!((told.status, told.header(LOCATION)), (303, "deep/er"));
}

#[tokio::test]
async fn the_root_is_found_without_its_slash() {
    let told = Page::with_tokens().look(&Browser::default(), "/ui").await;
    assert_eq!((told.status, told.header(LOCATION)), (303, "ui/"));
}

#[tokio::test]
async fn the_cookie_is_the_pages_alone_and_not_the_token() {
    let page = Page::with_tokens();
    let told = page.sign_in(ACT).await;
    let cookie = told.header(SET_COOKIE);
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(ACT) && !cookie.to_lowercase().contains("path"));
    for (name, value) in [
        ("origin", "https://ops.example"),
        ("x-forwarded-proto", "https"),
    ] {
        let request =
            request(Method::POST, "/ui/sign-in", "").header("sec-fetch-site", "same-origin");
        let form = Body::from(format!("token={VIEW}"));
        let told = page
            .ask(request.header(name, value).body(form).unwrap())
            .await;
        assert!(told.header(SET_COOKIE).ends_with("; Secure"), "{told:?}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_only_so_often_and_the_right_one_is_always_taken() {
    let page = Page::with_tokens();
    for _ in 0..failures::BY_ADDRESS_MAX {
        let told = page.sign_in("wrong").await;
        told.refused(StatusCode::UNAUTHORIZED, "This is not a token of this page");
        assert_eq!(told.header(SET_COOKIE), "");
    }
    let told = page.sign_in("wrong").await;
    told.refused(StatusCode::TOO_MANY_REQUESTS, "wait 60 seconds");
    assert_eq!(
        (told.header("retry-after"), told.header(SET_COOKIE)),
        ("60", "")
    );
    // Whoever knows the token does not wait for those who guess it.
    assert_eq!(page.sign_in(ACT).await.status, 303);
    assert_eq!(page.sign_in("wrong").await.status, 429);
}

#[tokio::test]
async fn whoever_may_act_acts_from_the_page() {
    let page = Page::with_tokens();
    let browser = page.signed_in(ACT).await;
    let told = page.act(&browser, "http://localhost").await;
    assert_eq!((told.status, told.body.ends_with("&what=x")), (200, true));
    assert_eq!(
        page.look(&browser, "/ui/deep/er").await.body,
        "act from 127.0.0.1"
    );
}

#[tokio::test]
async fn whoever_says_a_name_acts_under_it() {
    let page = Page::with_tokens();
    let told = page.sign_in_as("Ada+%28root%29%0a", ACT).await;
    let browser = page.browser(told).await;
    let who = page.look(&browser, "/ui/deep/er").await.body;
    assert_eq!(who, "Ada root (act from 127.0.0.1)");
    assert_eq!(page.act(&browser, "http://localhost").await.status, 200);
}

#[tokio::test]
async fn whoever_may_look_does_not_act() {
    let page = Page::with_tokens();
    let browser = page.signed_in(VIEW).await;
    assert_eq!(
        page.look(&browser, "/ui/deep/er").await.body,
        "view from 127.0.0.1"
    );
    let told = page.act(&browser, "http://localhost").await;
    told.refused(StatusCode::FORBIDDEN, "sign in with the token that acts");
}

#[tokio::test]
async fn a_form_must_be_of_this_session() {
    let page = Page::with_tokens();
    let (one, other) = (page.signed_in(ACT).await, page.signed_in(ACT).await);
    let unsigned = page.signed_in(VIEW).await;
    for csrf in [String::new(), "00".into(), other.csrf, unsigned.csrf] {
        let browser = Browser {
            csrf,
            ..one.clone()
        };
        let told = page.act(&browser, "http://localhost").await;
        told.refused(StatusCode::FORBIDDEN, "not from your session");
    }
    let elsewhere = Page::new(LOOPBACK, None, None);
    let told = elsewhere.act(&one, "http://localhost").await;
    told.refused(StatusCode::FORBIDDEN, "not from your session");
}

#[tokio::test]
async fn an_act_must_come_from_this_page() {
    for page in [Page::with_tokens(), Page::new(LOOPBACK, None, None)] {
        let browser = match page.look(&Browser::default(), "/ui/").await {
            open if open.status == 200 => Browser {
                csrf: open.body,
                ..Browser::default()
            },
            _ => page.signed_in(ACT).await,
        };
        for origin in [
            "",
            "null",
            "http://evil.example",
            "http://localhost:99",
            "http://x@localhost",
        ] {
            let told = page.act(&browser, origin).await;
            told.refused(StatusCode::FORBIDDEN, "Another page asked for this");
        }
        for (site, status) in [
            ("same-origin", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("none", 403),
        ] {
            let form = format!("csrf={}", browser.csrf);
            let request =
                request(Method::POST, "/ui/act", "http://localhost").header("sec-fetch-site", site);
            let request = request
                .header(COOKIE, &browser.cookie)
                .body(form.into())
                .unwrap();
            assert_eq!(page.ask(request).await.status, status, "{site}");
        }
        assert_eq!(page.act(&browser, "https://ops.example").await.status, 200);
    }
}

#[tokio::test]
async fn an_act_is_a_form_of_a_session() {
    let page = Page::with_tokens();
    let told = page.act(&Browser::default(), "http://localhost").await;
    told.refused(StatusCode::UNAUTHORIZED, "You are not signed in");
    let browser = page.signed_in(ACT).await;
    let json = Request::post("/ui/act")
        .header(HOST, "localhost")
        .header(ORIGIN, "http://localhost")
        .header(COOKIE, &browser.cookie)
        .header("content-type", "application/json");
    let told = page.ask(json.body("{}".into()).unwrap()).await;
    told.refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not a form");
}

#[tokio::test]
async fn other_names_are_refused_before_anything() {
    let page = Page::new(LOOPBACK, None, None);
    for path in ["/ui/", "/ui/sign-in", "/ui/none"] {
        for host in ["evil.example", "10.0.0.1", "localhost.evil.example"] {
            let asked = Request::get(path)
                .header(HOST, host)
                .body(Body::empty())
                .unwrap();
            let told = page.ask(asked).await;
            told.refused(
                StatusCode::FORBIDDEN,
                "The Host of this request is not this address",
            );
        }
    }
}

#[tokio::test]
async fn on_loopback_without_a_token_a_form_is_of_this_process() {
    let page = Page::new(LOOPBACK, None, None);
    let csrf = page.look(&Browser::default(), "/ui/").await.body;
    let browser = Browser {
        csrf,
        ..Browser::default()
    };
    assert_eq!(page.act(&browser, "http://localhost").await.status, 200);
    let told = page.act(&Browser::default(), "http://localhost").await;
    told.refused(StatusCode::FORBIDDEN, "not from your session");
    let told = page
        .look(&Browser::default(), "/ui/sign-in?to=deep/er")
        .await;
    assert_eq!((told.status, told.header(LOCATION)), (303, "deep/er"));
}

#[tokio::test]
async fn where_others_reach_it_nothing_is_shown_without_a_token() {
    let page = Page::new(([0, 0, 0, 0], 8081), None, None);
    for path in ["/ui/", "/ui/deep/er", "/ui/sign-in"] {
        let told = page.look(&Browser::default(), path).await;
        told.refused(StatusCode::FORBIDDEN, "Set admin_token");
    }
}

#[tokio::test]
async fn signing_out_forgets_the_cookie_whatever_the_role() {
    let page = Page::with_tokens();
    for token in [ACT, VIEW] {
        let browser = page.signed_in(token).await;
        let request = request(Method::POST, "/ui/sign-out", "http://localhost");
        let form = format!("csrf={}", browser.csrf);
        let request = request
            .header(COOKIE, &browser.cookie)
            .body(form.into())
            .unwrap();
        let told = page.ask(request).await;
        assert_eq!((told.status, told.header(LOCATION)), (303, "sign-in"));
        assert!(told.header(SET_COOKIE).contains("=; Max-Age=0"), "{told:?}");
    }
}

#[tokio::test]
async fn a_part_of_a_page_has_its_page_reloaded_when_the_session_is_over() {
    let asked = request(Method::GET, "/ui/", "").header("hx-request", "true");
    let told = Page::with_tokens()
        .ask(asked.body(Body::empty()).unwrap())
        .await;
    assert_eq!((told.status, told.header("hx-refresh")), (401, "true"));
}

#[tokio::test]
async fn assets_are_for_everybody_and_for_long() {
    let page = Page::with_tokens();
    for asset in crate::Asset::ALL {
        let told = page
            .look(&Browser::default(), &format!("/ui/{}", asset.path()))
            .await;
        assert_eq!(told.status, 200);
        assert!(told.header("cache-control").contains("immutable"));
        assert_eq!(told.header("x-content-type-options"), "nosniff");
    }
    assert_eq!(
        page.look(&Browser::default(), "/ui/assets/x.js")
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn what_is_not_there_is_said_to_those_who_are_in() {
    let page = Page::new(LOOPBACK, None, None);
    let told = page.look(&Browser::default(), "/ui/none/such").await;
    told.refused(StatusCode::NOT_FOUND, "Nothing is here");
    assert!(told.body.contains(r#"href="../assets/semel-"#), "{told:?}");
    assert_eq!(
        Page::with_tokens()
            .look(&Browser::default(), "/ui/none")
            .await
            .status,
        303
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_said_on_a_page() {
    let page = Page::new(LOOPBACK, None, None);
    let told = page.look(&Browser::default(), "/ui/numbers/7").await;
    assert_eq!((told.status, told.body.as_str()), (200, "7"));
    for path in ["/ui/numbers/x", "/ui/numbers/%FF", "/ui/numbers/-1"] {
        let told = page.look(&Browser::default(), path).await;
        told.refused(StatusCode::BAD_REQUEST, "This address cannot be read");
        assert!(told.body.contains(r#"href="../""#), "{told:?}");
    }
    let told = page.look(&Browser::default(), "/ui/act").await;
    told.refused(
        StatusCode::METHOD_NOT_ALLOWED,
        "This address cannot be read",
    );
}

#[tokio::test]
async fn two_slashes_lead_nowhere_and_not_in_circles() {
    for page in [Page::with_tokens(), Page::new(LOOPBACK, None, None)] {
        for path in [
            "/ui//letters",
            "/ui//sign-in",
            "/ui//",
            "/ui/deep//er",
            "/ui//assets/x",
        ] {
            let told = page.look(&Browser::default(), path).await;
            told.refused(StatusCode::NOT_FOUND, "Nothing is here");
        }
        let told = page.look(&Browser::default(), "/ui//letters").await;
        assert!(told.body.contains(r#"href="../""#), "{told:?}");
    }
}

#[test]
fn programs_show_one_of_the_tokens() {
    let access = Access::new(AccessSettings {
        place: "",
        listens: LOOPBACK.into(),
        hosts: &[],
        act_token: Some(ACT),
        view_token: Some(VIEW),
    });
    let role = |shown: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", shown.parse().unwrap());
        access.bearer(&headers, None)
    };
    assert_eq!(role("Bearer correct-horse"), Ok(Role::Act));
    assert_eq!(role("Bearer only-looks"), Ok(Role::View));
    for other in ["Bearer wrong", "bearer correct-horse", "correct-horse", ""] {
        assert_eq!(role(other), Err(Denied::Unknown), "{other}");
    }
    assert!(!format!("{access:?}").contains(ACT));
}

#[test]
fn wrong_tokens_of_programs_are_counted_and_the_right_one_is_always_taken() {
    let access = Access::new(AccessSettings {
        place: "",
        listens: LOOPBACK.into(),
        hosts: &[],
        act_token: Some(ACT),
        view_token: None,
    });
    let from = |last: u8, shown: Option<&str>| {
        let mut headers = HeaderMap::new();
        if let Some(shown) = shown {
            headers.insert("authorization", shown.parse().unwrap());
        }
        access.bearer(&headers, Some([10, 0, 0, last].into()))
    };
    // Who shows none, or something that is no token, guesses nothing.
    for _ in 0..2 * failures::BY_ADDRESS_MAX {
        assert_eq!(from(1, None), Err(Denied::Unknown));
        assert_eq!(from(1, Some("Basic eA==")), Err(Denied::Unknown));
    }
    for _ in 0..failures::BY_ADDRESS_MAX {
        assert_eq!(from(1, Some("Bearer wrong")), Err(Denied::Unknown));
    }
    assert_eq!(from(1, Some("Bearer wrong")), Err(Denied::TooMany));
    assert_eq!(from(1, Some("Bearer correct-horse")), Ok(Role::Act));
    assert_eq!(from(2, Some("Bearer wrong")), Err(Denied::Unknown));
    assert!(
        !access
            .failures()
            .may_try(Some([10, 0, 0, 1].into()), seconds())
    );
}

#[test]
fn short_tokens_are_found() {
    let weak = |act: &str, view: &str| {
        let settings = AccessSettings {
            place: "",
            listens: LOOPBACK.into(),
            hosts: &[],
            act_token: Some(act),
            view_token: Some(view),
        };
        settings.weak().collect::<Vec<_>>()
    };
    let long = "0123456789abcdef";
    assert_eq!(weak(long, "0123456789abcde"), [Role::View]);
    assert_eq!(weak("short", long), [Role::Act]);
    // None is set.
    assert_eq!(weak(long, ""), []);
}
