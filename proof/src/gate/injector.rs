//! The injector: does what the nemesis draws, and keeps what each fault met.

use super::links::{LinkName, Links};
use super::nemesis::{DRAIN, Jump, Nemesis};
use super::partial_message::{Between, PartialMessage};
use super::store::Server;
use crate::harness::{FaultKind, InjectedFault, ProcessFault, Processes, Role, RunningProcess};
use semel::clock::{Clock, SystemClock};
use semel_rig::{Halfway, Link};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long a store's clock is wrong.
const CLOCK_WRONG: Duration = Duration::from_millis(2500);

/// How long a link swallows what it is given, before it breaks.
const SWALLOWS: Duration = Duration::from_millis(1800);

/// What befell a deployment, and what is still under way.
#[derive(Debug)]
pub(super) struct Injector {
    pub(super) nemesis: Nemesis,
    pub(super) injected: Vec<InjectedFault>,
    /// When a handler was found dead, in µs since 1970.
    pub(super) handler_deaths: Vec<u64>,
    /// How far the store's clock is off for good.
    pub(super) clock_off: Duration,
    server: Server,
    links: Links,
    lease: Duration,
    outage: Option<Outage>,
    blackhole: Option<Blackhole>,
    partial: Option<PendingPartial>,
    clock_right_at: Option<Instant>,
    clock: SystemClock,
}

/// A crash of the store that is not over.
#[derive(Debug)]
struct Outage {
    back: JoinHandle<anyhow::Result<()>>,
    in_flight: BTreeSet<u64>,
}

/// A link that swallows.
#[derive(Debug)]
struct Blackhole {
    link: LinkName,
    until: Instant,
    in_flight: BTreeSet<u64>,
}

/// A link that waits for the middle of a message.
#[derive(Debug)]
struct PendingPartial {
    partial: PartialMessage,
    fault: ProcessFault,
    link: LinkName,
    halfway: oneshot::Receiver<Halfway>,
}

// === impl Injector ===

impl Injector {
    pub(super) fn new(nemesis: Nemesis, server: Server, links: Links, lease: Duration) -> Self {
        Self {
            nemesis,
            injected: Vec::new(),
            handler_deaths: Vec::new(),
            clock_off: Duration::ZERO,
            server,
            links,
            lease,
            outage: None,
            blackhole: None,
            partial: None,
            clock_right_at: None,
            clock: SystemClock::new(),
        }
    }

    /// Writes down a death.
    pub(super) fn note(&mut self, injection: InjectedFault) {
        if injection.kind == FaultKind::Kill(Role::Handler) {
            self.handler_deaths.push(self.clock.wall().0);
        }
        self.injected.push(injection);
    }

    /// Does the next thing, if it is time.
    pub(super) fn inject(&mut self, processes: &mut Processes) -> anyhow::Result<()> {
        let now = Instant::now();
        let Some(what) = self.nemesis.next_fault(now) else {
            return Ok(());
        };
        match what {
            FaultKind::Kill(role) => {
                if let Some(number) = self.victim(processes, role) {
                    processes.kill(number)?;
                }
            }
            FaultKind::Pause(role) => {
                let until = self.nemesis.pause(now, self.lease);
                if let Some(number) = self.victim(processes, role) {
                    self.injected.extend(processes.pause(number, until)?);
                }
            }
            FaultKind::Drain => self.drain(processes)?,
            FaultKind::Cut => self.cut(processes)?,
            FaultKind::Blackhole => self.swallow(processes, now)?,
            FaultKind::PartialMessage => self.halve(),
            FaultKind::Outage => self.store_away(processes)?,
            FaultKind::ClockJump => self.clock_jumps(processes, now)?,
        }
        Ok(())
    }

    /// Goes on with what takes its time.
    pub(super) async fn look(&mut self, processes: &mut Processes) -> anyhow::Result<()> {
        let now = Instant::now();
        self.store_back(processes).await?;
        self.swallowed(processes, now)?;
        self.halfway(processes, now)?;
        if self.clock_right_at.is_some_and(|at| at <= now) {
            self.clock_right(processes)?;
        }
        Ok(())
    }

    /// Ends everything that is under way.
    pub(super) async fn end(&mut self, processes: &mut Processes) -> anyhow::Result<()> {
        self.partial = None;
        for link in self.links.links() {
            self.links.at(link).into_iter().for_each(Link::stop_nothing);
        }
        if let Some(blackhole) = &mut self.blackhole {
            blackhole.until = Instant::now();
        }
        self.swallowed(processes, Instant::now())?;
        if self.clock_right_at.is_some() {
            self.clock_right(processes)?;
        }
        if let Some(outage) = self.outage.take() {
            outage.back.await??;
            self.met(FaultKind::Outage, outage.in_flight);
        }
        Ok(())
    }

    fn met(&mut self, kind: FaultKind, in_flight: BTreeSet<u64>) {
        self.injected.push(InjectedFault::new(kind, in_flight));
    }

    fn victim(&mut self, processes: &Processes, role: Role) -> Option<u32> {
        let same = |it: Role| std::mem::discriminant(&it) == std::mem::discriminant(&role);
        self.nemesis.one_of(&processes.faultable(same))
    }

    fn drain(&mut self, processes: &mut Processes) -> anyhow::Result<()> {
        let armed =
            |it: &&RunningProcess| it.armed_fault.as_ref().is_some_and(|it| it.point == DRAIN);
        let armed = processes.running.iter().find(armed).map(|it| it.number);
        let number = armed.or_else(|| self.victim(processes, Role::Gate(0)));
        number.map_or(Ok(()), |number| processes.drain(number))
    }

