//! The store of a scene: a server of its own, which can be ended as by a crash and started again.

use super::suite::Where;
use crate::bed::Place;
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

/// A store as a scene needs it.
#[derive(Debug)]
pub(super) struct Keep {
    pub(super) server: Server,
    /// As the checker and the handler reach it.
    pub(super) place: Place,
    port: u16,
}

// === impl Keep ===

impl Keep {
    pub(super) async fn start(store: Where, name: &str, dir: &Path) -> anyhow::Result<Self> {
        match store {
            Where::Embedded => Ok(Self {
                server: Server::None,
                place: Place::Embedded {
                    dir: dir.join("store"),
                },
                port: 0,
            }),
            Where::Postgres => {
                let server = spawn_blocking(|| Postgres::start_jumping(&[])).await??;
                let (url, port) = (server.url(), server.port());
                Ok(Self {
                    server: Server::Postgres(Arc::new(Mutex::new(server))),
                    place: Place::Postgres {
                        url,
                        group_items_max: 256,
                    },
                    port,
                })
            }
            Where::Redis => {
                let server = spawn_blocking(|| Redis::start_jumping(&[])).await??;
                let (url, port) = (server.url(), server.port());
                Ok(Self {
                    server: Server::Redis(Arc::new(Mutex::new(server))),
                    place: Place::Redis {
                        url,
                        prefix: name.to_owned(),
                    },
                    port,
                })
            }
        }
    }

    /// The store behind a link of its own; none where there is nothing to cut.
    pub(super) async fn linked(&self) -> anyhow::Result<(Place, Option<Link>)> {
        if matches!(self.server, Server::None) {
            return Ok((self.place.clone(), None));
        }
        let link = Link::to(self.port).await?;
        let (from, to) = (format!(":{}/", self.port), format!(":{}/", link.port()));
        let place = match self.place.clone() {
            Place::Postgres {
                url,
                group_items_max,
            } => Place::Postgres {
                url: url.replace(&from, &to),
                group_items_max,
            },
            Place::Redis { url, prefix } => Place::Redis {
                url: url.replace(&from, &to),
                prefix,
            },
            place @ Place::Embedded { .. } => place,
        };
        Ok((place, Some(link)))
    }
}

// === impl Server ===

impl Server {
    /// Ends the server as a crash would, and starts it again.
    pub(super) async fn crash(&self) -> anyhow::Result<()> {
        let server = self.clone();
        spawn_blocking(move || match server {
            Self::Postgres(server) => {
                let mut server = server.lock().expect("no holder of this lock panics");
                server.kill()?;
                server.restart()
            }
            Self::Redis(server) => {
                let mut server = server.lock().expect("no holder of this lock panics");
                server.kill()?;
                server.restart()
            }
            Self::None => Ok(()),
        })
        .await?
    }

    /// Sets the server's clock so many seconds off the machine's.
    pub(super) fn jump(&self, seconds: i64) -> anyhow::Result<()> {
        match self {
            Self::Postgres(server) => {
                let server = server.lock().expect("no holder of this lock panics");
                server.jump(seconds)
            }
            Self::Redis(server) => {
                let server = server.lock().expect("no holder of this lock panics");
                server.jump(seconds)
            }
            Self::None => Ok(()),
        }
    }
}
