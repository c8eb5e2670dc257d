//! Making a case shorter: fewer acts, less passing of time, simpler acts.

use super::case::Parted;
use super::plan::{Act, Acts, Draw, Spans};
use super::{Subject, alone};
use proptest::strategy::ValueTree;

/// How often a case is run again to make it shorter.
const RERUNS_MAX: u32 = 800;

/// A case that parts, as short as it is by now.
struct Shortest<'a> {
    subject: &'a dyn Subject,
    passes: Vec<Spans>,
    acts: Vec<Option<Act>>,
    parted: Parted,
    reruns: u32,
}

/// Makes the case shorter as long as it still parts, and tells the last story.
pub(super) async fn shrink(
    subject: &dyn Subject,
    mut draw: Draw,
    case: usize,
    parted: Parted,
) -> String {
    let mut trees = draw.cases.swap_remove(case);
    let mut shortest = Shortest {
        subject,
        passes: draw.passes,
        acts: trees.iter().map(|tree| Some(tree.current())).collect(),
        parted,
        reruns: RERUNS_MAX,
    };
    if !shortest
        .parts(shortest.passes.clone(), shortest.acts.clone())
        .await
    {
        return format!(
            "{}\n(run alone, it did not part again: the sweep of a case beside it, or a race)",
            shortest.parted.story
        );
    }
    shortest.leave_out_acts().await;
    shortest.leave_out_passes().await;
    shortest.simplify_acts(&mut trees).await;
    shortest.leave_out_acts().await;
    shortest.parted.story
}

// === impl Shortest ===

impl Shortest<'_> {
    /// Whether this case parts; then it is the shortest.
    async fn parts(&mut self, passes: Vec<Spans>, acts: Vec<Option<Act>>) -> bool {
        let Some(reruns) = self.reruns.checked_sub(1) else {
            return false;
        };
        self.reruns = reruns;
        match alone(self.subject, &passes, &acts).await {
            Ok(()) => false,
            Err(parted) => {
                (self.passes, self.acts, self.parted) = (passes, acts, parted);
                true
            }
        }
    }

    async fn leave_out_acts(&mut self) {
        for (from, to) in pieces(self.acts.len()) {
            let mut fewer = self.acts.clone();
            let piece = fewer.get_mut(from..to).unwrap_or_default();
            if piece.iter().any(Option::is_some) {
                piece.fill(None);
                self.parts(self.passes.clone(), fewer).await;
            }
        }
    }

    async fn leave_out_passes(&mut self) {
        for (from, to) in pieces(self.passes.len()) {
            let mut fewer = self.passes.clone();
            let piece = fewer.get_mut(from..to).unwrap_or_default();
            if piece.iter().any(|pass| *pass != Spans::NONE) {
                piece.fill(Spans::NONE);
                self.parts(fewer, self.acts.clone()).await;
            }
        }
    }

    async fn simplify_acts(&mut self, trees: &mut [Acts]) {
        for (at, tree) in trees.iter_mut().enumerate() {
            let left = self.acts.get(at).is_some_and(Option::is_some);
            let mut simpler = left && tree.simplify();
            while simpler && self.reruns > 0 {
                let mut acts = self.acts.clone();
                acts.iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|act| *act = Some(tree.current()));
                simpler = if self.parts(self.passes.clone(), acts).await {
                    tree.simplify()
                } else {
                    tree.complicate()
                };
            }
        }
    }
}

/// Halves, quarters and so on of so many things, down to single ones.
fn pieces(of: usize) -> impl Iterator<Item = (usize, usize)> {
    let sizes = std::iter::successors(Some(of.div_ceil(2)), |size| {
        (*size > 1).then(|| size.div_ceil(2))
    });
    sizes.flat_map(move |size| {
        let starts = (0..of).step_by(size.max(1));
        starts.map(move |from| (from, (from + size).min(of)))
    })
}
