//! The page: how soon it answers on a store with many records and letters, and what an open page costs deliveries.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use semel::letter::{Letter, LetterId, Put, Reason};
use semel::protocol::Fence;
use semel::store::{Letters, Store as Records};
use semel_rig::http::{Answer, Request};
use tokio::time::{Instant, sleep};

use super::deliveries::{CONNECTIONS, Rate, Reach};
use super::semel::{self as gate, Binary, Store};
use super::wrk::Names;
use crate::first_run::preload_labelled;
use crate::grown::rest_postgres;
use crate::report::{Group, Row, Target, Unit};
use crate::rounds::{Contender, NamedContender, Pace, Series, rounds_of};
use crate::table::grouped;
use crate::upstream::Upstream;
use crate::{disk, embedded, labels, load, postgres};

const LETTERS: u64 = 10_000;

/// How many orders are looked for.
const ORDERS: usize = 100;

/// As often as an open page asks for its numbers.
const LIVE_EVERY: Duration = Duration::from_secs(3);

/// A window in which an open page asks several times.
const OPEN_WINDOW: Duration = Duration::from_secs(10);

/// How long one look may take, and all records until they are counted.
const LOOK_BOUND: Duration = Duration::from_secs(30);
const COUNT_BOUND: Duration = Duration::from_secs(300);

const OVERVIEW: Target = Target::AtMost(100.0);
const SEARCH: Target = Target::AtMost(20.0);
const OPEN: Target = Target::RatioAtLeast(0.97);

/// A second route, whose key is a part of the body.
const CHARGE: &str = "\n[[route]]\nname = \"charge\"\npath = \"/charge\"\nkey = \"/order_id\"\n";

/// How long the screens of one gate took, in milliseconds.
#[derive(Default)]
struct Looks {
    first: Vec<f64>,
    counting: Vec<f64>,
    counted: Vec<f64>,
    search: Vec<f64>,
    nothing: Vec<f64>,
    until_counted: f64,
}

/// Deliveries to a gate whose overview is open in a browser meanwhile.
struct Watched {
    rate: Box<Rate>,
    admin: u16,
}

pub(crate) async fn measure(binary: &Binary, pace: Pace, records: u64) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let server = postgres::server()?;
    let dirs = [disk::directory()?, disk::directory()?];
    let database = server.create_database("page")?;
    eprintln!("  filling the stores");
    fill(postgres::open(&database).await?, records).await?;
    rest_postgres(&database).await?;
    for dir in &dirs {
        fill(embedded::open(dir.path())?, records).await?;
    }
    let postgres = || Store::Postgres(database.clone());
    // Gates share a database; a directory belongs to one of them.
    let stores = [
        ("PostgreSQL", [postgres(), postgres()]),
        (
            "embedded",
            dirs.each_ref()
                .map(|dir| Store::Directory(dir.path().join("store"))),
        ),
    ];
    let mut rows = Vec::new();
    for (name, [store, _]) in &stores {
        eprintln!("  looking at {name}");
        let looks = look(binary, store, &handler, pace.rounds).await?;
        rows.extend(looks.rows(name));
    }
    let pace = Pace {
        window: pace.window.max(OPEN_WINDOW),
        ..pace
    };
    for (name, pair) in &stores {
        rows.push(beside(binary, name, pair, &handler, pace).await?);
    }
    Ok(Group {
        title: "The page",
        conditions: vec![
            format!(
                "{} records with labels of {} B, {} letters of which nobody has asked before. First look: the first \
                 request of a gate. Counting: while the gate walks through all records. Search: an order by its number, one \
                 of {ORDERS}, through the rule of its route, without index. Nothing: a name that nobody knows.",
                grouped(records as f64),
                labels::LABEL.len(),
                grouped(LETTERS as f64)
            ),
            format!(
                "Open: first runs on these stores, wrk with {CONNECTIONS} connections, windows of {:?}, while one browser has \
                 the overview open, which asks anew every {LIVE_EVERY:?}; beside it such a gate that nobody looks at.",
                pace.window
            ),
            postgres::conditions(&server).await?,
        ],
        rows,
    })
}

/// Settles records, and keeps letters.
async fn fill(store: Arc<dyn Letters>, records: u64) -> anyhow::Result<()> {
    let label = Bytes::from_static(labels::LABEL.as_bytes());
    let plain: Arc<dyn Records> = Arc::clone(&store) as _;
    preload_labelled(&plain, records, label).await?;
    let keep = move |_number| {
        let store = Arc::clone(&store);
        async move {
            let put = store.put(&letter()).await?;
            ensure!(put == Put::Applied, "a new letter came to {put:?}");
            Ok(())
        }
    };
    load::times(LETTERS, CONNECTIONS, keep).await?;
    Ok(())
}

