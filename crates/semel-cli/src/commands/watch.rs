//! `semel watch`: a line for each delivery as it arrives, at one gate or several.

mod events;
mod line;

use crate::admin::AdminTarget;
use crate::admin_client::AdminClient;
use crate::args::find::WatchArgs;
use crate::args::operate::AdminArgs;
use crate::out::{to_stderr, to_stdout};
use crate::table::harmless;
use events::Events;
use http_body_util::BodyExt;
use line::{Counted, GateNumber};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The pause before a stream that was lost is asked for again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How many deliveries wait to be printed.
const WAITING_MAX: usize = 1024;

/// What is heard of a gate.
#[derive(Debug)]
enum Heard {
    /// Its stream begins, perhaps anew: what it remembers follows.
    Began(GateNumber),
    /// A delivery: from before, or now.
    Delivery {
        gate: GateNumber,
        delivery: Value,
        is_new: bool,
    },
    /// So many were too fast for this watcher.
    Missed(u64),
    /// The stream is there, or it is not.
    Talk(String),
}

pub(crate) async fn run(args: &WatchArgs) -> anyhow::Result<()> {
    let (said, heard) = mpsc::channel(WAITING_MAX);
    for (number, gate) in args.gates.each().into_iter().enumerate() {
        let AdminTarget::Gate(client) = AdminTarget::open(&gate).await? else {
            continue;
        };
        tokio::spawn(follow(number, *client, said.clone()));
    }
    drop(said);
    print(heard, args.gates.json).await
}

/// The same for the gate at this address of this host, until it is gone.
pub(crate) async fn watch_here(admin: std::net::SocketAddr) -> anyhow::Result<()> {
    let gate = AdminArgs {
        admin: Some(format!("http://{admin}").parse()?),
        config: None,
        token: None,
        store: None,
        json: false,
    };
    if let AdminTarget::Gate(client) = AdminTarget::open(&gate).await? {
        let (said, heard) = mpsc::channel(WAITING_MAX);
        let following = async move {
            // Its end says itself that it is the end.
            drop(stream(0, &client, &said).await);
        };
        let (printed, ()) = tokio::join!(print(heard, false), following);
        printed?;
    }
    Ok(())
}

async fn print(mut heard: mpsc::Receiver<Heard>, json: bool) -> anyhow::Result<()> {
    let mut counted = Counted::default();
    while let Some(heard) = heard.recv().await {
        match heard {
            Heard::Began(gate) => counted.forget(gate),
            Heard::Delivery {
                gate,
                delivery,
                is_new,
            } => {
                let line = counted.line(gate, &delivery);
                match (is_new, json) {
                    (false, _) => {}
                    (true, true) => to_stdout(&format!("{delivery}\n"))?,
                    (true, false) => to_stdout(&format!("{line}\n"))?,
                }
            }
            Heard::Missed(count) if json => to_stdout(&format!("{}\n", json!({"missed": count})))?,
            Heard::Missed(count) => {
                to_stderr(&format!(
                    "semel: {count} deliveries were too fast to be shown\n"
                ));
            }
            Heard::Talk(talk) => to_stderr(&format!("semel: {}\n", harmless(&talk))),
        }
    }
    Ok(())
}

/// Watches one gate for as long as somebody listens, across its restarts.
async fn follow(gate: GateNumber, client: AdminClient, said: mpsc::Sender<Heard>) {
    let mut is_lost = false;
    loop {
        let ended = stream(gate, &client, &said).await;
        let talk = match ended {
            // A gate that is away for long is told once.
            Err(_) if is_lost => None,
            Err(why) => Some(format!("{why}; trying again")),
            Ok(()) => Some(format!("{} ended the stream; trying again", client.base())),
        };
        is_lost = true;
        if let Some(talk) = talk
            && said.send(Heard::Talk(talk)).await.is_err()
        {
            return;
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// Watches one gate until its stream ends. What it remembers is counted first, so that numbers are right from the start,
/// and anew whenever the stream was lost: a gate tells again what it told before.
async fn stream(
    gate: GateNumber,
    client: &AdminClient,
    said: &mpsc::Sender<Heard>,
) -> Result<(), String> {
    let mut body = client
        .open("/deliveries/stream")
        .await
        .map_err(|error| error.to_string())?;
    let mut events = Events::default();
    let before = client.ask(crate::admin::get("/deliveries?limit=1000".into()), None);
    let (_, before) = before.await.map_err(|error| error.to_string())?;
    let before = before.get("deliveries").and_then(Value::as_array);
    // What came while both were asked for is in both.
    let mut counted = HashSet::new();
    if said.send(Heard::Began(gate)).await.is_err() {
        return Ok(());
    }
    for delivery in before.into_iter().flatten().rev() {
        counted.insert(arrival(delivery));
        let heard = Heard::Delivery {
            gate,
            delivery: delivery.clone(),
            is_new: false,
        };
        if said.send(heard).await.is_err() {
            return Ok(());
        }
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        for (name, data) in events.read(&bytes) {
            let heard = match name.as_str() {
                "delivery" if counted.remove(&arrival(&data)) => continue,
                "delivery" => Heard::Delivery {
                    gate,
                    delivery: data,
                    is_new: true,
                },
                "missed" => Heard::Missed(data.get("missed").and_then(Value::as_u64).unwrap_or(0)),
                _ => continue,
            };
            if said.send(heard).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What tells one arrival from every other.
fn arrival(delivery: &Value) -> [Option<String>; 3] {
    let text = |name: &str| delivery.get(name).map(Value::to_string);
    [text("at"), text("key"), text("trace_id")]
}
