//! A downstream that de-duplicates by the key it is handed, as payment providers do. It lives in the driver, so
//! nothing that happens to a worker happens to it.

use crate::harness::WorkId;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What a worker asks the downstream to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charge {
    /// The idempotency key, as the run was told it.
    pub(crate) key: String,
    /// What the charge is for, as only the sender can know it: two keys for one work are two charges.
    pub(crate) work: WorkId,
    /// Drawn for this one call.
    pub(crate) nonce: String,
}

/// A server with a memory of charges.
#[derive(Debug)]
pub(crate) struct Downstream {
    /// Where it listens, on the loopback interface.
    pub(crate) port: u16,
    charges: Arc<Mutex<HashMap<String, Charge>>>,
}

// === impl Downstream ===

impl Downstream {
    /// Starts it. It ends with the runtime.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen as a downstream")?;
        let port = listener.local_addr()?.port();
        let charges = Arc::<Mutex<HashMap<String, Charge>>>::default();
        let kept = Arc::clone(&charges);
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(answer(caller, Arc::clone(&kept)));
            }
        });
        Ok(Self { port, charges })
    }

    /// What took effect.
    pub(crate) fn charges(&self) -> Vec<Charge> {
        let charges = self.charges.lock().expect("no holder of this lock panics");
        charges.values().cloned().collect()
    }
}

/// Asks for a charge; gives the nonce of the call that made it first.
pub(crate) async fn charge(port: u16, charge: &Charge) -> anyhow::Result<String> {
    let mut downstream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let mut line = serde_json::to_string(charge)?;
    line.push('\n');
    downstream.write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    BufReader::new(downstream).read_line(&mut answer).await?;
    anyhow::ensure!(answer.ends_with('\n'), "the downstream hung up");
    Ok(answer.trim().to_owned())
}

/// Answers one call. A caller who died has asked all the same.
async fn answer(
    mut caller: TcpStream,
    charges: Arc<Mutex<HashMap<String, Charge>>>,
) -> anyhow::Result<()> {
    let mut line = String::new();
    BufReader::new(&mut caller).read_line(&mut line).await?;
    let asked: Charge = serde_json::from_str(&line)?;
    let nonce = {
        let mut charges = charges.lock().expect("no holder of this lock panics");
        let made = charges.entry(asked.key.clone()).or_insert(asked);
        made.nonce.clone()
    };
    caller.write_all(format!("{nonce}\n").as_bytes()).await?;
    Ok(())
}
