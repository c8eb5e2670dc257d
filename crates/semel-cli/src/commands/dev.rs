//! `semel dev`: a local cloud, a gate and a demo handler, and lines to copy that show what they do.

mod ledger;
mod lines;

use crate::args::DevArgs;
use crate::commands::gate::stopped;
use crate::commands::watch::watch_here;
use crate::config::{self, Config};
use crate::file_limit;
use crate::open_store::{self, Schema};
use crate::out::to_stdout;
use anyhow::Context;
use ledger::{Cloud, LocalCloud};
use lines::{Addresses, Paths, Taken};
use semel_broker::{Declared, Keep};
use semel_gate::Server;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub(crate) async fn run(args: &DevArgs) -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("a temporary directory for the store")?;
    let cloud = Cloud::default();
    let (upstream, routes, paths) = match &args.upstream {
        Some(url) => (url.clone(), lines::ANY_ROUTE, Paths::ANY),
        None => {
            let demo = format!("http://{}", ledger::serve(cloud.clone()).await?);
            (demo, lines::DEMO_ROUTES, Paths::DEMO)
        }
    };
    let mut config = config(args, &upstream, routes, &directory).await?;
    file_limit::fit(&mut config.settings);
    let opened = open_store::open(&config.store, config.options, Schema::BroughtUpToDate).await?;
    let gate = Server::bind(config.settings, opened.store).await?;
    let broker = broker(args, gate.address()?, paths).await?;
    let at = Addresses {
        gate: gate.address()?,
        admin: gate.admin_address()?,
        broker: broker.address(),
    };
    let task_url = format!("http://{}{}", at.gate, paths.task);
    // It was empty until now.
    drop(cloud.set(LocalCloud::new(at.broker, task_url)?));
    let screen = lines::first_screen(at, paths, args.upstream.as_deref());
    to_stdout(&format!("{}{screen}", lines::taken(&taken(args, at))))?;
    let (stop, end) = oneshot::channel::<()>();
    // The broker ends first, so that nothing is sent to a gate that goes down.
    let serving = tokio::spawn(broker.serve(async { drop(end.await) }));
    let stopped = stopped()?;
    if args.watch || std::io::stdout().is_terminal() {
        tokio::spawn(watch_here(at.admin));
    }
    let left = gate
        .serve(async move {
            stopped.await;
            drop(stop);
        })
        .await;
    serving.await.context("the broker ended early")?;
    to_stdout(&format!("stopped, {} runs left\n", left.runs.len()))
}

/// The ports that somebody else has, what they were for, and which were taken instead.
fn taken(args: &DevArgs, at: Addresses) -> Vec<Taken> {
    let wanted = [
        (args.port, "the gate", at.gate),
        (args.port.saturating_add(1), "its admin address", at.admin),
        (args.broker_port, "the broker", at.broker),
    ];
    let others = wanted
        .into_iter()
        .filter(|(port, _, found)| *port != found.port());
    others
        .map(|(port, who, found)| Taken { port, who, found })
        .collect()
}

/// A local cloud that delivers everything twice.
async fn broker(
    args: &DevArgs,
    gate: SocketAddr,
    paths: Paths,
) -> anyhow::Result<semel_broker::Bound> {
    let declared: Declared = lines::declared(gate, paths).parse()?;
    let settings = semel_broker::Settings {
        listen: free(args.broker_port).await?,
        keep: Keep::Memory,
        faults: declared.faults().to_vec(),
        declared,
        ..semel_broker::Settings::default()
    };
    Ok(semel_broker::Bound::bind(settings).await?)
}

/// The configuration of the demonstration, read as a user's own would be.
async fn config(
    args: &DevArgs,
    upstream: &str,
    routes: &str,
    store: &TempDir,
) -> anyhow::Result<Config> {
    let text = format!(
        "listen = \"{}\"\nadmin = \"{}\"\nstore = \"dir:{}\"\nsingle_instance = true\nupstream = \"{upstream}\"\n{routes}",
        free(args.port).await?,
        free(args.port.saturating_add(1)).await?,
        store.path().display(),
    );
    Ok(config::from_text(&text)?)
}

/// The default port, or any free one when it is taken.
async fn free(port: u16) -> anyhow::Result<SocketAddr> {
    let preferred = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = match TcpListener::bind(preferred).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
    };
    Ok(listener.local_addr()?)
}
