//! Create and dispatch: from the first create to the last answer of the handler.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::AT_ONCE;
use super::calls::{Client, CreateQueue, CreateTask, HttpRequest, Named, Task, repeat};
use super::servers::{Keep, PEER, Server};
use crate::gate::report::{Group, Row, Target, Unit};
use crate::gate::semel::Binary;
use crate::gate::upstream::Upstream;
use crate::rounds::{Contender, Contenders, Pace, rounds};

/// A queue dispatches at most 500 a second, here as in production; so many of them are not the limit.
const QUEUES: u64 = 200;

const PARENT: &str = "projects/bench/locations/here";
const BODY: &[u8] = include_bytes!("../gate/order.json");

/// How long the handler is waited for.
const BOUND: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Durable,
    Memory,
    Peer,
}

/// Creates tasks, and waits until the handler has seen them all.
struct Creating {
    client: Client,
    handler: Arc<Upstream>,
    count: u64,
    _server: Server,
}

pub(crate) async fn measure(binary: &Binary, pace: Pace, count: u64) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let contenders: Contenders<Id> = vec![
        (
            Id::Durable,
            creating(
                Server::ours(binary, Keep::Directory).await?,
                &handler,
                count,
            )
            .await?,
        ),
        (
            Id::Memory,
            creating(Server::ours(binary, Keep::Memory).await?, &handler, count).await?,
        ),
        (
            Id::Peer,
            creating(Server::peer().await?, &handler, count).await?,
        ),
    ];
    let rates = rounds(contenders, pace).await?;
    let row = |what: &str, id: Id| {
        Row::new(what, Unit::PerSecond, rates.of(id)).beside(PEER, rates.of(Id::Peer))
    };
    Ok(Group {
        title: "Create and dispatch tasks",
        conditions: vec![
            format!(
                "{count} tasks with 1 KiB of body, over gRPC on one connection, {AT_ONCE} creations under way, {QUEUES} \
                 queues with the usual limits; from the first creation to the last answer of the handler."
            ),
            format!(
                "Durable: in a directory on the disk of the project, synced before a creation is answered. {PEER} keeps \
                 everything in memory."
            ),
        ],
        rows: vec![
            row("durable", Id::Durable).judged(Target::RatioAtLeast(1.0)),
            row("--memory", Id::Memory),
        ],
    })
}

async fn creating(
    server: Server,
    handler: &Arc<Upstream>,
    count: u64,
) -> anyhow::Result<Box<dyn Contender>> {
    let client = Client::connect(server.port).await?;
    for number in 0..QUEUES {
        let queue = Some(Named {
            name: queue(number),
        });
        let parent = PARENT.to_owned();
        client
            .tasks("CreateQueue", CreateQueue { parent, queue })
            .await?;
    }
    Ok(Box::new(Creating {
        client,
        handler: Arc::clone(handler),
        count,
        _server: server,
    }))
}

pub(crate) fn queue(number: u64) -> String {
    format!("{PARENT}/queues/queue-{}", number % QUEUES)
}

// === impl Creating ===

#[async_trait]
impl Contender for Creating {
    async fn turn(&mut self, _: Pace) -> anyhow::Result<f64> {
        let expected = self.handler.count().await? + self.count;
        let url = format!("http://127.0.0.1:{}/orders", self.handler.port());
        let client = self.client.clone();
        let began = Instant::now();
        repeat(self.count, move |number| {
            let (client, url) = (client.clone(), url.clone());
            async move { client.tasks("CreateTask", task(number, url)).await }
        })
        .await?;
        wait_for(&self.handler, expected).await?;
        Ok(self.count as f64 / began.elapsed().as_secs_f64())
    }
}

fn task(number: u64, url: String) -> CreateTask {
    CreateTask {
        parent: queue(number),
        task: Some(Task {
            http_request: Some(HttpRequest {
                url,
                headers: HashMap::from([("Content-Type".into(), "application/json".into())]),
                body: Bytes::from_static(BODY),
            }),
            schedule_time: None,
        }),
    }
}

/// Waits until the handler has answered so many in all.
pub(crate) async fn wait_for(handler: &Upstream, expected: u64) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let seen = handler.count().await?;
        if seen == expected {
            return Ok(());
        }
        if seen > expected {
            bail!("the handler saw {seen} requests instead of {expected}: something came twice");
        }
        if began.elapsed() > BOUND {
            bail!("the handler saw {seen} of {expected} requests after {BOUND:?}");
        }
        sleep(PAUSE).await;
    }
}
