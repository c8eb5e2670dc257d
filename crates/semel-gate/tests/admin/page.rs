//! The page's door, over the wire: who comes in, and whose acts are taken. What every screen shows is told elsewhere.

use super::{kept, table};
use crate::support::prelude::*;
use semel_gate::settings::Secret;

const ACT: &str = "correct-horse";
const VIEW: &str = "only-looks";

/// Somebody's browser, with the gate's page open.
struct Browser {
    bed: Bed,
    cookie: String,
    csrf: String,
}

// === impl Browser ===

impl Browser {
    async fn open(bed: Bed, token: &str) -> Self {
        let ask = post(&bed, "/ui/sign-in").body(format!("token={token}&to="));
        let said = ask.send(bed.admin).await;
        assert_eq!((said.status, said.header("location")), (303, Some("./")));
        let cookie = said.header("set-cookie").unwrap().split(';').next();
        let mut browser = Self {
            cookie: cookie.unwrap().into(),
            csrf: String::new(),
            bed,
        };
        browser.csrf = browser.find_csrf().await;
        browser
    }

    async fn find_csrf(&self) -> String {
        let ask = Ask::get("/ui/audit").header("Cookie", &self.cookie);
        csrf(&ask.send(self.bed.admin).await)
    }

    async fn look(&self, path: &str) -> String {
        let ask = Ask::get(path).header("Cookie", &self.cookie);
        let said = ask.send(self.bed.admin).await;
        assert_eq!(said.status, 200, "{path}");
        String::from_utf8(said.body.to_vec()).unwrap()
    }

    /// A record's work, done once, and the form that forgets it.
    async fn forget(&self) -> Ask {
        self.bed.task("t1").await;
        let key = self.bed.key().await;
        let look =
            Ask::get(&format!("/records/{key}")).header("Authorization", "Bearer correct-horse");
        let fence = self.bed.told(look).await.json["fence"].to_string();
        let seen = format!("succeeded+with+fence+{}", fence.trim_matches('"'));
        let form = format!("csrf={}&reason=a+test&seen={seen}", self.csrf);
        let ask = post(&self.bed, &format!("/ui/records/{key}/forget")).body(form);
        ask.header("Cookie", &self.cookie)
    }

    async fn refused(&self, ask: Ask, says: &str) {
        let said = ask.send(self.bed.admin).await;
        let page = String::from_utf8(said.body.to_vec()).unwrap();
        assert!(said.status == 403 && page.contains(says), "{page}");
        let key = self.bed.key().await;
        let look =
            Ask::get(&format!("/records/{key}")).header("Authorization", "Bearer correct-horse");
        assert_eq!(self.bed.told(look).await.word("state"), "succeeded");
    }
}

async fn with_tokens() -> Bed {
    Bed::with(|settings| {
        settings.admin_token = Some(Secret(ACT.into()));
        settings.admin_view_token = Some(Secret(VIEW.into()));
        settings.admin_hosts = vec!["ops.example".into()];
    })
    .await
}

