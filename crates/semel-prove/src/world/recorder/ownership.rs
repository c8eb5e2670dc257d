//! Whose a exchange is: it names a delivery of this trial, only others that came before, or nobody.

use crate::world::exchange::Exchange;
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

    /// The exchanges of this trial. What a connection says without a name goes with what it asked before, or asks next.
    pub(super) fn ours<'a>(&self, exchanges: &'a [Exchange]) -> Vec<&'a Exchange> {
        let asked: Vec<Whose> = exchanges
            .iter()
            .map(|exchange| self.asked(exchange))
            .collect();
        let mut before: BTreeMap<u64, Whose> = BTreeMap::new();
        let mut ours = Vec::new();
        for (at, exchange) in turns.iter().enumerate() {
            let said = asked.get(at).copied().unwrap_or(Whose::Nobodys);
            if said != Whose::Nobodys {
                before.insert(exchange.connection, said);
            }
            let next = || {
                let later = exchanges.iter().zip(&asked).skip(at);
                let mut later = later.filter(|(one, _)| one.connection == exchange.connection);
                later.find_map(|(_, whose)| (*whose != Whose::Nobodys).then_some(*whose))
            };
            let whose = before.get(&exchange.connection).copied().or_else(next);
            if whose != Some(Whose::Others) && !exchange.late {
                ours.push(exchange);
            }
        }
        ours
    }

    /// An answer may list anything; only questions tell.
    pub(super) fn asked(&self, exchange: &Exchange) -> Whose {
        if exchange.boundary.signature.outward {
            self.whose(&exchange.bytes)
        } else {
            Whose::Nobodys
        }
    }
}
