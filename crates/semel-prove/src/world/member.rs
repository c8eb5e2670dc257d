//! A process of a world, and the proxies that are its own.

use crate::error::Error;
use crate::world::process::{Recipe, Running};
use crate::world::proxy::Proxy;
use crate::world::reaper::Ear;
use std::net::{Ipv4Addr, SocketAddr};

#[derive(Debug)]
pub(super) struct Member {
    pub(super) recipe: Recipe,
    pub(super) attack: bool,
    pub(super) running: Option<Running>,
    paused: bool,
    /// They listen as long as they are kept.
    #[expect(dead_code, reason = "a proxy closes when it is dropped")]
    proxies: Vec<Proxy>,
}

// === impl Member ===

impl Member {
    pub(super) fn new(recipe: Recipe, attack: bool, proxies: Vec<Proxy>) -> Self {
        Self {
            recipe,
            attack,
            running: None,
            paused: false,
            proxies,
        }
    }

    /// Starts it, and returns once it is ready.
    pub(super) async fn launch(&mut self, ear: &Ear) -> Result<(), Error> {
        let mut running = self.recipe.start(ear)?;
        self.recipe.ready(&mut running).await?;
        self.running = Some(running);
        self.paused = false;
        Ok(())
    }

    /// Whether there was something to pause.
    pub(super) fn pause(&mut self) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        running.pause();
        self.paused = true;
        true
    }

    /// Whether it was paused.
    pub(super) fn resume(&mut self) -> bool {
        let Some(running) = self.running.as_ref().filter(|_| self.paused) else {
            return false;
        };
        running.resume();
        self.paused = false;
        true
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.recipe.port))
    }
}