    fn cut(&mut self, processes: &Processes) -> anyhow::Result<()> {
        let Some(link) = self.nemesis.one_of(&self.links.links()) else {
            return Ok(());
        };
        let in_flight = self.cut_link(link, processes)?;
        self.met(FaultKind::Cut, in_flight);
        Ok(())
    }

    /// Cuts a link. What is sent while it is cut is in flight afterwards.
    fn cut_link(&self, link: LinkName, processes: &Processes) -> anyhow::Result<BTreeSet<u64>> {
        let mut in_flight = link.in_flight(processes)?;
        self.links.at(link).into_iter().for_each(Link::cut);
        in_flight.extend(link.in_flight(processes)?);
        Ok(in_flight)
    }

    fn swallow(&mut self, processes: &Processes, now: Instant) -> anyhow::Result<()> {
        if self.blackhole.is_some() {
            return Ok(());
        }
        let Some(link) = self.nemesis.one_of(&self.links.links()) else {
            return Ok(());
        };
        let in_flight = link.in_flight(processes)?;
        self.links.at(link).into_iter().for_each(Link::swallow);
        let until = now + SWALLOWS;
        self.blackhole = Some(Blackhole {
            link,
            until,
            in_flight,
        });
        Ok(())
    }

    /// Everything that was in hand at any moment of it was met.
    fn swallowed(&mut self, processes: &Processes, now: Instant) -> anyhow::Result<()> {
        let Some(mut blackhole) = self.blackhole.take() else {
            return Ok(());
        };
        if now < blackhole.until {
            let more = blackhole.link.in_flight(processes)?;
            blackhole.in_flight.extend(more);
            self.blackhole = Some(blackhole);
            return Ok(());
        }
        let mut in_flight = self.cut_link(blackhole.link, processes)?;
        in_flight.append(&mut blackhole.in_flight);
        self.met(FaultKind::Blackhole, in_flight);
        Ok(())
    }

    fn halve(&mut self) {
        if self.partial.is_some() {
            return;
        }
        let links = self.links.links();
        let Some((partial, fault)) = self.nemesis.partial_message() else {
            return;
        };
        let fits = |link: &LinkName| match partial.link {
            Between::Front => *link == LinkName::Front,
            Between::Handler => matches!(link, LinkName::Handler(_)),
        };
        let fitting: Vec<LinkName> = links.into_iter().filter(fits).collect();
        let link = self.nemesis.one_of(&fitting);
        let found = link.and_then(|link| Some((link, self.links.at(link)?)));
        self.partial = found.map(|(link, wire)| PendingPartial {
            partial,
            fault,
            link,
            halfway: wire.stop_halfway(partial.way),
        });
    }

    /// Half a message went over: whoever this is for is hit before the other half follows.
    fn halfway(&mut self, processes: &mut Processes, now: Instant) -> anyhow::Result<()> {
        let Some(mut pending) = self.partial.take() else {
            return Ok(());
        };
        let halfway = match pending.halfway.try_recv() {
            Ok(halfway) => halfway,
            Err(oneshot::error::TryRecvError::Empty) => {
                self.partial = Some(pending);
                return Ok(());
            }
            Err(oneshot::error::TryRecvError::Closed) => return Ok(()),
        };
        let gate = match pending.link {
            LinkName::Front => self.links.gate_at(halfway.target),
            LinkName::Store(gate) | LinkName::Handler(gate) => Some(gate),
        };
        let role = match pending.partial.victim {
            Role::Gate(_) => gate.map(Role::Gate),
            role @ (Role::Broker | Role::Handler | Role::Worker) => Some(role),
        };
        let until = self.nemesis.pause(now, self.lease);
        if let Some(role) = role {
            let hit = processes.hit_at(role, pending.partial.point, pending.fault, until)?;
            self.injected.extend(hit);
        }
        Ok(())
    }

    fn store_away(&mut self, processes: &Processes) -> anyhow::Result<()> {
        if self.outage.is_some() {
            return Ok(());
        }
        let in_flight = processes.in_flight_at(None)?;
        let server = self.server.clone();
        let back = tokio::spawn(async move { server.crash().await });
        self.outage = Some(Outage { back, in_flight });
        Ok(())
    }

    /// Everything that was in hand at any moment of an outage was met by it.
    async fn store_back(&mut self, processes: &Processes) -> anyhow::Result<()> {
        let Some(outage) = &mut self.outage else {
            return Ok(());
        };
        outage.in_flight.extend(processes.in_flight_at(None)?);
        if outage.back.is_finished()
            && let Some(outage) = self.outage.take()
        {
            outage.back.await??;
            self.met(FaultKind::Outage, outage.in_flight);
        }
        Ok(())
    }

    fn clock_jumps(&mut self, processes: &Processes, now: Instant) -> anyhow::Result<()> {
        if self.clock_right_at.is_some() {
            return Ok(());
        }
        match self.nemesis.jump() {
            Jump::ForGood(far) => {
                self.clock_off += far;
                self.set_clock(processes, 0)
            }
            Jump::AndBack(seconds) => {
                self.clock_right_at = Some(now + CLOCK_WRONG);
                self.set_clock(processes, seconds)
            }
        }
    }

    fn clock_right(&mut self, processes: &Processes) -> anyhow::Result<()> {
        self.clock_right_at = None;
        self.set_clock(processes, 0)
    }

    /// A jump meets the runs in hand before and after it.
    fn set_clock(&mut self, processes: &Processes, seconds: i64) -> anyhow::Result<()> {
        let off = i64::try_from(self.clock_off.as_secs())? + seconds;
        let mut in_flight = processes.in_flight_at(None)?;
        self.server.jump(off)?;
        in_flight.extend(processes.in_flight_at(None)?);
        self.met(FaultKind::ClockJump, in_flight);
        Ok(())
    }
}
