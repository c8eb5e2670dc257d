//! The crash-point sweep: the baseline shows every boundary, and each of them is one place to die.

use super::trial::StartedTrial;
use super::{Error, Session, Trial};
use crate::report::Coverage;
use crate::world::exchange::Exchange;
use crate::world::protocol::MessageKind;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Where a process dies.
#[derive(Clone, Debug)]
struct Crash {
    /// Before these bytes are handed on.
    at: Exchange,
    victim: usize,
}

/// Kills a process at each boundary, starts it again, and lets the sender go on.
pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    for crash in crashes(session) {
        if one(session, &crash).await? {
            break;
        }
    }
    let of = session.baseline.exchanges.iter();
    let of = of
        .filter(|it| session.world.may_attack(it.process()))
        .count();
    let tally = &mut session.round.tally;
    tally.coverage = Some(Coverage {
        tried: tally.hits,
        of: u32::try_from(of).unwrap_or(u32::MAX),
        what: "boundaries",
    });
    session.unless_hit(if session.baseline.exchanges.is_empty() {
        "no boundary was seen: the handler did not speak to any [[dependency]] through its proxy"
    } else {
        "no boundary of the undisturbed run was met again"
    });
    Ok(())
}

/// Whether the attack is over.
async fn one(session: &mut Session<'_>, Crash { at, victim }: &Crash) -> Result<bool, Error> {
    let StartedTrial { trial, first, held } = Trial::begin_held(session, at).await?;
    let hit = held.is_some();
    tracing::debug!(?held, victim, "crash");
    if hit {
        trial.session.world.kill(*victim);
    }
    let results: Vec<_> = first.await.into_iter().collect();
    trial.conclude(&results, hit).await
}

/// The crashes to try: all of them, or the most telling ones, in the order in which they come.
fn crashes(session: &Session<'_>) -> Vec<Crash> {
    let (world, baseline) = (&session.world, &session.baseline);
    let exchanges = baseline.exchanges.iter();
    let seen = exchanges.filter(|exchange| world.may_attack(exchange.process()));
    let seen: Vec<&Exchange> = seen.collect();
    let silent = silent(session, &seen);
    let quick = room(session.options.crash_points_max, silent.len());
    let room = session.options.profile.pick(quick, usize::MAX);
    let rank = |exchange: &Exchange| rank(exchange, world.is_call(exchange), baseline.answered);
    let at = choose(&seen, rank, room).into_iter();
    at.map(|exchange| Crash::at(exchange, exchange.process()))
        .chain(silent)
        .collect()
}

/// How many boundaries of the wire are tried: what remains beside the silent ones, but at least one.
fn room(crash_points: usize, silent: usize) -> usize {
    crash_points.saturating_sub(silent).max(1)
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

/// The most telling ones. Where there is no room for all of a kind, they are spread over the run.
fn choose<'a>(
    seen: &[&'a Exchange],
    rank: impl Fn(&Exchange) -> u8,
    room: usize,
) -> Vec<&'a Exchange> {
    let mut kinds: BTreeMap<u8, Vec<&Exchange>> = BTreeMap::new();
    for exchange in seen {
        let kind = kinds.entry(rank(exchange)).or_default();
        kind.push(exchange);
    }
    let mut chosen = Vec::new();
    for kind in kinds.into_values() {
        let left = room.saturating_sub(chosen.len());
        chosen.extend(spread(kind, left));
    }
    chosen.sort_by_key(|exchange| exchange.number);
    chosen
}

/// So many of them, from the first to the last.
pub(super) fn spread<T>(all: Vec<T>, room: usize) -> Vec<T> {
    let last = all.len().saturating_sub(1);
    let gaps = room.min(all.len()).saturating_sub(1).max(1);
    let places: BTreeSet<usize> = (0..room.min(all.len()))
        .map(|at| at * last / gaps)
        .collect();
    let placed = all.into_iter().enumerate();
    let kept = placed.filter(|(at, _)| places.contains(at));
    kept.map(|(_, one)| one).collect()
}

/// Where a write was settled and the process does not know it yet, calls of other services first; then where it is about
/// to be; then the rest.
fn rank(exchange: &Exchange, is_call: bool, answered: Duration) -> u8 {
    let after = exchange.at > answered && answered > Duration::ZERO;
    match (exchange.message.kind, exchange.is_request()) {
        (MessageKind::Commit | MessageKind::Write, true) if after => 0,
        (MessageKind::Commit, false) if is_call => 1,
        (MessageKind::Commit, false) => 2,
        (MessageKind::Commit, true) => 3,
        (MessageKind::Write, _) => 4,
        (MessageKind::Read | MessageKind::Housekeeping, _) => 5,
    }
}

// === impl Crash ===

impl Crash {
    fn at(exchange: &Exchange, victim: usize) -> Self {
        let at = exchange.clone();
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
        let rank = |exchange: &Exchange| rank(exchange, false, answered);
        let chosen = choose(&seen, rank, room);
        chosen.iter().map(|exchange| exchange.number).collect()
    }

    #[test]
    fn settled_writes_are_the_first_choice_in_their_order() {
        let late = Duration::from_secs(1);
        assert_eq!(numbers(2, late), [4, 6]);
        assert_eq!(numbers(usize::MAX, late), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_is_too_much_is_spread_from_the_first_to_the_last() {
        let spread = |all: usize, room| super::spread((1..=all).collect(), room);
        assert_eq!(spread(9, 3), [1, 5, 9]);
        assert_eq!(spread(13, 4), [1, 5, 9, 13]);
        assert_eq!(spread(3, 5), [1, 2, 3]);
        assert_eq!(spread(9, 1), [1]);
        assert_eq!(spread(9, 0), Vec::<usize>::new());
    }

    #[test]
    fn at_least_one_boundary_is_tried() {
        assert_eq!(room(5, 0), 5);
        assert_eq!(room(5, 2), 3);
        assert_eq!(room(2, 3), 1);
    }

    #[test]
    fn writes_after_the_answer_come_before_all_others() {
        assert_eq!(numbers(1, Duration::from_millis(4)), [5]);
    }
}
