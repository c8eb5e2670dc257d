//! The crash-point sweep: one baseline run shows every boundary, and each of them is one place to die.

use crate::attacks::baseline::Baseline;
use crate::attacks::session::{Begun, Session, ended};
use crate::attacks::{Tally, no_process};
use crate::error::Error;
use crate::options::Profile;
use crate::world::exchange::Exchange;
use crate::world::protocol::MessageKind;
use crate::world::sender::AttemptResult;
use std::time::Duration;

/// Places to keep a run waiting, in the quick profile.
const WAITS_QUICK: usize = 2;
const WAITS_FULL: usize = 12;

/// Where a process dies.
#[derive(Clone, Debug)]
struct Crash {
    when: When,
    victim: usize,
}

#[derive(Clone, Debug)]
enum When {
    /// Before these bytes are handed on.
    At(Box<Exchange>),
    /// When its answer has just reached the sender.
    Answered,
}

/// Kills a process at each boundary, starts it again, and lets the sender go on.
pub(crate) async fn make(session: &mut Session<'_>) -> Result<Tally, Error> {
    if let Some(why) = no_process(session) {
        return Ok(Tally::not_run(why));
    }
    if session.world.endpoints.is_empty() {
        return Ok(Tally::not_run(
            "no [[dependency]]: nothing passes through a proxy, so no boundary is seen",
        ));
    }
    let mut tally = Tally::default();
    let mut boundaries = 0;
    for crash in crashes(session) {
        if one(session, &mut tally, &crash, &mut boundaries).await? {
            break;
        }
    }
    // To die after the answer alone is no sweep.
    if boundaries == 0 {
        tally.hits = 0;
        tally.why = Some(if session.baseline.exchanges.is_empty() {
            "no boundary was seen: the handler did not speak to any [[dependency]] through its proxy"
                .to_owned()
        } else {
            "no boundary of the undisturbed run was met again".to_owned()
        });
    }
    Ok(tally)
}

/// Whether the attack is over.
async fn one(
    session: &mut Session<'_>,
    tally: &mut Tally,
    crash: &Crash,
    boundaries: &mut u32,
) -> Result<bool, Error> {
    let begun = match &crash.when {
        When::At(exchange) => session.begin_held(exchange).await?,
        When::Answered => answered(session).await?,
    };
    let Begun {
        delivery,
        first,
        held,
    } = begun;
    *boundaries += u32::from(held.is_some());
    let hit = held.is_some() || matches!(crash.when, When::Answered);
    tracing::debug!(?held, ?crash.victim, hit, "crash");
    if hit {
        session.world.kill(crash.victim);
    }
    let known: Vec<AttemptResult> = first.await.into_iter().collect();
    session.until_settled(&delivery, &known).await?;
    let finding = session.finish(&[&delivery]).await?;
    Ok(tally.add(finding, hit))
}

/// A trial whose answer has just reached the sender.
async fn answered(session: &mut Session<'_>) -> Result<Begun, Error> {
    let delivery = session.begin().await?;
    let first = session.sender.spawn(&delivery, session.target());
    ended(&first).await;
    Ok(Begun {
        delivery,
        first,
        held: None,
    })
}

/// The crashes to try: all of them, or the most telling ones, in the order in which they come.
fn crashes(session: &Session<'_>) -> Vec<Crash> {
    let world = &session.world;
    let baseline = &session.baseline;
    let exchanges = baseline.exchanges.iter();
    let seen: Vec<&Exchange> = exchanges
        .filter(|exchange| world.may_attack(exchange.boundary.signature.process))
        .collect();
    let silent = silent(session, &seen);
    let answered = Crash {
        when: When::Answered,
        victim: seen.last().map_or(world.receiver, |exchange| {
            exchange.boundary.signature.process
        }),
    };
    let room = match session.profile {
        Profile::Quick => room(session.crash_points_max, silent.len()),
        Profile::Full => usize::MAX,
    };
    let at = choose(&seen, baseline.answered, room)
        .into_iter()
        .map(|exchange| Crash {
            when: When::At(Box::new(exchange.clone())),
            victim: exchange.boundary.signature.process,
        });
    at.chain(silent).chain([answered]).collect()
}

/// How many boundaries of the wire are tried: what remains beside the silent ones and the answer, but at least one.
fn room(crash_points: usize, silent: usize) -> usize {
    crash_points.saturating_sub(silent + 1).max(1)
}

