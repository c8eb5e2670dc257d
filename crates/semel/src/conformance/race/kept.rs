//! Whether what a store kept of a key, and told of it, can all be true.

use super::history::{OperatorAct, Told, What, Word, applied};
use crate::conformance::answer::{Judged, that};
use crate::conformance::stage::RETENTION;
use crate::record::{Claimed, Ending, Held, Record, Settled, State, StepBegun};
use bytes::Bytes;

impl Told<'_> {
    /// I5: a replay is what somebody had accepted, and the latest of it.
    pub(super) fn replays_are_what_was_accepted(&self) -> Judged {
        let accepted = self.accepted();
        for (round, _, claimed) in self.claimed() {
            let Claimed::Replayed(Settled { result, .. }) = claimed else {
                continue;
            };
            let known = accepted
                .iter()
                .any(|(r, _, known)| *r <= round && *known == result);
            that(known, "I5: what is replayed was accepted", (round, claimed))?;
            for (r, ending, known) in &accepted {
                let so = *known == result
                    || *r >= round
                    || *ending == Ending::Failed
                    || self.forgotten(*r, round)
                    || self.passed(*r, round) >= RETENTION;
                let expected = "I5: the accepted success is replayed";
                that(so, expected, (r, known, round, claimed))?;
            }
        }
        for (round, lease, _, held) in self.said() {
            let Held::Settled(settled) = held else {
                continue;
            };
            let so = self.said().any(|(_, whose, word, held)| {
                let theirs = matches!(word, Word::End(result) if *result == settled.result);
                theirs && whose == lease && applied(held).is_some()
            });
            that(so, "I5: a run is told its own end", (round, lease, held))?;
        }
        Ok(())
    }

    /// Every result that was accepted: in which round, and as what.
    fn accepted(&self) -> Vec<(usize, Ending, &Bytes)> {
        let said = self.said().filter_map(|(round, _, word, held)| match word {
            Word::End(result) => Some((round, applied(held)?.ending()?, result)),
            Word::Renew | Word::GiveUp => None,
        });
        let acts = self.acts().filter_map(|(round, act)| match act {
            OperatorAct::End(ending, result) => Some((round, *ending, result)),
            OperatorAct::Again | OperatorAct::Forget => None,
        });
        said.chain(acts).collect()
    }

    /// I6: an incarnation has one payload, and only another one is mismatched.
    pub(super) fn payloads_are_kept_apart(&self) -> Judged {
        for (old, new) in self.successions() {
            let so = old.lease.born != new.lease.born || old.fingerprint == new.fingerprint;
            that(so, "I6: one payload per incarnation", (old, new))?;
        }
        for (round, fingerprint, claimed) in self.claimed() {
            let mut others = self.grants.values().filter(|grant| grant.round <= round);
            let so = *claimed != Claimed::Mismatched
                || others.any(|grant| grant.fingerprint != *fingerprint);
            let expected = "I6: Mismatched is told to another payload only";
            that(so, expected, (round, fingerprint))?;
        }
        Ok(())
    }

    /// I7: retention is behind the lease, and does not fall within an incarnation.
    pub(super) fn retention_never_falls(&self) -> Judged {
        for (round, record) in self.looked() {
            let kept = record.expires_at.since(record.lease_until);
            let so = record.state != State::Running || kept >= RETENTION;
            that(so, "I7: retention ends behind the lease", record)?;
            let later = self
                .looked()
                .filter(|(r, later)| *r > round && later.born == record.born);
            for (r, later) in later {
                // A store whose records are aged has lost what passed, and no more.
                let so = later.expires_at.plus(self.passed(round, r)) >= record.expires_at;
                that(so, "I7: retention does not fall", (record, later))?;
            }
        }
        Ok(())
    }

    /// I11: a step is done once in its incarnation, and remembered in it alone.
    pub(super) fn steps_are_done_once(&self) -> Judged {
        let done: Vec<_> = self
            .events
            .iter()
            .filter_map(|event| {
                let What::Done {
                    lease,
                    name,
                    result,
                    held: Held::Applied(_),
                } = &event.what
                else {
                    return None;
                };
                Some((event.round, (lease.born, *name), result))
            })
            .collect();
        for (n, (_, step, _)) in done.iter().enumerate() {
            let again = done.iter().skip(n + 1).any(|(_, other, _)| other == step);
            that(!again, "I11: a step is done once", step)?;
        }
        for event in &self.events {
            let What::Begun { lease, name, begun } = &event.what else {
                continue;
            };
            let mut mine = done
                .iter()
                .filter(|(_, step, _)| *step == (lease.born, *name));
            let so = match begun {
                StepBegun::Run => mine.all(|(round, ..)| *round >= event.round),
                StepBegun::Memo { result, .. } => mine.any(|(_, _, known)| *known == result),
                StepBegun::InDoubt(_)
                | StepBegun::Settled(_)
                | StepBegun::Parked
                | StepBegun::Stale => true,
            };
            let expected = "I11: a step done is remembered in its incarnation alone";
            that(so, expected, event)?;
        }
        Ok(())
    }

    fn looked(&self) -> impl Iterator<Item = (usize, &Record)> {
        self.events.iter().filter_map(|event| {
            let What::Looked(record) = &event.what else {
                return None;
            };
            Some((event.round, record))
        })
    }
}
