//! Random operations, answer by answer against [`decide`](fn@crate::record::decide).
//!
//! Many cases go side by side, each on keys of its own, in step with the passing of time, which is
//! the same for all of them. A case that parts from the oracle is run again alone and shrunk.

mod plan;
mod oracle;
mod same;
mod case;
mod fill;
mod shrink;

use super::Subject;
use case::{Case, Parted};
use plan::{Act, Acts, Draw, Spans};
use std::fmt;
use tokio::task::JoinSet;

/// How many cases go side by side.
const SIDE_BY_SIDE: u32 = 16;

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
    for round in 0..cases.div_ceil(SIDE_BY_SIDE) {
        let first = round * SIDE_BY_SIDE;
        let width = (cases - first).min(SIDE_BY_SIDE) as usize;
        let draw = plan::draw(seed, round, width, ops);
        if let Err((number, parted)) = side_by_side(subject, &draw).await {
            return Err(Difference {
                seed,
                case: first + u32::try_from(number).expect("a small number"),
                story: shrink::shrink(subject, draw, number, parted).await,
            });
        }
    }
    Ok(())
}

/// Runs all cases of a draw, and tells the first that parted.
async fn side_by_side(subject: &dyn Subject, draw: &Draw) -> Result<(), (usize, Parted)> {
    let script = |acts: &Vec<Acts>| acts.iter().map(|act| act.current()).collect::<Vec<_>>();
    let case = |acts| (Case::new(subject), script(acts).into_iter());
    let mut cases: Vec<_> = draw.cases.iter().map(case).enumerate().collect();
    for pass in draw.passes.iter().copied() {
        advance(subject, pass).await;
        let mut acting = JoinSet::new();
        for (number, (mut case, mut acts)) in cases.drain(..) {
            acting.spawn(async move {
                match act_one(&mut case, pass, acts.next().as_ref()).await {
                    Ok(()) => Ok((number, (case, acts))),
                    Err(parted) => Err((number, parted)),
                }
            });
        }
        while let Some(acted) = acting.join_next().await {
            cases.push(acted.expect("a case neither panics nor is aborted")?);
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
    let mut case = Case::new(subject);
    for (pass, act) in passes.iter().zip(acts) {
        advance(subject, *pass).await;
        act_one(&mut case, *pass, act.as_ref()).await?;
    }
    Ok(())
}

async fn advance(subject: &dyn Subject, pass: Spans) {
    let by = pass.and_beyond();
    if !by.is_zero() {
        subject.advance(by).await;
    }
}

async fn act_one(case: &mut Case, pass: Spans, act: Option<&Act>) -> Result<(), Parted> {
    case.pass(pass);
    match act {
        Some(act) => case.act(act).await,
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
