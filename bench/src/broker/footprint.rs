//! What many scheduled tasks take while they wait: memory, and no time.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::AT_ONCE;
use super::calls::{Client, CreateTask};
use super::servers::{self, Keep};
use crate::gate::semel::Binary;
use crate::load;
use crate::machine::now;
use crate::report::{Group, Row, Target, Unit};
use crate::running::Running;

const PARENT: &str = "projects/bench/locations/here";
const QUEUE: &str = "projects/bench/locations/here/queues/later";
const BODY_BYTES: usize = 256;
const DAY_SECONDS: i64 = 24 * 60 * 60;
const MIB: f64 = 1024.0 * 1024.0;

/// After this a broker that nobody asks has done what it does by itself.
const REST: Duration = Duration::from_secs(10);

/// How long it is watched doing nothing.
const IDLE: Duration = Duration::from_secs(10);

pub(crate) async fn measure(binary: &Binary, count: u64) -> anyhow::Result<Group> {
    let server = servers::ours(binary, Keep::Directory).await?;
    sleep(REST).await;
    let empty = server.resident()?;
    let idle_empty = idle(&server).await?;
    let client = Client::connect(server.port).await?;
    client.create_queue(PARENT, QUEUE.into()).await?;
    let tomorrow = i64::try_from(now().0 / 1_000_000)? + DAY_SECONDS;
    let began = Instant::now();
    let create = move |_| {
        let client = client.clone();
        async move { client.tasks("CreateTask", task(tomorrow)).await }
    };
    load::times(count, AT_ONCE, create).await?;
    let rate = count as f64 / began.elapsed().as_secs_f64();
    sleep(REST).await;
    let full = server.resident()?;
    let idle_full = idle(&server).await?;
    let mib = |what: &str, bytes: u64| Row::once(what, Unit::Mib, bytes as f64 / MIB);
    let millis = |what: &str, cpu: Duration| {
        Row::once(what, Unit::Millis, cpu.as_secs_f64() * 1e3).judged(Target::AtMost(50.0))
    };
    Ok(Group {
        title: "Memory, and time while idle",
        conditions: vec![
            format!(
                "{count} tasks with {BODY_BYTES} bytes of body in one queue, scheduled for tomorrow, durable; once, not in rounds."
            ),
            format!(
                "Resident {REST:?} after the last creation; the processor's time over {IDLE:?} in which nobody asks."
            ),
        ],
        rows: vec![
            mib("resident, empty", empty.now),
            mib("resident with the tasks", full.now).judged(Target::AtMost(400.0)),
            mib("resident at most until then", full.most),
            Row::once("scheduled", Unit::PerSecond, rate),
            millis("processor while idle, empty", idle_empty),
            millis("processor while idle, with the tasks", idle_full),
        ],
    })
}

/// How much of the processors' time it takes while nobody asks.
async fn idle(server: &Running) -> anyhow::Result<Duration> {
    let before = server.processor_time()?;
    sleep(IDLE).await;
    Ok(server.processor_time()?.saturating_sub(before))
}

fn task(tomorrow: i64) -> CreateTask {
    let (url, body) = ("http://127.0.0.1:9/later", &[b't'; BODY_BYTES]);
    let body = Bytes::from_static(body);
    CreateTask::http(QUEUE.into(), url.into(), HashMap::new(), body).scheduled(tomorrow)
}
