//! The crew: the processes of a scene, as the driver holds them. Whoever dies is started again.

use super::scene::{Order, Role, Scene};
use super::snare::Snare;
use super::strike::{Strike, What};
use crate::crash::{self, Fault, Ledger, Line};
use semel_rig::{Program, Signal};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use tokio::time::Instant;

/// The processes of a scene.
#[derive(Debug)]
pub(super) struct Crew {
    program: PathBuf,
    scene: Scene,
    pub(super) members: Vec<Member>,
    started: u32,
    /// The numbers of all that played the handler.
    pub(super) handlers: Vec<u32>,
}

/// One process.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) role: Role,
    pub(super) number: u32,
    pub(super) snare: Option<Snare>,
    pub(super) life: Life,
    /// It was told to stop.
    drains: bool,
    program: Program,
}

/// What a process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Runs,
    /// Stopped, until then.
    Paused(Instant),
}

// === impl Crew ===

impl Crew {
    pub(super) fn new(program: PathBuf, scene: Scene) -> Self {
        Self {
            program,
            scene,
            members: Vec::new(),
            started: 0,
            handlers: Vec::new(),
        }
    }

    /// How many processes were started.
    pub(super) const fn started(&self) -> u32 {
        self.started
    }

    pub(super) fn start(&mut self, role: Role, snare: Option<Snare>) -> anyhow::Result<()> {
        let number = self.started;
        self.started += 1;
        if role == Role::Handler {
            self.handlers.push(number);
        }
        let order = Order {
            role,
            number,
            snare: snare.clone(),
            scene: self.scene.clone(),
        };
        let mut command = Command::new(&self.program);
        command.args(["play", &serde_json::to_string(&order)?]);
        let program = Program::builder(&mut command)
            .log(self.scene.case.dir.join(format!("{number}.log")))
            .last_signal(Signal::KILL)
            .start()?;
        self.members.push(Member {
            role,
            number,
            snare,
            life: Life::Runs,
            drains: false,
            program,
        });
        Ok(())
    }

    /// The processes that a random fault can be done to.
    pub(super) fn running(&self, which: impl Fn(Role) -> bool) -> Vec<u32> {
        let runs =
            |member: &&Member| member.life == Life::Runs && !member.drains && which(member.role);
        let running = self.members.iter().filter(runs);
        running.map(|member| member.number).collect()
    }

    /// Takes out who has ended, with what it left in hand.
    pub(super) fn bury(&mut self) -> anyhow::Result<Option<(Member, Strike)>> {
        for place in 0..self.members.len() {
            let Some(member) = self.members.get_mut(place) else {
                break;
            };
            let Some(status) = member.program.status()? else {
                continue;
            };
            let member = self.members.remove(place);
            let what = member.cause(status)?;
            let strike = Strike {
                what,
                point: self.sprung(&member, Fault::Kill)?,
                open: self.open(member.number)?,
            };
            return Ok(Some((member, strike)));
        }
        Ok(None)
    }

    /// Pauses a process; `None`: it died first.
    pub(super) fn pause(&mut self, number: u32, until: Instant) -> anyhow::Result<Option<Strike>> {
        let Some(member) = self.find(number) else {
            return Ok(None);
        };
        if member.program.process().pause().is_err() {
            return Ok(None);
        }
        member.life = Life::Paused(until);
        let role = member.role;
        let open = self.open(number)?;
        Ok(Some(Strike {
            what: What::Pause(role),
            point: None,
            open,
        }))
    }

    /// Strikes who plays a role at a point that it does not know itself. A death is found later.
    pub(super) fn spring(
        &mut self,
        role: Role,
        point: &str,
        fault: Fault,
        until: Instant,
    ) -> anyhow::Result<Option<Strike>> {
        let running = self.running(|its| its == role);
        let Some(number) = running.first().copied() else {
            return Ok(None);
        };
        let ledger = Ledger::open(&self.scene.case.ledger(number))?;
        ledger.write(&Line::Sprung {
            point: point.to_owned(),
            fault,
        });
        match fault {
            Fault::Kill => {
                self.kill(number)?;
                Ok(None)
            }
            Fault::Pause => {
                let struck = self.pause(number, until)?;
                Ok(struck.map(|struck| Strike {
                    point: Some((role, point.to_owned())),
                    ..struck
                }))
            }
        }
    }

    /// Which gate listens on this port.
    pub(super) fn gate_at(&self, port: u16) -> Option<usize> {
        self.scene.gates.iter().position(|seat| seat.port == port)
    }

