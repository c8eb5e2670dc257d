//! `semel dev`: a gate before a demo handler, and lines to copy that show what it does.

mod ledger;
mod lines;

use crate::args::DevArgs;
use crate::commands::gate::stopped;
use crate::config::{self, Config};
use crate::open_store;
use anyhow::Context;
use semel_gate::Bound;
use std::net::{Ipv4Addr, SocketAddr};
use tempfile::TempDir;
use tokio::net::TcpListener;

pub(crate) async fn run(args: &DevArgs) -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("a temporary directory for the store")?;
    let demo = match &args.upstream {
        Some(_) => None,
        None => Some(ledger::serve().await?),
    };
    let config = config(args, demo, &directory).await?;
    let opened = open_store::open(&config.store, config.options).await?;
    let bound = Bound::bind(config.settings, opened.store).await?;
    print!(
        "{}",
        lines::first_screen(
            bound.address()?,
            bound.admin_address()?,
            args.upstream.as_deref()
        )
    );
    let left = bound.serve(stopped()?).await;
    println!("stopped, {} runs left", left.runs.len());
    Ok(())
}

/// The configuration of the demonstration, read as a user's own would be.
async fn config(
    args: &DevArgs,
    demo: Option<SocketAddr>,
    store: &TempDir,
) -> anyhow::Result<Config> {
    let upstream = match (&args.upstream, demo) {
        (Some(url), _) => url.clone(),
        (None, Some(address)) => format!("http://{address}"),
        (None, None) => anyhow::bail!("there is neither a handler nor a demonstration of one"),
    };
    let routes = if args.upstream.is_some() {
        lines::ANY_ROUTE
    } else {
        lines::DEMO_ROUTES
    };
    let text = format!(
        "listen = \"{}\"\nadmin = \"{}\"\nstore = \"dir:{}\"\nsingle_instance = true\nupstream = \"{upstream}\"\n{routes}",
        free(args.port).await?,
        free(args.port.saturating_add(1)).await?,
        store.path().display(),
    );
    Ok(config::from_text(&text)?)
}

/// The usual port, or any free one when it is taken.
async fn free(port: u16) -> anyhow::Result<SocketAddr> {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = match TcpListener::bind(usual).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
    };
    Ok(listener.local_addr()?)
}
