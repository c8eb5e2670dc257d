//! Havoc: does what the nemesis draws, and keeps what each fault met.

use super::crew::{Crew, Member};
use super::half::{Between, Half};
use super::links::{LinkName, Links};
use super::nemesis::{DRAIN, Jump, Nemesis};
use super::scene::Role;
use super::store::Server;
use super::strike::{Strike, What};
use crate::crash::Fault;
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

/// What befell a scene, and what is still under way.
#[derive(Debug)]
pub(super) struct Havoc {
    pub(super) nemesis: Nemesis,
    pub(super) strikes: Vec<Strike>,
    /// When a handler was found dead, in µs since 1970.
    pub(super) handler_deaths: Vec<u64>,
    /// How far the store's clock is off for good.
    pub(super) clock_off: Duration,
    server: Server,
    links: Links,
    lease: Duration,
    outage: Option<Outage>,
    hole: Option<Hole>,
    half: Option<Trap>,
    clock_right_at: Option<Instant>,
    clock: SystemClock,
}

/// A crash of the store that is not over.
#[derive(Debug)]
struct Outage {
    back: JoinHandle<anyhow::Result<()>>,
    open: BTreeSet<u64>,
}

/// A link that swallows.
#[derive(Debug)]
struct Hole {
    link: LinkName,
    until: Instant,
    open: BTreeSet<u64>,
}

/// A link that waits for the middle of a message.
#[derive(Debug)]
struct Trap {
    half: Half,
    fault: Fault,
    link: LinkName,
    halfway: oneshot::Receiver<Halfway>,
}

// === impl Havoc ===

impl Havoc {
    pub(super) fn new(nemesis: Nemesis, server: Server, links: Links, lease: Duration) -> Self {
        Self {
            nemesis,
            strikes: Vec::new(),
            handler_deaths: Vec::new(),
            clock_off: Duration::ZERO,
            server,
            links,
            lease,
            outage: None,
            hole: None,
            half: None,
            clock_right_at: None,
            clock: SystemClock::new(),
        }
    }

    /// Writes down a death.
    pub(super) fn note(&mut self, strike: Strike) {
        if strike.what == What::Kill(Role::Handler) {
            self.handler_deaths.push(self.clock.wall().0);
        }
        self.strikes.push(strike);
    }

    /// Does the next thing, if it is time.
    pub(super) fn strike(&mut self, crew: &mut Crew) -> anyhow::Result<()> {
        let now = Instant::now();
        let Some(what) = self.nemesis.strikes(now) else {
            return Ok(());
        };
        match what {
            What::Kill(role) => {
                if let Some(number) = self.victim(crew, role) {
                    crew.kill(number)?;
                }
            }
            What::Pause(role) => {
                let until = self.nemesis.pause(now, self.lease);
                if let Some(number) = self.victim(crew, role) {
                    self.strikes.extend(crew.pause(number, until)?);
                }
            }
            What::Drain => self.drain(crew)?,
            What::Cut => self.cut(crew)?,
            What::Hole => self.swallow(crew, now)?,
            What::Half => self.halve(),
            What::Outage => self.store_away(crew)?,
            What::Clock => self.clock_jumps(crew, now)?,
        }
        Ok(())
    }

    /// Goes on with what takes its time.
    pub(super) async fn look(&mut self, crew: &mut Crew) -> anyhow::Result<()> {
        let now = Instant::now();
        self.store_back(crew).await?;
        self.swallowed(crew, now)?;
        self.halfway(crew, now)?;
        if self.clock_right_at.is_some_and(|at| at <= now) {
            self.clock_right(crew)?;
        }
        Ok(())
    }

    /// Ends everything that is under way.
    pub(super) async fn end(&mut self, crew: &mut Crew) -> anyhow::Result<()> {
        self.half = None;
        for link in self.links.links() {
            self.links.at(link).into_iter().for_each(Link::stop_nothing);
        }
        if let Some(hole) = &mut self.hole {
            hole.until = Instant::now();
        }
        self.swallowed(crew, Instant::now())?;
        if self.clock_right_at.is_some() {
            self.clock_right(crew)?;
        }
        if let Some(outage) = self.outage.take() {
            outage.back.await??;
            self.struck(What::Outage, outage.open);
        }
        Ok(())
    }

    fn struck(&mut self, what: What, open: BTreeSet<u64>) {
        self.strikes.push(Strike {
            what,
            point: None,
            open,
        });
    }

    fn victim(&mut self, crew: &Crew, role: Role) -> Option<u32> {
        let same = |it: Role| std::mem::discriminant(&it) == std::mem::discriminant(&role);
        self.nemesis.one_of(&crew.running(same))
    }

    fn drain(&mut self, crew: &mut Crew) -> anyhow::Result<()> {
        let snared = |it: &&Member| it.snare.as_ref().is_some_and(|it| it.point == DRAIN);
        let snared = crew.members.iter().find(snared).map(|it| it.number);
        let number = snared.or_else(|| self.victim(crew, Role::Gate(0)));
        number.map_or(Ok(()), |number| crew.drain(number))
    }

