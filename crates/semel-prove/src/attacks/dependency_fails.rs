//! A dependency fails while the process lives: it answers 500, hangs up, or is too slow; then the sender goes on.

use super::crash_sweep::spread;
use super::trial::{StartedTrial, ended};
use super::{Error, Session, Trial};
use crate::judge::timeline::What;
use crate::options::Profile;
use crate::world::exchange::Exchange;
use crate::world::protocol::MessageKind;
use crate::world::recorder::Release;

/// How many failures of other services, and of databases, are tried unless all are.
const CALLS_QUICK: usize = 4;
const STATEMENTS_QUICK: usize = 2;
/// How many statements are answered too late: each is waited for until somebody has lost patience.
const STATEMENTS_SLOW: usize = 4;

const ERROR: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\n\
    content-length: 6\r\nconnection: close\r\n\r\nfailed";

/// Where a dependency fails, and how.
#[derive(Clone, Debug)]
struct Failure {
    /// Held before it is handed on: a request that never arrives, or the answer to one that was carried out.
    at: Exchange,
    how: How,
}

/// In which way a dependency fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Error,
    HangsUp,
    /// Its answer does not come before the attempt has ended: whoever waits for it loses patience first.
    Slow,
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let failures = failures(session);
    if failures.is_empty() {
        session.explain("nothing was seen on the wire that could fail");
    }
    for failure in failures {
        if one(session, &failure).await? {
            return Ok(());
        }
    }
    session.unless_hit("no boundary of the undisturbed run was met again");
    Ok(())
}

async fn one(session: &mut Session<'_>, Failure { at, how }: &Failure) -> Result<bool, Error> {
    let StartedTrial { trial, first, held } = Trial::begin_held(session, at).await?;
    if let Some(held) = &held {
        let how = how.said(held);
        trial
            .session
            .world
            .recorder
            .note(&held.lane, What::Fails { how });
    }
    if *how == How::Slow {
        ended(&first).await;
    }
    trial.session.world.recorder.release(how.release());
    let results: Vec<_> = first.await.into_iter().collect();
    trial.conclude(&results, held.is_some()).await
}

/// All of them, or some that are spread over the run: those of other services first.
fn failures(session: &Session<'_>) -> Vec<Failure> {
    let exchanges = session.baseline.exchanges.iter();
    let exchanges = exchanges.filter(|it| session.world.may_attack(it.process()));
    let is_call = |it: &Exchange| session.world.is_call(it);
    let settled = |it: &Exchange| it.message.kind == MessageKind::Commit && !it.is_request();
    let (calls, statements): (Vec<_>, Vec<_>) = exchanges.partition(|it| is_call(it));
    match session.options.profile {
        Profile::Quick => {
            let calls = calls.iter().filter(|it| it.writes());
            let calls = calls.map(|at| {
                let how = if at.is_request() {
                    How::Error
                } else {
                    How::HangsUp
                };
                Failure::new(at, how)
            });
            let statements = statements.iter().filter(|it| settled(it));
            let statements = statements.map(|at| Failure::new(at, How::HangsUp));
            let mut chosen = spread(calls.collect(), CALLS_QUICK);
            chosen.extend(spread(statements.collect(), STATEMENTS_QUICK));
            chosen
        }
        Profile::Full => {
            let ways = [How::Error, How::HangsUp, How::Slow];
            let calls = calls.into_iter();
            let calls = calls.flat_map(|at| ways.map(|how| Failure::new(at, how)));
            let slow = statements.iter().filter(|it| settled(it));
            let slow = spread(slow.collect(), STATEMENTS_SLOW).into_iter();
            let slow = slow.map(|at| Failure::new(at, How::Slow));
            let cut = statements.iter().map(|at| Failure::new(at, How::HangsUp));
            calls.chain(cut).chain(slow).collect()
        }
    }
}

// === impl Failure ===

impl Failure {
    fn new(at: &Exchange, how: How) -> Self {
        let at = at.clone();
        Self { at, how }
    }
}

// === impl How ===

impl How {
    fn release(self) -> Release {
        match self {
            Self::Error => Release::Answer(ERROR),
            Self::HangsUp | Self::Slow => Release::Drop,
        }
    }

    fn said(self, held: &Exchange) -> String {
        let done = if held.is_request() {
            ""
        } else {
            ", though it has done its work"
        };
        let fails = match self {
            Self::Error => "answers 500",
            Self::HangsUp => "hangs up",
            Self::Slow => "does not answer in time",
        };
        format!("{fails}{done}")
    }
}
