//! What only the processes of a deployment need: to be stopped in order, and to meet a fault in the middle of a message.

use crate::harness::{Event, InjectedFault, Ledger, ProcessFault, Processes, Role, RunningProcess};
use std::collections::BTreeSet;
use tokio::time::Instant;

// === impl Processes ===

impl Processes {
    /// The processes with such a role that a random fault can be done to.
    pub(super) fn faultable(&self, which: impl Fn(Role) -> bool) -> Vec<u32> {
        let runs = |it: &RunningProcess| it.paused_until.is_none() && !it.drains;
        self.numbers(|it| runs(it) && which(it.role))
    }

    /// Who is paused, and until when.
    pub(super) fn paused(&self) -> Vec<(u32, Instant)> {
        let running = self.running.iter();
        let paused = running.filter_map(|it| Some((it.number, it.paused_until?)));
        paused.collect()
    }

    /// Lets one go on at the next [`resume`](Self::resume).
    pub(super) fn resume_at(&mut self, number: u32, now: Instant) {
        if let Some(process) = self.find(number) {
            process.paused_until = Some(now);
        }
    }

    pub(super) fn drain(&mut self, number: u32) -> anyhow::Result<()> {
        if let Some(process) = self.find(number) {
            process.drains = true;
            process.program.process().terminate()?;
        }
        Ok(())
    }

    /// Does a fault to who has a role, at a point that it does not know itself. A death is found later.
    pub(super) fn hit_at(
        &mut self,
        role: Role,
        point: &str,
        fault: ProcessFault,
        until: Instant,
    ) -> anyhow::Result<Option<InjectedFault>> {
        let running = self.faultable(|it| it == role);
        let Some(number) = running.first().copied() else {
            return Ok(None);
        };
        let point = point.to_owned();
        let hit = Event::PointHit {
            point: point.clone(),
            fault,
        };
        Ledger::open(&self.dir, number)?.write(&hit);
        match fault {
            ProcessFault::Kill => {
                self.kill(number)?;
                Ok(None)
            }
            ProcessFault::Pause => {
                let paused = self.pause(number, until)?;
                Ok(paused.map(|paused| InjectedFault {
                    point: Some(point),
                    ..paused
                }))
            }
        }
    }

    /// The runs that the gates have in flight: all of them, or one.
    pub(super) fn in_flight_at(&self, gate: Option<usize>) -> anyhow::Result<BTreeSet<u64>> {
        let mut in_flight = BTreeSet::new();
        for process in &self.running {
            if let Role::Gate(number) = process.role
                && gate.is_none_or(|gate| gate == number)
            {
                in_flight.extend(self.in_flight(process.number)?);
            }
        }
        Ok(in_flight)
    }
}
