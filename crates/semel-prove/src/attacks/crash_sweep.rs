//! The crash-point sweep: one clean run shows every boundary, and each of them is one place to die.

use crate::attacks::baseline::Clean;
use crate::attacks::session::{Begun, Field, ended};
use crate::attacks::{Tally, no_process};
use crate::error::Error;
use crate::options::Profile;
use crate::world::exchange::Turn;
use crate::world::protocol::Sense;
use crate::world::sender::{Fate, Known};
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
    At(Box<Turn>),
    /// When its answer has just reached the sender.
    Answered,
}

/// Kills a process at each boundary, starts it again, and lets the sender go on.
pub(crate) async fn make(field: &mut Field<'_>) -> Result<Tally, Error> {
    if let Some(why) = no_process(field) {
        return Ok(Tally::not_run(why));
    }
    if field.world.places().is_empty() {
        return Ok(Tally::not_run(
            "no [[dependency]]: nothing passes through a tap, so no boundary is seen",
        ));
    }
    let mut tally = Tally::default();
    let mut boundaries = 0;
    for crash in crashes(field) {
        if one(field, &mut tally, &crash, &mut boundaries).await? {
            break;
        }
    }
    // To die after the answer alone is no sweep.
    if boundaries == 0 {
        tally.hits = 0;
        tally.why = Some(if field.clean.turns.is_empty() {
            "no boundary was seen: the handler did not speak to any [[dependency]] through its tap"
                .to_owned()
        } else {
            "no boundary of the undisturbed run was met again".to_owned()
        });
    }
    Ok(tally)
}

/// Whether the attack is over.
async fn one(
    field: &mut Field<'_>,
    tally: &mut Tally,
    crash: &Crash,
    boundaries: &mut u32,
) -> Result<bool, Error> {
    let begun = match &crash.when {
        When::At(turn) => field.begin_held(turn).await?,
        When::Answered => answered(field).await?,
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
        field.world.kill(crash.victim).await?;
    }
    let known: Vec<Known> = first.await.into_iter().collect();
    field.until_settled(&delivery, &known).await?;
    let finding = field.finish(&[&delivery]).await?;
    Ok(tally.add(finding, hit))
}

/// A trial whose answer has just reached the sender.
async fn answered(field: &mut Field<'_>) -> Result<Begun, Error> {
    let delivery = field.begin().await?;
    let first = field.courier.spawn(&delivery, field.target(), Fate::Heard);
    ended(&first).await;
    Ok(Begun {
        delivery,
        first,
        held: None,
    })
}

/// The crashes to try: all of them, or the most telling ones, in the order in which they come.
fn crashes(field: &Field<'_>) -> Vec<Crash> {
    let world = &field.world;
    let clean = &field.clean;
    let turns = clean.turns.iter();
    let seen: Vec<&Turn> = turns
        .filter(|turn| world.may_attack(turn.point.place.process))
        .collect();
    let silent = silent(field, &seen);
    let answered = Crash {
        when: When::Answered,
        victim: seen
            .last()
            .map_or(world.receiver(), |turn| turn.point.place.process),
    };
    let room = match field.profile {
        Profile::Quick => room(field.crash_points_max, silent.len()),
        Profile::Full => usize::MAX,
    };
    let at = choose(&seen, clean.answered, room)
        .into_iter()
        .map(|turn| Crash {
            when: When::At(Box::new(turn.clone())),
            victim: turn.point.place.process,
        });
    at.chain(silent).chain([answered]).collect()
}

/// How many boundaries of the wire are tried: what remains beside the silent ones and the answer, but at least one.
fn room(crash_points: usize, silent: usize) -> usize {
    crash_points.saturating_sub(silent + 1).max(1)
}

/// A process that speaks through no tap dies while another one waits for an answer.
fn silent(field: &Field<'_>, seen: &[&Turn]) -> Vec<Crash> {
    let speaks = |at: &usize| seen.iter().any(|turn| turn.point.place.process == *at);
    let waiting = field
        .clean
        .turns
        .iter()
        .rev()
        .find(|turn| !turn.point.place.outward);
    let silent = field
        .world
        .attackable()
        .into_iter()
        .filter(|at| !speaks(at));
    let crash = |victim| {
        waiting.map(|turn| Crash {
            when: When::At(Box::new(turn.clone())),
            victim,
        })
    };
    silent.filter_map(crash).collect()
}

