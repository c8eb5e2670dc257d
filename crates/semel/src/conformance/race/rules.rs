//! Whether what was told of a key can all be true. The order of what happened within a round is
//! not known, so each rule accuses only what no order explains.

use super::history::{OperatorAct, Told, What, Word, applied};
use super::storm::ACTS_FOR;
use crate::conformance::answer::{Judged, that};
use crate::conformance::stage::{LEASE, RETENTION};
use crate::record::{Claimed, Ending, Fence, Held, InDoubt, Lease, State, StepBegun};
use std::ops::Bound;

impl Told<'_> {
    pub(super) fn judge(&self, policy: InDoubt) -> Judged {
        self.one_live_lease(policy)?;
        self.fences_rise()?;
        self.stale_runs_change_nothing()?;
        self.only_stale_runs_are_told_so()?;
        self.ends_absorb()?;
        self.replays_are_what_was_accepted()?;
        self.payloads_are_kept_apart()?;
        self.retention_never_falls()?;
        self.parked_work_waits_for_a_word()?;
        self.steps_are_done_once()
    }

    /// I1, and I8 under park: a later grant needs a lapse, a word of the earlier run, or an act.
    fn one_live_lease(&self, policy: InDoubt) -> Judged {
        for (old, new) in self.successions() {
            let renewed = self.said().filter(|(round, lease, word, held)| {
                *round <= new.round
                    && **lease == old.lease
                    && matches!((word, held), (Word::Renew, Held::Applied(_)))
            });
            let last = renewed.map(|(round, ..)| round).max();
            let lapsed = self.passed(last.unwrap_or(old.round), new.round) >= LEASE;
            let same_incarnation = old.lease.born == new.lease.born;
            let may_lapse = policy != InDoubt::Park || !same_incarnation;
            let ended = self.gave_up(&old.lease, new.round) || self.acted(old.round, new.round);
            let so = (lapsed && may_lapse) || ended;
            let expected = "I1: no grant over a live lease, nor over doubt";
            that(so, expected, (old, new))?;
            let so = same_incarnation
                || self.forgotten(old.round, new.round)
                || self.passed(old.round, new.round) >= RETENTION;
            let expected = "I7: no new incarnation before retention ends";
            that(so, expected, (old, new))?;
            if same_incarnation && !ended {
                let acts_no_more = self.passed(old.round, new.round) >= ACTS_FOR;
                let so = new.lease.in_doubt && (policy != InDoubt::Probe || acts_no_more);
                let expected = "who follows a run in doubt is told so, once that acts no more";
                that(so, expected, (old, new))?;
            }
        }
        Ok(())
    }

    /// I2: fences rise with the rounds, and incarnations follow each other.
    fn fences_rise(&self) -> Judged {
        for grant in self.grants.values() {
            let born = self.grants.contains_key(&grant.lease.born);
            that(born, "I2: every incarnation begins with a grant", grant)?;
        }
        for (old, new) in self.successions() {
            let so = old.round <= new.round;
            that(so, "I2: a later grant has the higher fence", (old, new))?;
            let so = [old.lease.born, new.lease.fence].contains(&new.lease.born);
            let expected = "I2: born is the last one's or the fence itself";
            that(so, expected, (old, new))?;
        }
        Ok(())
    }

    /// I3: nothing is applied after a later grant or an act.
    fn stale_runs_change_nothing(&self) -> Judged {
        let applied = self.events.iter().filter_map(|event| match &event.what {
            What::Said { lease, held, .. } | What::Done { lease, held, .. } => {
                matches!(held, Held::Applied(_)).then_some((event, lease))
            }
            What::Begun { lease, begun, .. } => {
                (*begun == StepBegun::Run).then_some((event, lease))
            }
            What::Claimed(..) | What::Acted(..) | What::Looked(_) => None,
        });
        for (event, lease) in applied {
            let Some(grant) = self.grant(lease) else {
                return that(false, "I3: nothing applied of a lease never granted", event);
            };
            let mut later = self.grants.range(above(lease));
            let so = later.all(|(_, grant)| grant.round >= event.round);
            that(so, "I3: nothing applied after a later grant", event)?;
            let acted = event.round > 0 && self.acted(grant.round + 1, event.round - 1);
            that(!acted, "I3: nothing applied after an operator's act", event)?;
        }
        Ok(())
    }

    /// I3: `stale` is only said to a run that is one.
    fn only_stale_runs_are_told_so(&self) -> Judged {
        let stale = self.events.iter().filter_map(|event| match &event.what {
            What::Said { lease, held, .. } => (*held == Held::Stale).then_some((event, lease)),
            What::Begun { lease, begun, .. } => {
                (*begun == StepBegun::Stale).then_some((event, lease))
            }
            What::Done { .. } | What::Claimed(..) | What::Acted(..) | What::Looked(_) => None,
        });
        for (event, lease) in stale {
            let Some(grant) = self.grant(lease) else {
                continue;
            };
            let mut later = self.grants.range(above(lease));
            let so = later.any(|(_, grant)| grant.round <= event.round)
                || self.acted(grant.round, event.round)
                || self.gave_up(lease, event.round)
                || self.passed(grant.round, event.round) >= RETENTION;
            that(so, "I3: Stale is told to stale runs only", (grant, event))?;
        }
        Ok(())
    }

    /// I4: one success per incarnation; nothing runs after it, nor after a failure but by an act.
    fn ends_absorb(&self) -> Judged {
        let mut succeeded: Vec<Fence> = Vec::new();
        for (round, lease, _, held) in self.said() {
            let Some(ending) = applied(held).and_then(State::ending) else {
                continue;
            };
            if ending == Ending::Succeeded {
                let first = !succeeded.contains(&lease.born);
                that(first, "I4: one success per incarnation", lease)?;
                succeeded.push(lease.born);
            }
            for grant in self.grants.values().filter(|grant| grant.round > round) {
                let so = grant.lease.born != lease.born
                    || (ending == Ending::Failed && self.acted(round, grant.round));
                that(so, "I4: nothing runs after the end", (round, lease, grant))?;
            }
        }
        for (round, act) in self.acts() {
            let absorbs = matches!(act, OperatorAct::End(Ending::Succeeded, _));
            for grant in self
                .grants
                .values()
                .filter(|grant| absorbs && grant.round > round)
            {
                let born = self.grants.get(&grant.lease.born);
                let so = born.is_some_and(|born| born.round >= round);
                let expected = "I4: nothing runs after a resolution";
                that(so, expected, (round, act, grant))?;
            }
        }
        Ok(())
    }

    /// I8: what was parked is granted again only after an act or the run's own late word.
    fn parked_work_waits_for_a_word(&self) -> Judged {
        let told = self
            .claimed()
            .filter(|(_, _, claimed)| **claimed == Claimed::Parked);
        let said = self
            .said()
            .filter(|(_, _, _, held)| applied(held) == Some(State::Parked));
        let parked = told
            .map(|(round, ..)| round)
            .chain(said.map(|(round, ..)| round));
        for round in parked {
            for grant in self.grants.values().filter(|grant| grant.round > round) {
                let mut said = self
                    .said()
                    .filter(|(r, ..)| round <= *r && *r <= grant.round);
                let so = self.acted(round, grant.round)
                    || said.any(|(_, _, _, held)| applied(held).is_some());
                let expected = "I8: parked work is not run again by itself";
                that(so, expected, (round, grant))?;
            }
        }
        Ok(())
    }
}

/// Every fence above the one of this lease.
const fn above(lease: &Lease) -> (Bound<Fence>, Bound<Fence>) {
    (Bound::Excluded(lease.fence), Bound::Unbounded)
}