fn letter() -> Letter {
    Letter {
        id: LetterId(rand::random()),
        key: None,
        route: "orders".to_owned(),
        reason: Reason::Invalid,
        fence: Fence(0),
        retention: Duration::from_secs(60 * 60),
        redriven: false,
        alarmed: false,
        delivery: Bytes::from_static(labels::LABEL.as_bytes()),
    }
}

/// Each gate is looked at for the first time only once, so there is a new one for each round.
async fn look(
    binary: &Binary,
    store: &Store,
    handler: &Upstream,
    rounds: usize,
) -> anyhow::Result<Looks> {
    let mut looks = Looks::default();
    for _ in 0..rounds {
        let (gate, admin) = gate::start_with_page(binary, store, handler, CHARGE).await?;
        let began = Instant::now();
        looks.first.push(overview(admin).await?.0);
        loop {
            let (took, is_counted) = overview(admin).await?;
            if is_counted {
                break;
            }
            looks.counting.push(took);
            ensure!(began.elapsed() < COUNT_BOUND, "the records are not counted");
            sleep(Duration::from_millis(20)).await;
        }
        looks.until_counted = looks.until_counted.max(began.elapsed().as_secs_f64() * 1e3);
        for _ in 0..ORDERS {
            looks.counted.push(overview(admin).await?.0);
        }
        for number in 0..ORDERS {
            let order = format!("{:08x}-{number}", rand::random::<u32>());
            let body = format!("{{\"order_id\": \"{order}\"}}");
            let task = Request::post_json("/charge", body)
                .header("x-cloudtasks-queuename", "orders")
                .header("x-cloudtasks-taskname", &order);
            let delivered = task.send(gate.port).await?;
            ensure!(delivered.status == 200, "{}", delivered.body);
            let (took, answer) = timed(admin, &format!("/ui/search?q={order}")).await?;
            ensure!(answer.status == 303, "{order} was not found");
            looks.search.push(took);
        }
        let (took, answer) = timed(admin, "/ui/search?q=nobody-knows-this").await?;
        ensure!(answer.status == 200, "{}", answer.status);
        looks.nothing.push(took);
    }
    Ok(looks)
}

/// How long the overview took, and whether it has the number of records.
async fn overview(admin: u16) -> anyhow::Result<(f64, bool)> {
    let (took, answer) = timed(admin, "/ui/").await?;
    ensure!(answer.status == 200, "the overview is {}", answer.status);
    Ok((took, !answer.body.contains("being counted")))
}

async fn timed(admin: u16, path: &str) -> anyhow::Result<(f64, Answer)> {
    let began = Instant::now();
    let answer = Request::get(path).within(LOOK_BOUND).send(admin).await;
    let answer = answer.with_context(|| format!("{path} was not answered"))?;
    Ok((began.elapsed().as_secs_f64() * 1e3, answer))
}

/// Two gates: a page that was closed is still counted for, for some seconds.
async fn beside(
    binary: &Binary,
    name: &str,
    [open, closed]: &[Store; 2],
    handler: &Arc<Upstream>,
    pace: Pace,
) -> anyhow::Result<Row> {
    let (open, admin) = gate::start_with_page(binary, open, handler, "").await?;
    let (closed, _) = gate::start_with_page(binary, closed, handler, "").await?;
    let rate = |port| Rate::boxed(port, Names::Fresh, Reach::Handler(Arc::clone(handler)));
    let watched = Watched {
        rate: rate(open.port),
        admin,
    };
    let contenders: Vec<NamedContender> = vec![
        ("first runs with a page open", Box::new(watched)),
        ("first runs", rate(closed.port)),
    ];
    let rates = rounds_of(contenders, pace).await?;
    let [open, closed] = rates.as_slice() else {
        bail!("two contenders have two series");
    };
    let row = Row::rate(format!("{name}: first runs with a page open"), open);
    Ok(row.beside("nobody looks", closed).judged(OPEN))
}

// === impl Looks ===

impl Looks {
    fn rows(self, store: &str) -> Vec<Row> {
        let row = |what: &str, taken: Vec<f64>| {
            Row::new(
                format!("{store}: {what}"),
                Unit::Millis,
                &Series::from(taken),
            )
        };
        let until = format!("{store}: until all are counted, at most");
        vec![
            row("overview, first look", self.first).judged(OVERVIEW),
            row("overview, counting", self.counting).judged(OVERVIEW),
            row("overview, counted", self.counted).judged(OVERVIEW),
            row("search by parts", self.search).judged(SEARCH),
            row("search for nothing", self.nothing),
            Row::once(until, Unit::Millis, self.until_counted),
        ]
    }
}

// === impl Watched ===

#[async_trait]
impl Contender for Watched {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        timed(self.admin, "/ui/").await?;
        let looks = async {
            loop {
                sleep(LIVE_EVERY).await;
                if let Err(error) = timed(self.admin, "/ui/live").await {
                    return error;
                }
            }
        };
        tokio::select! {
            rate = self.rate.turn(pace) => rate,
            error = looks => Err(error.context("the page could not be read")),
        }
    }
}
