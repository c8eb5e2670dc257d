//! The store of a deployment: a server of its own, which can be ended as by a crash and started again.

use crate::harness::{StoreKind, StoreLocation};
use semel_rig::Link;
use std::path::Path;
use std::sync::{Arc, Mutex};
use testbed::{Postgres, Redis};
use tokio::task::spawn_blocking;

/// A store's server.
#[derive(Clone, Debug)]
pub(super) enum Server {
    Postgres(Arc<Mutex<Postgres>>),
    Redis(Arc<Mutex<Redis>>),
    /// Lives and dies with its gate.
    None,
}

/// A store as a deployment needs it.
#[derive(Debug)]
pub(super) struct DeploymentStore {
    pub(super) server: Server,
    /// As the checker and the handler reach it.
    pub(super) location: StoreLocation,
    port: u16,
}

// === impl DeploymentStore ===

impl DeploymentStore {
    pub(super) async fn start(store: StoreKind, name: &str, dir: &Path) -> anyhow::Result<Self> {
        let (place, port, server) = match store {
            StoreKind::Embedded => (dir.join("store").display().to_string(), 0, Server::None),
            StoreKind::Postgres => {
                let server = spawn_blocking(|| Postgres::start_jumping(&[])).await??;
                let (url, port) = (server.url(), server.port());
                (url, port, Server::Postgres(Arc::new(Mutex::new(server))))
            }
            StoreKind::Redis => {
                let server = spawn_blocking(|| Redis::start_jumping(&[])).await??;
                let (url, port) = (server.url(), server.port());
                (url, port, Server::Redis(Arc::new(Mutex::new(server))))
            }
            StoreKind::Firestore => anyhow::bail!("no attack on a gate has a Firestore store"),
        };
        Ok(Self {
            server,
            location: StoreLocation::new(store, place, name.to_owned()),
            port,
        })
    }

    /// The store behind a link of its own; none where there is nothing to cut.
    pub(super) async fn linked(&self) -> anyhow::Result<(StoreLocation, Option<Link>)> {
        let mut location = self.location.clone();
        if matches!(self.server, Server::None) {
            return Ok((location, None));
        }
        let link = Link::to(self.port).await?;
        let (from, to) = (format!(":{}/", self.port), format!(":{}/", link.port()));
        location.place = location.place.replace(&from, &to);
        Ok((location, Some(link)))
    }
}

// === impl Server ===

impl Server {
    /// Ends the server as a crash would, and starts it again.
    pub(super) async fn crash(&self) -> anyhow::Result<()> {
        let server = self.clone();
        spawn_blocking(move || {
            server.with(
                |postgres| postgres.kill().and_then(|()| postgres.restart()),
                |redis| redis.kill().and_then(|()| redis.restart()),
            )
        })
        .await?
    }

    /// Sets the server's clock so many seconds off the machine's.
    pub(super) fn jump(&self, seconds: i64) -> anyhow::Result<()> {
        self.with(|it| it.jump(seconds), |it| it.jump(seconds))
    }

    fn with(
        &self,
        postgres: impl FnOnce(&mut Postgres) -> anyhow::Result<()>,
        redis: impl FnOnce(&mut Redis) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Postgres(server) => {
                postgres(&mut server.lock().expect("no holder of this lock panics"))
            }
            Self::Redis(server) => {
                redis(&mut server.lock().expect("no holder of this lock panics"))
            }
            Self::None => Ok(()),
        }
    }
}