    /// The processes that have stopped themselves in a snare.
    pub(super) fn stopped(&mut self, until: Instant) -> anyhow::Result<Vec<Strike>> {
        let mut stopped = Vec::new();
        let all: Vec<u32> = self.members.iter().map(|member| member.number).collect();
        for number in all {
            let Some(member) = self.find(number) else {
                continue;
            };
            if member.life == Life::Runs && member.program.process().is_paused() {
                member.life = Life::Paused(until);
                let role = member.role;
                let member = self.members.iter().find(|it| it.number == number);
                let point = member.map(|it| self.sprung(it, Fault::Pause)).transpose()?;
                stopped.push(Strike {
                    what: What::Pause(role),
                    point: point.flatten(),
                    open: self.open(number)?,
                });
            }
        }
        Ok(stopped)
    }

    /// Who is paused.
    pub(super) fn paused(&self) -> Vec<u32> {
        let paused = |member: &&Member| matches!(member.life, Life::Paused(_));
        let paused = self.members.iter().filter(paused);
        paused.map(|member| member.number).collect()
    }

    /// Lets one go on at the next [`resume`](Self::resume).
    pub(super) fn wake(&mut self, number: u32, now: Instant) {
        if let Some(member) = self.find(number) {
            member.life = Life::Paused(now);
        }
    }

    /// Lets go on whoever was paused long enough.
    pub(super) fn resume(&mut self, now: Instant) -> anyhow::Result<()> {
        for member in &mut self.members {
            if matches!(member.life, Life::Paused(until) if until <= now) {
                member.program.process().resume()?;
                member.life = Life::Runs;
            }
        }
        Ok(())
    }

    pub(super) fn kill(&mut self, number: u32) -> anyhow::Result<()> {
        if let Some(member) = self.find(number) {
            member.program.process().kill()?;
        }
        Ok(())
    }

    pub(super) fn drain(&mut self, number: u32) -> anyhow::Result<()> {
        if let Some(member) = self.find(number) {
            member.drains = true;
            member.program.process().terminate()?;
        }
        Ok(())
    }

    /// The runs that the gates have in hand.
    pub(super) fn in_hand(&self) -> anyhow::Result<BTreeSet<u64>> {
        let mut open = BTreeSet::new();
        for member in &self.members {
            if matches!(member.role, Role::Gate(_)) {
                open.extend(self.open(member.number)?);
            }
        }
        Ok(open)
    }

    pub(super) fn open_of(&self, gate: usize) -> anyhow::Result<BTreeSet<u64>> {
        let member = self.members.iter().find(|it| it.role == Role::Gate(gate));
        member.map_or_else(|| Ok(BTreeSet::new()), |it| self.open(it.number))
    }

    /// The runs that a process has in hand.
    pub(super) fn open(&self, number: u32) -> anyhow::Result<BTreeSet<u64>> {
        let lines = crash::read(&self.scene.case.ledger(number))?;
        Ok(crash::open(&lines))
    }

    /// The point where a process ran into its snare, if it did.
    fn sprung(&self, member: &Member, fault: Fault) -> anyhow::Result<Option<(Role, String)>> {
        let lines = crash::read(&self.scene.case.ledger(member.number))?;
        let point = lines.into_iter().rev().find_map(|line| match line {
            Line::Sprung { point, fault: its } if its == fault => Some(point),
            Line::Sprung { .. }
            | Line::Received { .. }
            | Line::Answered { .. }
            | Line::Begun(_)
            | Line::Effect { .. }
            | Line::Fault(_)
            | Line::Cut { .. }
            | Line::Doubted { .. }
            | Line::Stalled { .. } => None,
        });
        Ok(point.map(|point| (member.role, point)))
    }

    fn find(&mut self, number: u32) -> Option<&mut Member> {
        self.members.iter_mut().find(|it| it.number == number)
    }
}

// === impl Member ===

impl Member {
    /// Why it ended. A process that is told to stop before it listens for that ends at once.
    fn cause(&self, status: ExitStatus) -> anyhow::Result<What> {
        if status.signal() == Some(Signal::KILL.as_raw()) {
            return Ok(What::Kill(self.role));
        }
        let in_order = status.success() || status.signal() == Some(Signal::TERM.as_raw());
        anyhow::ensure!(
            self.drains && in_order,
            "a {} ended by itself: {status}\n{}",
            self.role.word(),
            self.program.log_tail()
        );
        Ok(What::Drain)
    }
}
