//! `semel ui`: the page of a store, without a gate.

use crate::args::UiArgs;
use crate::commands::gate::stopped;
use crate::config::StoreOptions;
use crate::log;
use crate::open_store::{self, Schema};
use crate::out::to_stdout;
use crate::store_url::StoreUrl;
use anyhow::{Context, bail};
use semel_gate::StorePage;
use tokio::net::TcpListener;

pub(crate) async fn run(args: &UiArgs) -> anyhow::Result<()> {
    if !args.listen.ip().is_loopback() && args.token.is_none() {
        bail!(
            "--listen {} can be reached by others: set --token (SEMEL_ADMIN_TOKEN), which those show who may act",
            args.listen
        );
    }
    if let StoreUrl::Embedded(path) = &args.store
        && !path.join("guard").is_file()
    {
        bail!(
            "there is no store in {}: name the directory that the library or the gate names",
            path.display()
        );
    }
    // Without a gate, this process is the one that writes down who did what.
    log::begin_audit();
    let opened = open_store::open(&args.store, StoreOptions::default(), Schema::AsItIs).await?;
    let socket = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("--listen {}: is another process there?", args.listen))?;
    let page = StorePage {
        place: format!("store · {}", place(&args.store)),
        namespace: args.namespace.clone(),
        hosts: args.hosts.clone(),
        act_token: args.token.clone(),
        view_token: args.view_token.clone(),
        show_bodies: args.show_bodies,
    };
    to_stdout(&format!(
        "the page of this store: http://{}/ui/\nthe store: {}\nwithout a gate: records, letters and the audit, no rates; \
         Ctrl-C ends it\n",
        socket.local_addr()?,
        opened.says
    ))?;
    page.serve(opened.store, socket, stopped()?).await?;
    Ok(())
}

/// The kind of store, for the page's head: never its URL, which may have a password.
const fn place(store: &StoreUrl) -> &'static str {
    match store {
        StoreUrl::Embedded(_) => "embedded",
        StoreUrl::Postgres(_) => "PostgreSQL",
        StoreUrl::Redis(_) => "Redis",
        StoreUrl::Firestore(_) => "Firestore",
    }
}
