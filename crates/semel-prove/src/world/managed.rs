//! A process of a world, and the proxies that are its own.

use crate::error::Error;
use crate::world::process::{ProcessSpec, RunningProcess};
use crate::world::proxy::Proxy;
use crate::world::reaper::ReaperHandle;
use std::net::{Ipv4Addr, SocketAddr};

#[derive(Debug)]
pub(super) struct ManagedProcess {
    pub(super) spec: ProcessSpec,
    pub(super) attack: bool,
    pub(super) running: Option<RunningProcess>,
    paused: bool,
    /// They listen as long as they are kept.
    #[expect(dead_code, reason = "a proxy closes when it is dropped")]
    proxies: Vec<Proxy>,
}

// === impl ManagedProcess ===

impl ManagedProcess {
    pub(super) fn new(spec: ProcessSpec, attack: bool, proxies: Vec<Proxy>) -> Self {
        Self {
            spec,
            attack,
            running: None,
            paused: false,
            proxies,
        }
    }

    /// Starts it, and returns once it is ready.
    pub(super) async fn launch(&mut self, handle: &ReaperHandle) -> Result<(), Error> {
        let mut running = self.spec.start(handle)?;
        self.spec.ready(&mut running).await?;
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
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.spec.port))
    }
}