/// Where a write was settled and the process does not know it yet; then where it is about to be; then the rest.
fn choose<'a>(seen: &[&'a Turn], answered: Duration, room: usize) -> Vec<&'a Turn> {
    let mut ranked: Vec<&Turn> = seen.to_vec();
    ranked.sort_by_key(|turn| (rank(turn, answered), turn.boundary));
    ranked.truncate(room);
    ranked.sort_by_key(|turn| turn.boundary);
    ranked
}

fn rank(turn: &Turn, answered: Duration) -> u8 {
    let after = turn.at > answered && answered > Duration::ZERO;
    match (turn.said.sense, turn.point.place.outward) {
        (Sense::Settles | Sense::Writes, true) if after => 0,
        (Sense::Settles, false) => 1,
        (Sense::Settles, true) => 2,
        (Sense::Writes, _) => 3,
        (Sense::Asks | Sense::Small, _) => 4,
    }
}

/// Where to keep a run waiting for an answer: before it writes first, before it settles last, and, if there is time,
/// everywhere.
pub(crate) fn waits(clean: &Clean, profile: Profile) -> Vec<Turn> {
    let turns = &clean.turns;
    let before = |at: usize| {
        turns
            .iter()
            .take(at)
            .rev()
            .find(|turn| !turn.point.place.outward)
    };
    let writes = |turn: &Turn| turn.point.place.outward && turn.said.sense >= Sense::Writes;
    let first = turns.iter().position(writes).and_then(before);
    let last = turns.iter().rposition(writes).and_then(before);
    let inward: Vec<&Turn> = turns
        .iter()
        .filter(|turn| !turn.point.place.outward)
        .collect();
    let chosen = [first, last, inward.first().copied(), inward.last().copied()];
    let room = match profile {
        Profile::Quick => WAITS_QUICK,
        Profile::Full => WAITS_FULL,
    };
    let mut waits: Vec<Turn> = Vec::new();
    for turn in chosen.into_iter().flatten().chain(inward) {
        if waits.len() < room && !waits.iter().any(|one| one.point == turn.point) {
            waits.push(turn.clone());
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::exchange::{Place, Point};
    use crate::world::protocol::Said;

    fn turn(boundary: u32, outward: bool, text: &str, sense: Sense) -> Turn {
        Turn {
            boundary,
            point: Point {
                place: Place {
                    process: 0,
                    dependency: 0,
                    outward,
                    shape: text.to_owned(),
                },
                nth: 1,
            },
            connection: 0,
            lane: String::new(),
            said: Said::new(text, sense),
            at: Duration::from_millis(boundary.into()),
            bytes: Vec::new(),
            forwarded: true,
            late: false,
        }
    }

    fn check_then_insert() -> Vec<Turn> {
        vec![
            turn(1, true, "SELECT", Sense::Asks),
            turn(2, false, "SELECT 0", Sense::Asks),
            turn(3, true, "INSERT", Sense::Writes),
            turn(4, false, "INSERT 0 1", Sense::Settles),
            turn(5, true, "UPDATE", Sense::Writes),
            turn(6, false, "UPDATE 1", Sense::Settles),
        ]
    }

    fn boundaries(chosen: &[&Turn]) -> Vec<u32> {
        chosen.iter().map(|turn| turn.boundary).collect()
    }

    #[test]
    fn settled_writes_are_the_first_choice_in_their_order() {
        let turns = check_then_insert();
        let seen: Vec<&Turn> = turns.iter().collect();
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
        let turns = check_then_insert();
        let seen: Vec<&Turn> = turns.iter().collect();
        assert_eq!(boundaries(&choose(&seen, Duration::from_millis(4), 1)), [5]);
    }

    #[test]
    fn run_is_kept_waiting_before_it_writes() {
        let clean = Clean {
            turns: check_then_insert(),
            ..Clean::default()
        };
        let shapes: Vec<String> = waits(&clean, Profile::Quick)
            .into_iter()
            .map(|turn| turn.point.place.shape)
            .collect();
        assert_eq!(shapes, ["SELECT 0", "INSERT 0 1"]);
    }
}
