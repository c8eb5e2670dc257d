//! The broker's clock.

use super::fields::{Given, given, line};
use super::screen::{Screen, moment};
use axum::response::Response;
use semel_ui::{Act, Tile, html, span, tiles};
use serde_json::json;

const PRESETS: [&str; 4] = ["1m", "1h", "1d", "7d"];

pub(super) async fn show(screen: Screen) -> Response {
    let clock = &screen.page.context.clock;
    let (day, whole) = moment(clock.now().0);
    let forward = |by: &str, button: String| {
        let act = Act::new(screen.to("clock"), button, html! {}).plain();
        screen.form(act.hidden("by", by))
    };
    let other = Act::new(
        screen.to("clock"),
        "Put it forward",
        html! {
            p { "What was due in between is due at once: retries, scheduled tasks, deadlines, retention. Time does not go back." }
        },
    );
    let main = html! {
        h1 { "Clock" }
        p.lead { "The broker's time runs with the machine's, and can be put forward: a week of retries takes a second." }
        (tiles("Now", &[
            Tile::new(day, "broker's time, UTC").about(whole),
            Tile::new(span(clock.ahead()), "ahead of the machine"),
        ]))
        h2 { "Put forward" }
        div.card { (screen.form(other.with(line("By (500ms, 2s, 5m, 1h, 7d)", "by", "", true)))) }
        div.bar { @for by in PRESETS { (forward(by, format!("By {by}"))) } }
    };
    screen.show("Clock", "clock", &main)
}

pub(super) async fn act(screen: Screen, form: Given) -> Response {
    let body = json!({ "by": given(&form, "by") });
    let done = screen.page.ask.post("/_semel/clock/advance", &body).await;
    screen.done(done, "clock")
}
