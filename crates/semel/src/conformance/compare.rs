//! Random operations, answer by answer against [`decide`](fn@crate::record::decide).
//!
//! Many cases go side by side, each on keys of its own, in step with the passing of time, which is
//! the same for all of them. A case that parts from the oracle is run again alone and shrunk.

mod plan;
mod oracle;
mod same;
mod lane;
mod fill;
mod shrink;

use super::Subject;
use lane::{Lane, Parted};
use plan::{Act, Acts, Draw, Spans};
use std::fmt;
use tokio::task::JoinSet;

/// How many cases go side by side.
const LANES: usize = 16;

/// Where a store and the oracle parted.
#[derive(Clone, PartialEq, Eq)]
pub struct Difference {
    /// The seed that leads here again.
    pub seed: u64,
    /// The number of the case.
    pub case: u32,
    /// The shortest sequence found: each act and its answer, and the one that differed.
    pub story: String,
}

/// Runs `cases` random sequences of `ops` operations on the store and on the oracle, and compares
/// answer by answer and record by record. Equal seeds try equal sequences.
///
/// # Errors
/// The first difference, as short as it could be made.
pub async fn compare(
    subject: &dyn Subject,
    cases: u32,
    ops: usize,
    seed: u64,
) -> Result<(), Difference> {
    let lanes = u32::try_from(LANES).expect("a small number");
    for round in 0..cases.div_ceil(lanes) {
        let first = round * lanes;
        let width = (cases - first).min(lanes) as usize;
        let draw = plan::draw(seed, round, width, ops);
        if let Err((lane, parted)) = side_by_side(subject, &draw).await {
            return Err(Difference {
                seed,
                case: first + u32::try_from(lane).expect("a small number"),
                story: shrink::shrink(subject, draw, lane, parted).await,
            });
        }
    }
    Ok(())
}

/// Runs all lanes of a draw, and tells the first that parted.
async fn side_by_side(subject: &dyn Subject, draw: &Draw) -> Result<(), (usize, Parted)> {
    let script = |lane: &Vec<Acts>| lane.iter().map(|act| act.current()).collect::<Vec<_>>();
    let lane = |acts| (Lane::new(subject.store()), script(acts).into_iter());
    let mut lanes: Vec<_> = draw.lanes.iter().map(lane).enumerate().collect();
    for pass in draw.passes.iter().copied() {
        advance(subject, pass).await;
        let mut acting = JoinSet::new();
        for (number, (mut lane, mut acts)) in lanes.drain(..) {
            acting.spawn(async move {
                match act_one(&mut lane, pass, acts.next().as_ref()).await {
                    Ok(()) => Ok((number, (lane, acts))),
                    Err(parted) => Err((number, parted)),
                }
            });
        }
        while let Some(acted) = acting.join_next().await {
            lanes.push(acted.expect("a lane neither panics nor is aborted")?);
        }
    }
    Ok(())
}

/// Runs one case by itself.
async fn alone(
    subject: &dyn Subject,
    passes: &[Spans],
    acts: &[Option<Act>],
) -> Result<(), Parted> {
    let mut lane = Lane::new(subject.store());
    for (pass, act) in passes.iter().zip(acts) {
        advance(subject, *pass).await;
        act_one(&mut lane, *pass, act.as_ref()).await?;
    }
    Ok(())
}

async fn advance(subject: &dyn Subject, pass: Spans) {
    let by = pass.and_beyond();
    if !by.is_zero() {
        subject.advance(by).await;
    }
}

async fn act_one(lane: &mut Lane, pass: Spans, act: Option<&Act>) -> Result<(), Parted> {
    lane.pass(pass);
    match act {
        Some(act) => lane.act(act).await,
        None => Ok(()),
    }
}

// === impl Difference ===

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, case, story } = self;
        write!(
            f,
            "the store and the oracle parted (seed {seed}, case {case}):\n{story}"
        )
    }
}

/// As readable as `Display`, because this is what a failed `unwrap` prints.
impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Difference {}
