//! The history of every record, commit by commit, and what must hold between each two.

use super::caller::{Told, What};
use super::handler::EFFECT;
use super::tamper::{DECIDED_ON, OF};
use crate::harness::{self, Verdict};
use bytes::Bytes;
use semel::{Key, Outcome};
use semel_firestore::proto::Document;
use semel_firestore::proto::value::ValueType;
use std::collections::{BTreeMap, BTreeSet};

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// Every commit was decided on the version right before it.
    NothingBetween,
    /// Nobody takes a live lease or a settled record.
    LeaseHolds,
    /// Fences rise with every grant, and never fall.
    FencesRise,
    /// One fence is granted to one owner.
    OneOwner,
    /// What somebody was told is in the history, under their own fence.
    ToldIsTrue,
    /// Every effect is that of one recorded success of a handler, and each of those has its effect.
    EffectOnce,
}

/// One commit on a record.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) key: Key,
    at: u64,
    decided_on: Option<u64>,
    state: u64,
    fence: u64,
    owner: Bytes,
    lease_until: u64,
    expires_at: u64,
    result: Option<Bytes>,
    /// Its superseded attempts, encoded.
    history: Bytes,
    /// All of it: a commit that changes nothing is no new version.
    fields: String,
}

const RUNNING: u64 = 1;
const SUCCEEDED: u64 = 2;
const WAITING: u64 = 4;

/// Judges a history by what everybody was told, and by the effects that there are.
pub(super) fn check(
    mut changes: Vec<Change>,
    told: &[Told],
    effects: &BTreeSet<String>,
) -> Verdict<Rule> {
    let mut verdict = Verdict::default();
    changes.sort_by_key(|change| change.at);
    let mut by_key: BTreeMap<Key, Vec<Change>> = BTreeMap::new();
    for change in changes {
        by_key.entry(change.key).or_default().push(change);
    }
    for (number, changes) in by_key.values().enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let mut version = None;
        let mut last: Option<&Change> = None;
        for change in changes {
            if change.decided_on != version {
                let seen = format!("decided on {:?}, after {version:?}", change.decided_on);
                verdict.convict(Rule::NothingBetween, number, seen);
            }
            if let Some(last) = last {
                judge(&mut verdict, number, last, change);
            }
            if last.is_none_or(|last| last.fields != change.fields) {
                version = Some(change.at);
            }
            last = Some(change);
        }
    }
    judge_told(&mut verdict, &by_key, told);
    judge_effects(&mut verdict, &by_key, effects);
    verdict
}

fn judge(verdict: &mut Verdict<Rule>, number: u32, last: &Change, change: &Change) {
    let seen = || format!("{last:?} then {change:?}");
    let granted = change.state == RUNNING && change.owner != last.owner;
    let expired = last.expires_at <= change.at;
    let lapsed = last.state == RUNNING && last.lease_until <= change.at;
    if granted && !expired && !lapsed && last.state != WAITING {
        verdict.convict(Rule::LeaseHolds, number, seen());
    }
    if change.fence < last.fence || (granted && change.fence == last.fence) {
        verdict.convict(Rule::FencesRise, number, seen());
    }
}

fn judge_told(verdict: &mut Verdict<Rule>, changes: &BTreeMap<Key, Vec<Change>>, told: &[Told]) {
    let mut owners: BTreeMap<(Key, u64), [u8; 16]> = BTreeMap::new();
    for Told { key, fence, what } in told {
        let all = changes.get(key).map(Vec::as_slice).unwrap_or_default();
        let mut mine = all.iter().filter(|it| it.fence == fence.0);
        let so = match what {
            What::Granted(owner) => {
                let first = owners.entry((*key, fence.0)).or_insert(*owner);
                if first != owner {
                    verdict.convict(Rule::OneOwner, 0, format!("{key} {fence}"));
                }
                mine.any(|it| it.state == RUNNING && it.owner == owner.as_slice())
            }
            What::Completed(result) => {
                mine.any(|it| it.state == SUCCEEDED && it.result.as_ref() == Some(result))
            }
            What::Acted(act) => all.iter().map(|it| it.acts(act)).max() == Some(1),
            What::NotActed(act) => all.iter().all(|it| it.acts(act) == 0),
        };
        if !so {
            verdict.convict(Rule::ToldIsTrue, 0, format!("{key} {fence}: {what:?}"));
        }
    }
}

fn judge_effects(
    verdict: &mut Verdict<Rule>,
    changes: &BTreeMap<Key, Vec<Change>>,
    effects: &BTreeSet<String>,
) {
    let mut recorded = BTreeSet::new();
    for change in changes.values().flatten() {
        let Some(effect) = change.effect() else {
            continue;
        };
        if !effects.contains(&effect) {
            let seen = format!("{} {}: no effect", change.key, change.fence);
            verdict.convict(Rule::EffectOnce, 0, seen);
        }
        recorded.insert(effect);
    }
    for effect in effects.difference(&recorded) {
        let seen = format!("effect {effect}, and its run is not recorded");
        verdict.convict(Rule::EffectOnce, 0, seen);
    }
}

// === impl Change ===

impl Change {
    /// How often this act is in the history.
    fn acts(&self, act: &[u8]) -> usize {
        let all = self.history.windows(act.len());
        all.filter(|it| *it == act).count()
    }

    /// The id of the effect that a handler completed with.
    fn effect(&self) -> Option<String> {
        let result = self.result.clone().filter(|_| self.state == SUCCEEDED)?;
        let body = Outcome::decode(&result).ok()?.body_bytes();
        let text = str::from_utf8(&body).ok()?;
        text.strip_prefix(EFFECT).map(str::to_owned)
    }

    pub(super) fn read(document: &Document) -> Option<Self> {
        let get = |name: &str| document.fields.get(name)?.value_type.as_ref();
        let number = |name| {
            let Some(ValueType::IntegerValue(number)) = get(name) else {
                return None;
            };
            u64::try_from(*number).ok()
        };
        let bytes = |name| {
            let Some(ValueType::BytesValue(bytes)) = get(name) else {
                return None;
            };
            Some(bytes.clone())
        };
        let Some(ValueType::StringValue(of)) = get(OF) else {
            return None;
        };
        let mut decided_on = None;
        if let Some(ValueType::TimestampValue(version)) = get(DECIDED_ON) {
            decided_on = Some(micros(version));
        }
        let own = [OF, DECIDED_ON];
        let fields: BTreeMap<_, _> = document.fields.iter().collect();
        let fields = fields
            .into_iter()
            .filter(|(name, _)| !own.contains(&name.as_str()));
        Some(Self {
            key: of.rsplit('/').next()?.parse().ok()?,
            at: micros(document.create_time.as_ref()?),
            decided_on,
            state: number("state")?,
            fence: number("fence")?,
            owner: bytes("owner")?,
            lease_until: number("lease_until")?,
            expires_at: number("expires_at")?,
            result: bytes("result"),
            history: bytes("history").unwrap_or_default(),
            fields: format!("{:?}", fields.collect::<Vec<_>>()),
        })
    }
}

fn micros(time: &prost_types::Timestamp) -> u64 {
    u64::try_from(harness::micros(time)).unwrap_or(0)
}
