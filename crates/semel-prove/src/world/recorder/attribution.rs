//! Which trial an exchange belongs to: it names a delivery of this trial, only others that came before, or nobody.

use crate::world::exchange::Exchange;
use std::collections::{BTreeMap, BTreeSet};

/// The ids by which deliveries are known.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryIds {
    /// What every id of this run begins with.
    pub(super) id_prefix: String,
    /// The deliveries of this trial.
    pub(super) own: BTreeSet<String>,
}

/// Which trial a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribution {
    ThisTrial,
    /// An earlier trial left it behind.
    EarlierTrial,
    Unnamed,
}

// === impl DeliveryIds ===

impl DeliveryIds {
    pub(super) fn attribute(&self, bytes: &[u8]) -> Attribution {
        let named = self.named(bytes);
        if named.iter().any(|name| self.own.contains(name)) {
            return Attribution::ThisTrial;
        }
        if named.is_empty() {
            Attribution::Unnamed
        } else {
            Attribution::EarlierTrial
        }
    }

    /// Every id of this run that these bytes contain.
    pub(super) fn named(&self, bytes: &[u8]) -> BTreeSet<String> {
        let prefix = self.id_prefix.as_bytes();
        if prefix.is_empty() {
            return BTreeSet::new();
        }
        let begins = bytes.windows(prefix.len()).enumerate();
        let begins = begins.filter(|(_, window)| *window == prefix);
        begins
            .map(|(at, _)| {
                let digits = bytes.iter().skip(at + prefix.len());
                let digits = digits.take_while(|byte| byte.is_ascii_digit());
                let number: String = digits.map(|byte| char::from(*byte)).collect();
                format!("{}{number}", self.id_prefix)
            })
            .collect()
    }

    /// The exchanges of this trial. What a connection says without a name goes with what it asked before, or asks next.
    pub(super) fn ours<'a>(&self, exchanges: &'a [Exchange]) -> Vec<&'a Exchange> {
        let asked = exchanges.iter().map(|it| (it.connection, self.asked(it)));
        let named = asked.filter(|(_, asked)| *asked != Attribution::Unnamed);
        // Each connection with what it asks first: of the same key, the last one stays.
        let mut attributed: BTreeMap<u64, Attribution> = named.rev().collect();
        let mut ours = Vec::new();
        for exchange in exchanges {
            let asked = self.asked(exchange);
            if asked != Attribution::Unnamed {
                attributed.insert(exchange.connection, asked);
            }
            let attribution = attributed.get(&exchange.connection);
            if attribution != Some(&Attribution::EarlierTrial) && !exchange.late {
                ours.push(exchange);
            }
        }
        ours
    }

    /// An answer may list anything; only questions tell.
    pub(super) fn asked(&self, exchange: &Exchange) -> Attribution {
        if exchange.is_request() {
            self.attribute(&exchange.bytes)
        } else {
            Attribution::Unnamed
        }
    }
}
