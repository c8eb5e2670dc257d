//! Who may ask.

use super::{strict, table};
use crate::log_lines;
use crate::support::prelude::*;
use semel_gate::settings::Secret;

/// Every path that is not open to all, with its methods.
fn all() -> Vec<Ask> {
    let get = |path: &str| Ask::get(path);
    // What is not there is not open, either.
    let absent = [get("/elsewhere"), Ask::post("/records"), get("/healthz/")];
    table::api().into_iter().chain(absent).collect()
}

async fn with_token(token: &str) -> Bed {
    let token = Some(Secret(token.into()));
    Bed::with(|settings| settings.admin_token = token).await
}

#[tokio::test]
async fn nothing_but_health_is_told_without_the_token() {
    let bed = with_token("correct-horse").await;
    for ask in all() {
        for shown in [
            None,
            Some("Bearer wrong"),
            Some("Bearer "),
            Some("Bearer correct-horse2"),
            Some("Bearer correct-hors"),
            Some("bearer correct-horse"),
            Some("Basic correct-horse"),
            Some("correct-horse"),
        ] {
            let ask = match shown {
                Some(value) => ask.clone().header("Authorization", value),
                None => ask.clone(),
            };
            let said = bed.told(ask.clone()).await;
            match said.status {
                429 => said.refused(429, "too many wrong tokens"),
                _ => said.refused(401, "asks for its token"),
            }
            assert!(!said.json.to_string().contains("correct-horse"), "{ask:?}");
        }
        if ask.path == "/deliveries/stream" {
            continue; // Its answer has no end.
        }
        let right = ask.clone().header("Authorization", "Bearer correct-horse");
        let status = right.send(bed.admin).await.status;
        assert!(![401, 403].contains(&status), "{ask:?} {status}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(bed.admin(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn wrong_tokens_are_bounded_and_the_right_one_still_works() {
    log_lines::listen();
    let bed = with_token("correct-horse").await;
    let shows =
        |token: &str| Ask::get("/records").header("Authorization", &format!("Bearer {token}"));
    let mut heard = Vec::new();
    for _ in 0..11 {
        heard.push(bed.told(shows("wrong")).await.status);
    }
    assert_eq!(heard, [vec![401; 10], vec![429]].concat());
    let told = log_lines::lines("message", "bearer token refused: wrong token");
    assert!(
        told.iter()
            .any(|it| it["level"] == "WARN" && it["address"] == "127.0.0.1"),
        "{told:?}"
    );
    let short = "this role's token is shorter than 16 characters";
    assert!(log_lines::text().contains(short));
    assert_eq!(bed.told(shows("correct-horse")).await.status, 200);
}

#[tokio::test]
async fn an_address_that_others_reach_tells_nothing_without_a_token() {
    let everywhere = |settings: &mut semel_gate::settings::Settings| {
        settings.admin = ([0, 0, 0, 0], 0).into();
    };
    let bed = Bed::with(everywhere).await;
    for ask in all() {
        bed.told(ask).await.refused(403, "can be reached by others");
    }
    assert_eq!(bed.admin("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_name_that_only_resolves_to_this_host_is_refused() {
    let bed = strict().await;
    let others = "evil.example evil.example:8081 localhost.evil.example 10.0.0.1 127.0.0.1.nip.io";
    for host in others.split(' ').chain([""]) {
        for ask in all() {
            let said = bed.told(ask.header("Host", host)).await;
            said.refused(403, "the Host of this request is not this address");
        }
    }
    let own = "localhost LOCALHOST:8081 127.0.0.1 127.0.0.1:9 [::1]:8081";
    for host in own.split(' ') {
        let ask = Ask::get("/records").header("Host", host);
        assert_eq!(bed.told(ask).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_may_not_look() {
    let bed = strict().await;
    let from = |site: &str| Ask::get("/records").header("Sec-Fetch-Site", site);
    for path in ["/records", "/deliveries/stream", "/metrics", "/find?q=x"] {
        let ask = Ask::get(path).header("Sec-Fetch-Site", "cross-site");
        bed.told(ask).await.refused(403, "a page of another site");
    }
    for site in ["none", "same-origin", "same-site"] {
        assert_eq!(bed.told(from(site)).await.status, 200, "{site}");
    }
    let bed = with_token("correct-horse").await;
    let shown = from("cross-site").header("Authorization", "Bearer correct-horse");
    assert_eq!(bed.told(shown).await.status, 200);
}

#[tokio::test]
async fn a_web_page_may_not_act() {
    let bed = strict().await;
    bed.task("t1").await;
    let key = bed.key().await.to_string();
    let forget = Ask::post(&format!("/records/{key}/forget"));
    let here = format!("http://{}", bed.admin);
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", here.as_str()),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        let said = bed.told(forget.clone().header(name, value)).await;
        said.refused(403, "a web page asked for this");
        let other = forget.clone().method(Method::PUT).header(name, value);
        bed.told(other).await.refused(403, "a web page");
    }
    assert_eq!(bed.show_record(&key).await.word("state"), "succeeded");
    let typed = forget.header("Sec-Fetch-Site", "none");
    assert_eq!(bed.told(typed).await.status, 200);
    bed.forget(&key).await.refused(404, "no record");
}

#[tokio::test]
async fn who_may_only_look_sees_bodies_where_the_route_shows_them() {
    for shown in [false, true] {
        let bed = Bed::with(|settings| {
            settings.admin_token = Some(Secret("may-act".into()));
            settings.admin_view_token = Some(Secret("may-look".into()));
            settings.routes[0].show_bodies = shown;
            settings.routes[0].max_attempts = 1;
        })
        .await;
        let told = async |token: &str, path: &str| {
            let ask = Ask::get(path).header("Authorization", &format!("Bearer {token}"));
            let said = bed.told(ask).await;
            assert_eq!(said.status, 200, "{said:?}");
            said.json
        };
        bed.handler.says(500);
        bed.task("t1").await;
        let key = bed.key().await;
        let letters = told("may-look", "/letters").await;
        let letter = letters["letters"][0]["id"].as_str().unwrap();
        let record = format!("/records/{key}?body=true");
        for (path, pointer) in [(record, "/outcome"), (format!("/letters/{letter}"), "")] {
            for (token, sees) in [("may-act", true), ("may-look", shown)] {
                let told = told(token, &path).await;
                let part = told.pointer(pointer).unwrap();
                let has = |name: &str| part.get(name).is_some();
                assert_eq!(
                    (has("body"), has("body_hidden")),
                    (sees, !sees),
                    "{token} {told}"
                );
            }
        }
    }
}

#[tokio::test]
async fn who_may_only_look_sees_no_secret_of_headers_and_queries() {
    for (shown, private) in [(false, false), (false, true), (true, false)] {
        let bed = Bed::with(|settings| {
            settings.admin_token = Some(Secret("may-act".into()));
            settings.admin_view_token = Some(Secret("may-look".into()));
            let route = &mut settings.routes[0];
            route.show_bodies = shown;
            route.private = private.then(|| Secret("a key for pseudonyms".into()));
            route.max_attempts = 1;
            route.path = "/work/*".parse().unwrap();
        })
        .await;
        let say = Say::new(500, "").header("Location", "answers-secret");
        bed.handler.answers(say);
        let ask = Sender::Task
            .sends("t1", "{}")
            .path("/work/alice?token=query-secret");
        bed.ask(ask.header("X-Own", "askers-secret")).await.is(200);
        let (key, letter) = (bed.key().await, bed.letter().await);
        for (path, secrets) in [
            (format!("/records/{key}"), vec!["answers-secret"]),
            (
                format!("/letters/{letter}"),
                vec!["query-secret", "askers-secret"],
            ),
        ] {
            for (token, sees) in [("may-act", true), ("may-look", shown)] {
                let ask = Ask::get(&path).header("Authorization", &format!("Bearer {token}"));
                let told = bed.told(ask).await.json.to_string();
                for secret in &secrets {
                    assert_eq!(told.contains(secret), sees, "{token} {told}");
                }
                // The path of a private route may name a person.
                let hides_path = path.starts_with("/letters") && private && !sees;
                assert_eq!(told.contains("/work/*"), hides_path, "{token} {told}");
                let names = path.starts_with("/letters") && !hides_path;
                assert_eq!(told.contains("/work/alice"), names, "{token} {told}");
            }
        }
    }
}
