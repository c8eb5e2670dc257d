//! The crash-point sweep: the baseline shows every boundary, and each of them is one place to die.

use super::trial::{StartedTrial, ended};
use super::{Error, Session, Trial};
use crate::report::Coverage;
use crate::world::exchange::Exchange;
use crate::world::protocol::MessageKind;
use std::time::Duration;

/// Where a process dies.
#[derive(Clone, Debug)]
struct Crash {
    /// Before these bytes are handed on; `None`: when its answer has just reached the sender.
    at: Option<Exchange>,
    victim: usize,
}

/// Kills a process at each boundary, starts it again, and lets the sender go on.
pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let mut boundaries = 0;
    for crash in crashes(session) {
        if one(session, &crash, &mut boundaries).await? {
            break;
        }
    }
    let of = session.baseline.exchanges.iter();
    let of = of
        .filter(|it| session.world.may_attack(it.process()))
        .count();
    session.round.tally.coverage = Some(Coverage {
        tried: boundaries,
        of: u32::try_from(of).unwrap_or(u32::MAX),
        what: "boundaries",
    });
    // To die after the answer alone is not a sweep.
    if boundaries == 0 {
        session.round.tally.hits = 0;
    }
    session.unless_hit(if session.baseline.exchanges.is_empty() {
        "no boundary was seen: the handler did not speak to any [[dependency]] through its proxy"
    } else {
        "no boundary of the undisturbed run was met again"
    });
    Ok(())
}

/// Whether the attack is over.
async fn one(
    session: &mut Session<'_>,
    crash: &Crash,
    boundaries: &mut u32,
) -> Result<bool, Error> {
    let started = match &crash.at {
        Some(exchange) => Trial::begin_held(session, exchange).await?,
        None => answered(session).await?,
    };
    let StartedTrial { trial, first, held } = started;
    *boundaries += u32::from(held.is_some());
    let hit = held.is_some() || crash.at.is_none();
    tracing::debug!(?held, ?crash.victim, hit, "crash");
    if hit {
        trial.session.world.kill(crash.victim);
    }
    let results: Vec<_> = first.await.into_iter().collect();
    trial.conclude(&results, hit).await
}

/// A trial whose answer has just reached the sender.
async fn answered<'s, 'a>(session: &'s mut Session<'a>) -> Result<StartedTrial<'s, 'a>, Error> {
    let trial = Trial::begin(session).await?;
    let first = trial.spawn(trial.target());
    ended(&first).await;
    Ok(trial.started(first, None))
}

/// The crashes to try: all of them, or the most telling ones, in the order in which they come.
fn crashes(session: &Session<'_>) -> Vec<Crash> {
    let (world, baseline) = (&session.world, &session.baseline);
    let exchanges = baseline.exchanges.iter();
    let seen = exchanges.filter(|exchange| world.may_attack(exchange.process()));
    let seen: Vec<&Exchange> = seen.collect();
    let silent = silent(session, &seen);
    let last = seen.last().map(|exchange| exchange.process());
    let answered = Crash {
        at: None,
        victim: last.unwrap_or(world.receiver),
    };
    let quick = room(session.options.crash_points_max, silent.len());
    let room = session.options.profile.pick(quick, usize::MAX);
    let at = choose(&seen, baseline.answered, room).into_iter();
    at.map(|exchange| Crash::at(exchange, exchange.process()))
        .chain(silent)
        .chain([answered])
        .collect()
}

/// How many boundaries of the wire are tried: what remains beside the silent ones and the answer, but at least one.
fn room(crash_points: usize, silent: usize) -> usize {
    crash_points.saturating_sub(silent + 1).max(1)
}

/// A process that speaks through no proxy dies while another one waits for an answer.
fn silent(session: &Session<'_>, seen: &[&Exchange]) -> Vec<Crash> {
    let mut exchanges = session.baseline.exchanges.iter().rev();
    let Some(waiting) = exchanges.find(|exchange| !exchange.is_request()) else {
        return Vec::new();
    };
    let speaks = |at: usize| seen.iter().any(|exchange| exchange.process() == at);
    let victims = session.world.attackable().into_iter();
    let silent = victims.filter(|at| !speaks(*at));
    silent.map(|victim| Crash::at(waiting, victim)).collect()
}

/// Where a write was settled and the process does not know it yet; then where it is about to be; then the rest.
fn choose<'a>(seen: &[&'a Exchange], answered: Duration, room: usize) -> Vec<&'a Exchange> {
    let mut ranked: Vec<&Exchange> = seen.to_vec();
    ranked.sort_by_key(|exchange| (rank(exchange, answered), exchange.number));
    ranked.truncate(room);
    ranked.sort_by_key(|exchange| exchange.number);
    ranked
}

fn rank(exchange: &Exchange, answered: Duration) -> u8 {
    let after = exchange.at > answered && answered > Duration::ZERO;
    match (exchange.message.kind, exchange.is_request()) {
        (MessageKind::Commit | MessageKind::Write, true) if after => 0,
        (MessageKind::Commit, false) => 1,
        (MessageKind::Commit, true) => 2,
        (MessageKind::Write, _) => 3,
        (MessageKind::Read | MessageKind::Housekeeping, _) => 4,
    }
}

// === impl Crash ===

impl Crash {
    fn at(exchange: &Exchange, victim: usize) -> Self {
        let at = Some(exchange.clone());
        Self { at, victim }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::exchange::tests::check_then_insert;

    fn numbers(room: usize, answered: Duration) -> Vec<u32> {
        let exchanges = check_then_insert();
        let seen: Vec<&Exchange> = exchanges.iter().collect();
        let chosen = choose(&seen, answered, room);
        chosen.iter().map(|exchange| exchange.number).collect()
    }

    #[test]
    fn settled_writes_are_the_first_choice_in_their_order() {
        let late = Duration::from_secs(1);
        assert_eq!(numbers(2, late), [4, 6]);
        assert_eq!(numbers(usize::MAX, late), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn at_least_one_boundary_is_tried() {
        assert_eq!(room(5, 0), 4);
        assert_eq!(room(5, 2), 2);
        assert_eq!(room(1, 0), 1);
        assert_eq!(room(2, 3), 1);
    }

    #[test]
    fn writes_after_the_answer_come_before_all_others() {
        assert_eq!(numbers(1, Duration::from_millis(4)), [5]);
    }
}
