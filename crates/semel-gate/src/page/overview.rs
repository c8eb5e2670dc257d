//! The overview: what becomes of deliveries, and where a person should look. It answers at once, from what is
//! known; numbers that are still being counted say so.

use super::Screen;
use super::format::{ago, as_of, clock, count, number, span, whole};
use super::letters::needing;
use super::routes;
use super::screen::{delivery_tone, trouble};
use super::traffic::{Traffic, percent};
use crate::census::{Known, TrendPoint};
use crate::gate::Gate;
use crate::recent::RecentDelivery;
use axum::response::Response;
use semel::clock::Time;
use semel::protocol::State;
use semel_ui::{
    Column, Markup, Rows, Tile, Tone, fragment, html, live, note, part, sparkline, state, tiles,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the numbers are fetched anew.
const LIVE_SECONDS: u32 = 3;

/// How many deliveries are shown.
const LATEST_MAX: usize = 20;

const LATEST: [Column<'_>; 7] = [
    Column::text("time (UTC)"),
    Column::text("about"),
    Column::text("became"),
    Column::number("sender heard"),
    Column::text("route"),
    Column::text("sender"),
    Column::number("took"),
];

pub(super) async fn show(screen: Screen) -> Response {
    let known = screen.state.census.look_first().await;
    let main = live(
        "now",
        &screen.to("live"),
        LIVE_SECONDS,
        &inside(&screen, &known),
    );
    screen.show("Overview", "", &main)
}

/// The inside alone, for a page that is open. It stands beside the page, so that its addresses mean the same.
pub(super) async fn live_part(screen: Screen) -> Response {
    let known = screen.state.census.look();
    fragment(&inside(&screen, &known))
}

fn inside(screen: &Screen, known: &Known) -> Markup {
    html! {
        @match &screen.state.gate {
            Some(gate) => {
                (part("now-says", &html! { h1 { (headline(known)) } (lead(gate)) (counted(screen, known)) }))
                (part("now-tiles", &tiles("Now", &[vec![saved_tile(gate)], store_tiles(screen, known), gate_tiles(gate)].concat())))
                h2 { "Deliveries per second" }
                (part("now-traffic", &traffic(gate)))
                h2 { "Routes" }
                (routes::list(screen, gate))
                h2 { "Latest deliveries" }
                (latest(screen, gate))
            }
            None => {
                (part("now-says", &html! { h1 { (headline(known)) } (counted(screen, known)) }))
                (part("now-tiles", &tiles("Now", &store_tiles(screen, known))))
                (note(Tone::Busy, &html! {
                    "This page looks at a store without a gate: it has no deliveries, routes or rates to show. Records, \
                     letters and what is in doubt are here; rates are on the page of each gate."
                }))
            }
        }
    }
}

fn headline(known: &Known) -> String {
    let (Some(records), Some(letters)) = (&known.records, &known.letters) else {
        return "What is in the store is being counted".into();
    };
    match (records.of(State::Parked), letters.for_operator()) {
        (0, 0) => "Nothing waits for a person".into(),
        (0, letters) => format!(
            "{} an operator",
            count(letters, "letter needs", "letters need")
        ),
        (parked, _) => format!(
            "{} for a person to decide",
            count(parked, "record waits", "records wait")
        ),
    }
}

fn lead(gate: &Gate) -> Markup {
    let traffic = Traffic::of(gate);
    let hour = traffic.hour();
    let ran = hour.of(crate::rates::Became::Ran);
    let covers = traffic.covers().min(gate.rates.age());
    html! {
        p.lead {
            "Last " (span(covers)) " at this gate: " strong { (number(hour.sum())) } " deliveries, " strong { (number(ran)) }
            " effects, " strong { (number(hour.not_repeated())) } " not repeated."
        }
    }
}

fn counted(screen: &Screen, known: &Known) -> Markup {
    let now = screen.now();
    html! {
        @if let Some(why) = known.trouble() { (trouble(why)) }
        p.lead {
            @match (&known.records, known.counting) {
                (Some(records), _) => {
                    (count(records.total(), "record", "records")) " in the store, " (as_of(records.at, now))
                    // Of a few records it is over at once.
                    @if records.took >= Duration::from_secs(1) { "; counting them took " (span(records.took)) }
                    "."
                }
                (None, Some(count)) => {
                    "The records are being counted: " (number(count)) " so far. Reload to see more."
                }
                (None, None) => { "The records are being counted." }
            }
        }
    }
}

// === Tiles ===

fn store_tiles(screen: &Screen, known: &Known) -> Vec<Tile> {
    let now = screen.now();
    let trend = |tone: Tone, of: fn(&TrendPoint) -> u64| {
        let values: Vec<_> = known
            .trend
            .iter()
            .map(|point| as_value(of(point)))
            .collect();
        sparkline(tone, &values)
    };
    let unknown = |name: &str| Tile::new("…", name).about("being counted");
    let (parked, doubt, running) = match &known.records {
        None => (unknown("parked"), unknown("in doubt"), unknown("running")),
        Some(records) => {
            let oldest = |first: Option<Time>| {
                first.map_or_else(String::new, |at| format!("oldest {}", ago(at, now)))
            };
            let parked = Tile::new(number(records.of(State::Parked)), "parked").about(oldest(
                records.parked.all().first().map(|it| it.lease_until),
            ));
            let doubt =
                Tile::new(number(records.in_doubt), "in doubt").about(match records.in_doubt {
                    0 => String::new(),
                    _ => format!(
                        "{} of them parked, {}",
                        number(records.parked_in_doubt()),
                        oldest(records.oldest_in_doubt)
                    ),
                });
            let running = Tile::new(number(records.of(State::Running)), "running")
                .about(oldest(records.running.all().first().map(|it| it.granted())));
            let parked = if records.of(State::Parked) > 0 {
                parked.warn()
            } else {
                parked
            };
            let doubt = if records.in_doubt > 0 {
                doubt.warn()
            } else {
                doubt
            };
            (parked, doubt, running)
        }
    };
    vec![
        doubt
            .href(screen.to("doubt"))
            .trend(trend(Tone::Doubt, |it| it.in_doubt)),
        parked
            .href(screen.to("doubt"))
            .trend(trend(Tone::Parked, |it| it.parked)),
        letters_tile(known)
            .href(screen.to("letters"))
            .trend(trend(Tone::Failed, |it| it.letters)),
        running
            .href(screen.to("running"))
            .trend(trend(Tone::Busy, |it| it.running)),
    ]
}

fn letters_tile(known: &Known) -> Tile {
    let Some(letters) = &known.letters else {
        return Tile::new("…", "letters").about("being counted");
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for group in &letters.groups {
        *reasons.entry(group.reason.word()).or_default() += group.count;
    }
    let reasons = reasons.iter().map(|(word, many)| format!("{many} {word}"));
    let about: Vec<_> = needing(letters.for_operator())
        .into_iter()
        .chain(reasons)
        .collect();
    Tile::new(number(letters.total as u64), "letters").about(about.join(", "))
}

fn saved_tile(gate: &Gate) -> Tile {
    let traffic = Traffic::of(gate);
    let hour = traffic.hour();
    let saved = hour.not_repeated();
    Tile::new(number(saved), "effects not repeated")
        .about(format!("{} of deliveries", percent(saved, hour.sum())))
        .trend(sparkline(Tone::Ran, &traffic.saved_trend()))
        .good()
}

fn gate_tiles(gate: &Gate) -> Vec<Tile> {
    vec![slots_tile(gate), store_tile(gate)]
}

fn slots_tile(gate: &Gate) -> Tile {
    let queued: usize = gate.routes.iter().map(|route| route.slots.queued()).sum();
    let fullest = gate
        .routes
        .iter()
        .max_by_key(|route| route.slots.runs() * 1000 / route.settings.concurrency.max(1));
    let about = fullest.map_or_else(String::new, |route| {
        let (runs, most) = (route.slots.runs(), route.settings.concurrency);
        format!("{runs} of {most} slots on {}", route.name)
    });
    Tile::new(number(queued as u64), "waiting for a slot").about(about)
}

fn store_tile(gate: &Gate) -> Tile {
    let trend: Vec<_> = gate
        .store_times
        .trend()
        .iter()
        .map(|it| it.as_secs_f64())
        .collect();
    let tile = match gate.store_times.p99() {
        Some(p99) => Tile::new(span(p99), "store, p99"),
        None => Tile::new("–", "store, p99"),
    };
    let pending = gate.semel.pending_count() as u64;
    let tile = if gate.store.refuses() {
        tile.about("it does not take writes; the log says why")
            .warn()
    } else if pending > 0 {
        tile.about(format!("{pending} outcomes wait to be recorded"))
            .warn()
    } else {
        tile.about("it takes writes")
    };
    tile.trend(sparkline(Tone::Busy, &trend))
}

#[expect(clippy::cast_precision_loss, reason = "a small picture")]
fn as_value(count: u64) -> f64 {
    count as f64
}

// === Deliveries ===

fn traffic(gate: &Gate) -> Markup {
    let traffic = Traffic::of(gate);
    let hour = traffic.hour();
    let label = format!(
        "Deliveries per second in the last {}: {} ran, {} were duplicates",
        span(traffic.covers()),
        number(hour.of(crate::rates::Became::Ran)),
        number(hour.duplicates)
    );
    traffic.chart(&label)
}

fn latest(screen: &Screen, gate: &Gate) -> Markup {
    let now = screen.now();
    let latest = gate.recent.latest(LATEST_MAX);
    let rows: Vec<_> = latest.iter().map(|it| row(screen, it, now)).collect();
    Rows::live(
        "now-latest",
        "Nothing was delivered since this gate started.",
    )
    .table("The latest deliveries, the newest first", &LATEST, &rows)
}

/// One delivery in a list.
pub(super) fn row(screen: &Screen, delivery: &RecentDelivery, now: Time) -> Vec<Markup> {
    let at = delivery.time();
    vec![
        html! { time.mono datetime=(whole(at)) { (clock(at, now)) } },
        html! { div.about { (about(screen, delivery)) } },
        html! { (state(delivery_tone(delivery.outcome), delivery.outcome)) },
        html! { @if let Some(status) = delivery.status { (status) } @else { "–" } },
        html! { (delivery.route) },
        html! { span.mono.names { (sender(delivery)) } },
        html! { (span(delivery.elapsed)) },
    ]
}

/// What a delivery is about, leading to its record.
pub(super) fn about(screen: &Screen, delivery: &RecentDelivery) -> Markup {
    let Some(key) = delivery.key else {
        return html! { small { "it has no key" } };
    };
    let (key, about) = (key.to_string(), delivery.about());
    html! {
        a href=(screen.to(&format!("records/{key}"))) {
            @if about.is_empty() { (super::format::shortened(&key, 15)) } @else { (about) }
        }
    }
}

/// Who sent it, by the names that it has itself: `queues/orders · task 8842 · attempt 3`.
pub(super) fn sender(delivery: &RecentDelivery) -> String {
    let mut words = vec![delivery.source.to_owned()];
    words.extend(delivery.from.as_deref().map(str::to_owned));
    words.extend(delivery.id.as_deref().map(str::to_owned));
    words.extend(delivery.sender_attempt.map(|it| format!("attempt {it}")));
    words.join(" · ")
}