/// What a page's forms send back.
fn csrf(page: &Answer) -> String {
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let (_, rest) = page.split_once(r#"name="csrf" value=""#).unwrap();
    rest.split('"').next().unwrap().into()
}

/// As this page's own forms are sent.
fn post(bed: &Bed, path: &str) -> Ask {
    Ask::post(path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", &format!("http://{}", bed.admin))
        .header("Sec-Fetch-Site", "same-origin")
}

#[tokio::test]
async fn whoever_signs_in_to_act_acts() {
    let browser = Browser::open(with_tokens().await, ACT).await;
    let forget = browser.forget().await;
    let key = browser.bed.key().await;
    let said = forget.send(browser.bed.admin).await;
    assert_eq!(said.status, 303, "{said:?}");
    let look = Ask::get(&format!("/records/{key}")).header("Authorization", "Bearer correct-horse");
    browser.bed.told(look).await.refused(404, "no record");
}

#[tokio::test]
async fn every_screen_and_act_asks_who_it_is_and_what_they_may() {
    let bed = with_tokens().await;
    for ask in table::screens() {
        let ask = ask.header("Origin", &format!("http://{}", bed.admin));
        let said = ask.clone().send(bed.admin).await;
        let told = (said.status, said.header("location").unwrap_or_default());
        let asks_who = told.0 == 303 && told.1.contains("sign-in") || told.0 == 401;
        assert!(asks_who, "{ask:?} {said:?}");
    }
    let browser = Browser::open(bed, VIEW).await;
    for ask in table::screens() {
        let form = format!("csrf={}&reason=a+test", browser.csrf);
        let ask = post(&browser.bed, &ask.path).method(ask.method).body(form);
        let ask = ask.header("Cookie", &browser.cookie);
        let said = ask.clone().send(browser.bed.admin).await;
        match ask.method {
            Method::POST => assert_eq!(said.status, 403, "{ask:?} {said:?}"),
            // What it asks for may not be there; it is not refused.
            _ => assert!([200, 303, 404].contains(&said.status), "{ask:?} {said:?}"),
        }
    }
}

#[tokio::test]
async fn whoever_signs_in_to_look_sees_all_and_does_nothing() {
    let browser = Browser::open(with_tokens().await, VIEW).await;
    assert!(
        browser
            .look("/ui/letters")
            .await
            .contains("You may look, not act")
    );
    let forget = browser.forget().await;
    browser.refused(forget, "You may look, not act").await;
}

#[tokio::test]
async fn a_form_of_another_session_or_page_is_refused() {
    let browser = Browser::open(with_tokens().await, ACT).await;
    let forget = browser.forget().await;
    let none = forget.clone().body("reason=x");
    browser.refused(none, "not from your session").await;
    let other = post(&browser.bed, "/ui/sign-in").body(format!("token={ACT}"));
    let other = other.send(browser.bed.admin).await;
    let cookie = other.header("set-cookie").unwrap().split(';').next();
    let mixed = forget
        .clone()
        .without("Cookie")
        .header("Cookie", cookie.unwrap());
    browser.refused(mixed, "not from your session").await;
    let cross = forget
        .clone()
        .without("Sec-Fetch-Site")
        .header("Sec-Fetch-Site", "cross-site");
    browser.refused(cross, "Another page asked for this").await;
    let elsewhere = forget.header("Host", "evil.example");
    browser.refused(elsewhere, "not this address").await;
}

#[tokio::test]
async fn the_pages_cookie_opens_no_json_and_the_api_takes_no_pages_act() {
    let browser = Browser::open(with_tokens().await, ACT).await;
    let ask = Ask::get("/records").header("Cookie", &browser.cookie);
    browser
        .bed
        .told(ask)
        .await
        .refused(401, "asks for its token");
    let forget = browser.forget().await;
    let api = forget.path.replace("/ui", "");
    let ask = forget
        .path(&api)
        .header("Authorization", "Bearer correct-horse");
    browser
        .bed
        .told(ask)
        .await
        .refused(403, "a web page asked for this");
}

#[tokio::test]
async fn the_token_that_looks_reads_json_and_changes_nothing() {
    let bed = with_tokens().await;
    bed.task("t1").await;
    let key = bed.key().await;
    let shown = |ask: Ask| ask.header("Authorization", "Bearer only-looks");
    assert_eq!(bed.told(shown(Ask::get("/records"))).await.status, 200);
    let forget = shown(Ask::post(&format!("/records/{key}/forget")));
    bed.told(forget)
        .await
        .refused(403, "this token may look, not act");
    let record = bed.told(shown(Ask::get(&format!("/records/{key}")))).await;
    assert_eq!(record.word("state"), "succeeded");
}

#[tokio::test]
async fn a_proxys_name_is_ours_once_it_is_listed() {
    let bed = with_tokens().await;
    for (host, status) in [("ops.example", 200), ("evil.example", 403)] {
        let ask = Ask::get("/ui/sign-in").header("Host", host);
        assert_eq!(ask.send(bed.admin).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn on_loopback_without_a_token_the_page_is_open_and_its_forms_are_its_own() {
    let (bed, id) = kept(500).await;
    let discard = post(&bed, &format!("/ui/letters/{id}/discard"));
    let said = discard.clone().body("reason=x").send(bed.admin).await;
    assert_eq!(said.status, 403, "{said:?}");
    assert_eq!(bed.listed().await.len(), 1);
    let page = Ask::get(&format!("/ui/letters/{id}")).send(bed.admin).await;
    let csrf = csrf(&page);
    let said = discard
        .body(format!("csrf={csrf}&reason=x"))
        .send(bed.admin)
        .await;
    assert_eq!(said.status, 303, "{said:?}");
    assert!(bed.listed().await.is_empty());
}
