//! Create and dispatch: from the first create to the last answer of the handler.

use std::sync::Arc;

use bytes::Bytes;

use super::AT_ONCE;
use super::calls::{Client, CreateTask};
use super::deliveries::Deliveries;
use super::servers::{self, Keep, PEER};
use crate::gate::semel::Binary;
use crate::report::{Group, Row, Target};
use crate::rounds::{Contender, Pace, Series, rounds};
use crate::running::Running;
use crate::upstream::Upstream;

/// A queue dispatches at most 500 a second, here as in production; so many of them are not the limit.
const QUEUES: u64 = 200;

const PARENT: &str = "projects/bench/locations/here";
const BODY: &[u8] = include_bytes!("../gate/order.json");

pub(crate) async fn measure(binary: &Binary, pace: Pace, count: u64) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let creating = async |server| creating(server, &handler, count).await;
    let durable = creating(servers::ours(binary, Keep::Directory).await?).await?;
    let memory = creating(servers::ours(binary, Keep::Memory).await?).await?;
    let peer = creating(servers::peer().await?).await?;
    let contenders = [("durable", durable), ("--memory", memory), (PEER, peer)];
    let [durable, memory, peer] = rounds(contenders, pace).await?;
    let row = |what: &str, rates: &Series| Row::rate(what, rates).beside(PEER, &peer);
    Ok(Group {
        title: "Create and dispatch tasks",
        conditions: vec![
            format!(
                "{count} tasks with 1 KiB of body, over gRPC on one connection, {AT_ONCE} creations under way, {QUEUES} \
                 queues with the default limits; from the first creation to the last answer of the handler."
            ),
            format!(
                "Durable: in a directory on the disk of the project, synced before a creation is answered. {PEER} keeps \
                 everything in memory."
            ),
        ],
        rows: vec![
            row("durable", &durable).judged(Target::RatioAtLeast(1.0)),
            row("--memory", &memory),
        ],
    })
}

async fn creating(
    server: Running,
    handler: &Arc<Upstream>,
    count: u64,
) -> anyhow::Result<Box<dyn Contender>> {
    let client = Client::connect(server.port).await?;
    for number in 0..QUEUES {
        client.create_queue(PARENT, queue(number)).await?;
    }
    let url = format!("http://127.0.0.1:{}/orders", handler.port());
    let call = move |client: Client, number| {
        let task = task(number, url.clone());
        async move { client.tasks("CreateTask", task).await }
    };
    Ok(Box::new(Deliveries {
        client,
        handler: Arc::clone(handler),
        count,
        call,
        _server: server,
    }))
}

fn queue(number: u64) -> String {
    format!("{PARENT}/queues/queue-{}", number % QUEUES)
}

fn task(number: u64, url: String) -> CreateTask {
    let json = ("Content-Type".into(), "application/json".into());
    CreateTask::http(queue(number), url, [json].into(), Bytes::from_static(BODY))
}