/// A process that speaks through no proxy dies while another one waits for an answer.
fn silent(session: &Session<'_>, seen: &[&Exchange]) -> Vec<Crash> {
    let speaks = |at: &usize| {
        seen.iter()
            .any(|exchange| exchange.boundary.signature.process == *at)
    };
    let waiting = session
        .baseline
        .exchanges
        .iter()
        .rev()
        .find(|exchange| !exchange.boundary.signature.outward);
    let silent = session
        .world
        .attackable()
        .into_iter()
        .filter(|at| !speaks(at));
    let crash = |victim| {
        waiting.map(|exchange| Crash {
            when: When::At(Box::new(exchange.clone())),
            victim,
        })
    };
    silent.filter_map(crash).collect()
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
    match (exchange.message.kind, exchange.boundary.signature.outward) {
        (MessageKind::Commit | MessageKind::Write, true) if after => 0,
        (MessageKind::Commit, false) => 1,
        (MessageKind::Commit, true) => 2,
        (MessageKind::Write, _) => 3,
        (MessageKind::Read | MessageKind::Housekeeping, _) => 4,
    }
}

/// Where to keep a run waiting for an answer: before it writes first, before it settles last, and, if there is time,
/// everywhere.
pub(crate) fn waits(baseline: &Baseline, profile: Profile) -> Vec<Exchange> {
    let exchanges = &baseline.exchanges;
    let before = |at: usize| {
        exchanges
            .iter()
            .take(at)
            .rev()
            .find(|exchange| !exchange.boundary.signature.outward)
    };
    let writes = |exchange: &Exchange| {
        exchange.boundary.signature.outward && exchange.message.kind >= MessageKind::Write
    };
    let first = exchanges.iter().position(writes).and_then(before);
    let last = exchanges.iter().rposition(writes).and_then(before);
    let inward: Vec<&Exchange> = exchanges
        .iter()
        .filter(|exchange| !exchange.boundary.signature.outward)
        .collect();
    let chosen = [first, last, inward.first().copied(), inward.last().copied()];
    let room = match profile {
        Profile::Quick => WAITS_QUICK,
        Profile::Full => WAITS_FULL,
    };
    let mut waits: Vec<Exchange> = Vec::new();
    for exchange in chosen.into_iter().flatten().chain(inward) {
        if waits.len() < room && !waits.iter().any(|one| one.boundary == exchange.boundary) {
            waits.push(exchange.clone());
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::exchange::{Boundary, Signature};
    use crate::world::protocol::Message;

    fn exchange(boundary: u32, outward: bool, text: &str, kind: MessageKind) -> Exchange {
        Exchange {
            number: boundary,
            boundary: Boundary {
                signature: Signature {
                    process: 0,
                    dependency: 0,
                    outward,
                    shape: text.to_owned(),
                },
                nth: 1,
            },
            connection: 0,
            lane: String::new(),
            message: Message::new(text, kind),
            at: Duration::from_millis(boundary.into()),
            bytes: Vec::new(),
            forwarded: true,
            late: false,
        }
    }

    fn check_then_insert() -> Vec<Exchange> {
        vec![
            exchange(1, true, "SELECT", MessageKind::Read),
            exchange(2, false, "SELECT 0", MessageKind::Read),
            exchange(3, true, "INSERT", MessageKind::Write),
            exchange(4, false, "INSERT 0 1", MessageKind::Commit),
            exchange(5, true, "UPDATE", MessageKind::Write),
            exchange(6, false, "UPDATE 1", MessageKind::Commit),
        ]
    }

    fn boundaries(chosen: &[&Exchange]) -> Vec<u32> {
        chosen.iter().map(|exchange| exchange.number).collect()
    }

    #[test]
    fn settled_writes_are_the_first_choice_in_their_order() {
        let exchanges = check_then_insert();
        let seen: Vec<&Exchange> = exchanges.iter().collect();
        let late = Duration::from_secs(1);
        assert_eq!(boundaries(&choose(&seen, late, 2)), [4, 6]);
        assert_eq!(
            boundaries(&choose(&seen, late, usize::MAX)),
            [1, 2, 3, 4, 5, 6]
        );
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
        let exchanges = check_then_insert();
        let seen: Vec<&Exchange> = exchanges.iter().collect();
        assert_eq!(boundaries(&choose(&seen, Duration::from_millis(4), 1)), [5]);
    }

    #[test]
    fn run_is_kept_waiting_before_it_writes() {
        let baseline = Baseline {
            exchanges: check_then_insert(),
            ..Baseline::default()
        };
        let shapes: Vec<String> = waits(&baseline, Profile::Quick)
            .into_iter()
            .map(|exchange| exchange.boundary.signature.shape)
            .collect();
        assert_eq!(shapes, ["SELECT 0", "INSERT 0 1"]);
    }
}
