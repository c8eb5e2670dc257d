//! The heal: no more faults, and everything must end.

use super::attack::{Attack, TICK};
use super::program::here;
use crate::harness::FaultKind;
use semel::clock::{Clock, SystemClock};
use semel_rig::http::Request;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// How long a process may take to end.
const END_MAX: Duration = Duration::from_secs(30);

/// How long a process that is there may take to be reached.
const REACHED_WITHIN: Duration = Duration::from_millis(200);

// === impl Attack ===

impl Attack<'_> {
    /// No more faults: lets everybody live. When all of them could be reached, in µs since 1970.
    pub(super) async fn heal(&mut self, began: Instant) -> anyhow::Result<u64> {
        self.injector.end(&mut self.processes).await?;
        let clock = SystemClock::new();
        self.look_healing()?;
        while began.elapsed() < self.settings.heal_max && !self.all_there().await {
            sleep(TICK).await;
            self.look_healing()?;
        }
        Ok(clock.wall().0)
    }

    async fn all_there(&self) -> bool {
        let gates = self.deployment.gates.iter().map(|address| address.port);
        for port in gates.chain([self.deployment.broker, self.deployment.handler]) {
            // Before one that is paused, the kernel lets callers wait in a line that may be full.
            let reached = timeout(REACHED_WITHIN, TcpStream::connect(here(port))).await;
            if !matches!(reached, Ok(Ok(_))) {
                return false;
            }
        }
        self.processes.paused().is_empty()
    }

    /// Waits for the end of everything that was sent; says what did not end.
    pub(super) async fn wait(&mut self, began: Instant) -> anyhow::Result<Vec<String>> {
        let mut stuck = vec!["the broker was not asked".to_owned()];
        while began.elapsed() < self.settings.heal_max && !stuck.is_empty() {
            self.look_healing()?;
            stuck.clear();
            let asked = Request::post_json("/_semel/wait-idle", r#"{"timeout": "250ms"}"#)
                // Not for long: the armed faults that are still set pause a process now and then, which is let go on above.
                .within(Duration::from_millis(500));
            match asked.send(self.deployment.broker).await {
                Ok(answer) if answer.status == 200 => {}
                Ok(answer) => stuck.push(answer.body),
                Err(no_answer) => stuck.push(format!("the broker: {no_answer}")),
            }
            while let Some(done) = self.sent.try_join_next() {
                self.log.heard.extend(done??);
            }
            if !self.sent.is_empty() {
                stuck.push(format!("{} senders", self.sent.len()));
            }
            sleep(TICK).await;
        }
        // What was taken over may still be running somewhere, and says so when it ends.
        sleep(self.deployment.case.lease * 2).await;
        Ok(stuck)
    }

    fn look_healing(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        let stopped = self.processes.stopped(now)?;
        self.injector.injected.extend(stopped);
        for (number, _) in self.processes.paused() {
            self.processes.resume_at(number, now);
        }
        self.processes.resume(now)?;
        while let Some((process, injection)) = self.processes.reap(|_| true)? {
            self.injector.note(injection);
            self.start_armed(process.role, None)?;
        }
        Ok(())
    }

    /// Ends everybody in order.
    pub(super) async fn shut_down(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + END_MAX;
        while !self.processes.running.is_empty() {
            anyhow::ensure!(Instant::now() < until, "a process does not end");
            let now = Instant::now();
            self.processes.resume(now)?;
            for number in self.processes.faultable(|_| true) {
                self.processes.drain(number)?;
            }
            let stopped = self.processes.stopped(now)?;
            self.injector.injected.extend(stopped);
            while let Some((_, injection)) = self.processes.reap(|_| true)? {
                if injection.kind != FaultKind::Drain || !injection.in_flight.is_empty() {
                    self.injector.injected.push(injection);
                }
            }
            sleep(TICK).await;
        }
        Ok(())
    }
}
