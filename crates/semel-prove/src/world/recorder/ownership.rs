//! Whose a turn is: it names a delivery of this trial, only others that came before, or nobody.

use crate::world::exchange::Turn;
use std::collections::{BTreeMap, BTreeSet};

/// The ids by which deliveries are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// What every id of this run begins with.
    pub(super) mark: String,
    /// The deliveries of this trial.
    pub(super) own: BTreeSet<String>,
}

/// Whose a piece of a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    /// An earlier trial left it behind.
    Others,
    Nobodys,
}

// === impl Names ===

impl Names {
    pub(super) fn whose(&self, bytes: &[u8]) -> Whose {
        let named = self.named(bytes);
        if named.iter().any(|name| self.own.contains(name)) {
            return Whose::Ours;
        }
        if named.is_empty() {
            Whose::Nobodys
        } else {
            Whose::Others
        }
    }

    /// Every id of this run that these bytes contain.
    pub(super) fn named(&self, bytes: &[u8]) -> BTreeSet<String> {
        let mark = self.mark.as_bytes();
        if mark.is_empty() {
            return BTreeSet::new();
        }
        let begins = bytes.windows(mark.len()).enumerate();
        let begins = begins.filter(|(_, window)| *window == mark);
        begins
            .map(|(at, _)| {
                let digits = bytes.iter().skip(at + mark.len());
                let digits = digits.take_while(|byte| byte.is_ascii_digit());
                let number: String = digits.map(|byte| char::from(*byte)).collect();
                format!("{}{number}", self.mark)
            })
            .collect()
    }

    /// The turns of this trial. What a connection says without a name goes with what it asked before, or asks next.
    pub(super) fn ours<'a>(&self, turns: &'a [Turn]) -> Vec<&'a Turn> {
        let asked: Vec<Whose> = turns.iter().map(|turn| self.asked(turn)).collect();
        let mut before: BTreeMap<u64, Whose> = BTreeMap::new();
        let mut ours = Vec::new();
        for (at, turn) in turns.iter().enumerate() {
            let said = asked.get(at).copied().unwrap_or(Whose::Nobodys);
            if said != Whose::Nobodys {
                before.insert(turn.connection, said);
            }
            let next = || {
                let later = turns.iter().zip(&asked).skip(at);
                let mut later = later.filter(|(one, _)| one.connection == turn.connection);
                later.find_map(|(_, whose)| (*whose != Whose::Nobodys).then_some(*whose))
            };
            let whose = before.get(&turn.connection).copied().or_else(next);
            if whose != Some(Whose::Others) && !turn.late {
                ours.push(turn);
            }
        }
        ours
    }

    /// An answer may list anything; only questions tell.
    pub(super) fn asked(&self, turn: &Turn) -> Whose {
        if turn.point.place.outward {
            self.whose(&turn.bytes)
        } else {
            Whose::Nobodys
        }
    }
}
