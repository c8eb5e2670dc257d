//! A process is killed at moments that are spread over its work.

use super::trial::exactly;
use super::{Error, Session, Trial};
use crate::report::Coverage;
use crate::world::sender::AttemptResult;
use std::ops::Range;
use std::time::Duration;

/// How many kills must hit, and how many are tried at most.
const QUICK: (u32, u32) = (1, 6);
/// Where nothing is seen on the wire, these kills are the only ones.
const QUICK_BLIND: (u32, u32) = (10, 20);
const FULL: (u32, u32) = (12, 24);
const FULL_BLIND: (u32, u32) = (40, 80);
/// What is left of the time after a kill that came too late, and what becomes of it after one that hit: the baseline run
/// may have been slower or faster than the runs that are killed.
const EARLIER: f64 = 0.75;
const LATER: f64 = 1.25;
/// Early and late parts take turns: it is prime to all numbers of parts.
const PART_STEP: u32 = 7;

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let (quick, full) = if session.baseline.exchanges.is_empty() {
        (QUICK_BLIND, FULL_BLIND)
    } else {
        (QUICK, FULL)
    };
    let (hits, trials) = session.options.profile.pick(quick, full);
    let goes_on = |session: &Session<'_>| {
        let tally = &session.round.tally;
        tally.hits < hits && tally.trials < trials
    };
    while goes_on(session) && !one(session, hits).await? {}
    let tally = &mut session.round.tally;
    tally.coverage = Some(Coverage {
        tried: tally.hits,
        of: tally.trials,
        what: "kills at drawn times hit",
    });
    session.unless_hit("the handler was always done before it was killed");
    Ok(())
}

/// Each hit has its own part of the run, and a random moment in it.
async fn one(session: &mut Session<'_>, parts: u32) -> Result<bool, Error> {
    let tally = &session.round.tally;
    let (hits, misses) = (tally.hits, tally.trials - tally.hits);
    let trial = Trial::begin(session).await?;
    let victims = trial.session.world.attackable();
    let victim = trial.session.random_index(victims.len());
    let victim = victims.get(victim).copied().unwrap_or_default();
    let baseline = &trial.session.baseline;
    let (answered, ended) = (baseline.answered, baseline.ended);
    let part = part_of(ended, parts, hits, misses);
    let moment = part.start + trial.session.random(part.end - part.start);
    let first = trial.spawn(trial.target());
    exactly(moment).await;
    let hit = !first.is_finished() || ended > answered;
    trial.session.world.kill(victim);
    // A sender that is not connected to it waits for the one that is started in its place.
    trial.session.world.restart_ended().await?;
    let results: Vec<AttemptResult> = first.await.into_iter().collect();
    trial.conclude(&results, hit).await
}

/// The part of the run that the next kill falls into, by how long the work took undisturbed.
fn part_of(ended: Duration, parts: u32, hits: u32, misses: u32) -> Range<Duration> {
    let stretched = ended.mul_f64(LATER.powf(hits.into()) * EARLIER.powf(misses.into()));
    let part = stretched / parts;
    let start = part * (hits * PART_STEP % parts);
    start..start + part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the kills hit work that takes so long, and how many of these its second half.
    fn kills(baseline: Duration, real: Duration) -> (u32, u32) {
        let (parts, trials) = QUICK_BLIND;
        let (mut hits, mut late) = (0, 0);
        for trial in 0..trials {
            let part = part_of(baseline, parts, hits, trial - hits);
            let moment = part.start + (part.end - part.start) / 2;
            late += u32::from(real / 2 < moment && moment < real);
            hits += u32::from(moment < real);
            if hits == parts {
                break;
            }
        }
        (hits, late)
    }

    #[test]
    fn kills_reach_the_end_of_work_that_is_slower_or_faster_than_the_baseline() {
        let real = Duration::from_millis(60);
        for baseline in [20, 30, 60, 120, 180].map(Duration::from_millis) {
            let (hits, late) = kills(baseline, real);
            assert!(
                hits >= 8 && late >= 2,
                "{baseline:?}: {hits} hit, {late} late"
            );
        }
    }
}