    fn cut(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let Some(link) = self.nemesis.one_of(&self.links.links()) else {
            return Ok(());
        };
        // What is sent while it is cut is in hand afterwards.
        let mut open = link.open(crew)?;
        self.links.at(link).into_iter().for_each(Link::cut);
        open.extend(link.open(crew)?);
        self.struck(What::Cut, open);
        Ok(())
    }

    fn swallow(&mut self, crew: &Crew, now: Instant) -> anyhow::Result<()> {
        if self.hole.is_some() {
            return Ok(());
        }
        let Some(link) = self.nemesis.one_of(&self.links.links()) else {
            return Ok(());
        };
        let open = link.open(crew)?;
        self.links.at(link).into_iter().for_each(Link::swallow);
        let until = now + SWALLOWS;
        self.hole = Some(Hole { link, until, open });
        Ok(())
    }

    /// Everything that was in hand at any moment of it was met.
    fn swallowed(&mut self, crew: &Crew, now: Instant) -> anyhow::Result<()> {
        let Some(mut hole) = self.hole.take() else {
            return Ok(());
        };
        hole.open.extend(hole.link.open(crew)?);
        if now < hole.until {
            self.hole = Some(hole);
            return Ok(());
        }
        self.links.at(hole.link).into_iter().for_each(Link::cut);
        hole.open.extend(hole.link.open(crew)?);
        self.struck(What::Hole, hole.open);
        Ok(())
    }

    fn halve(&mut self) {
        if self.half.is_some() {
            return;
        }
        let links = self.links.links();
        let Some((half, fault)) = self.nemesis.half() else {
            return;
        };
        let fits = |link: &LinkName| match half.link {
            Between::Front => *link == LinkName::Front,
            Between::Handler => matches!(link, LinkName::Handler(_)),
        };
        let fitting: Vec<LinkName> = links.into_iter().filter(fits).collect();
        let link = self.nemesis.one_of(&fitting);
        let found = link.and_then(|link| Some((link, self.links.at(link)?)));
        self.half = found.map(|(link, wire)| Trap {
            half,
            fault,
            link,
            halfway: wire.stop_halfway(half.way),
        });
    }

    /// Half a message went over: whoever this is for is struck before the other half follows.
    fn halfway(&mut self, crew: &mut Crew, now: Instant) -> anyhow::Result<()> {
        let Some(mut trap) = self.half.take() else {
            return Ok(());
        };
        let halfway = match trap.halfway.try_recv() {
            Ok(halfway) => halfway,
            Err(oneshot::error::TryRecvError::Empty) => {
                self.half = Some(trap);
                return Ok(());
            }
            Err(oneshot::error::TryRecvError::Closed) => return Ok(()),
        };
        let gate = match trap.link {
            LinkName::Front => crew.gate_at(halfway.target),
            LinkName::Store(gate) | LinkName::Handler(gate) => Some(gate),
        };
        let role = match trap.half.victim {
            Role::Gate(_) => gate.map(Role::Gate),
            role @ (Role::Broker | Role::Handler) => Some(role),
        };
        let until = self.nemesis.pause(now, self.lease);
        if let Some(role) = role {
            let struck = crew.spring(role, trap.half.point, trap.fault, until)?;
            self.strikes.extend(struck);
        }
        Ok(())
    }

    fn store_away(&mut self, crew: &Crew) -> anyhow::Result<()> {
        if self.outage.is_some() {
            return Ok(());
        }
        let open = crew.in_hand()?;
        let server = self.server.clone();
        let back = tokio::spawn(async move { server.crash().await });
        self.outage = Some(Outage { back, open });
        Ok(())
    }

    /// Everything that was in hand at any moment of an outage was met by it.
    async fn store_back(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let Some(outage) = &mut self.outage else {
            return Ok(());
        };
        outage.open.extend(crew.in_hand()?);
        if outage.back.is_finished()
            && let Some(outage) = self.outage.take()
        {
            outage.back.await??;
            self.struck(What::Outage, outage.open);
        }
        Ok(())
    }

    fn clock_jumps(&mut self, crew: &Crew, now: Instant) -> anyhow::Result<()> {
        if self.clock_right_at.is_some() {
            return Ok(());
        }
        match self.nemesis.jump() {
            Jump::ForGood(far) => {
                self.clock_off += far;
                self.set_clock(crew, 0)
            }
            Jump::AndBack(seconds) => {
                self.clock_right_at = Some(now + CLOCK_WRONG);
                self.set_clock(crew, seconds)
            }
        }
    }

    fn clock_right(&mut self, crew: &Crew) -> anyhow::Result<()> {
        self.clock_right_at = None;
        self.set_clock(crew, 0)
    }

    /// A jump meets the runs in hand before and after it.
    fn set_clock(&mut self, crew: &Crew, seconds: i64) -> anyhow::Result<()> {
        let off = i64::try_from(self.clock_off.as_secs())? + seconds;
        let mut open = crew.in_hand()?;
        self.server.jump(off)?;
        open.extend(crew.in_hand()?);
        self.struck(What::Clock, open);
        Ok(())
    }
}
