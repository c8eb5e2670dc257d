//! Statements broken on purpose, by triggers in the race's own database that spoil what the store writes.

use super::check::Rule;
use crate::harness::{Flaw, connect};

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The store's answers and calls.
    Store(Flaw),
    /// What PostgreSQL writes: redrive, release and resolve leave the fence as it was.
    OperatorKeepsTheFence,
    /// What PostgreSQL writes: a completion cuts retention short.
    RetentionShrinks,
    /// What PostgreSQL writes: what should be parked may be run again.
    DoubtIsNotParked,
}

const OPERATOR_KEEPS_THE_FENCE: &str =
    "IF NEW.owner = OLD.owner AND NEW.state <> 1 THEN NEW.fence := OLD.fence; END IF;";

const RETENTION_SHRINKS: &str =
    "IF NEW.state = 2 THEN NEW.expires_at := NEW.lease_until + interval '10 ms'; END IF;";

const DOUBT_IS_NOT_PARKED: &str =
    "IF NEW.state = 5 THEN NEW.state := 4; NEW.lease_until := clock_timestamp(); END IF;";

// === impl Sabotage ===

impl Sabotage {
    /// What only PostgreSQL can be made to do.
    pub const SQL: [Self; 3] = [
        Self::OperatorKeepsTheFence,
        Self::RetentionShrinks,
        Self::DoubtIsNotParked,
    ];

    /// The words for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store(flaw) => flaw.name(),
            Self::OperatorKeepsTheFence => "an operator's act keeps the fence",
            Self::RetentionShrinks => "a completion shortens retention",
            Self::DoubtIsNotParked => "doubt is not parked",
        }
    }

    /// The rules of which at least one must be seen broken.
    #[must_use]
    pub const fn breaks(self) -> &'static [Rule] {
        match self {
            Self::Store(Flaw::ClaimIgnoresTheLease) => &[Rule::OneLease, Rule::Accounted],
            Self::Store(Flaw::CompleteWithoutFence) => &[Rule::StaleChangesNothing],
            Self::Store(Flaw::SuccessDoesNotAbsorb) => &[Rule::OneEnd, Rule::Accounted],
            Self::OperatorKeepsTheFence => &[Rule::StaleChangesNothing, Rule::Accounted],
            Self::RetentionShrinks => &[Rule::RetentionHolds, Rule::OneEnd],
            Self::DoubtIsNotParked => &[Rule::StaleChangesNothing],
        }
    }

    /// What is wrong with the store, if it is the store.
    #[must_use]
    pub const fn flaw(self) -> Option<Flaw> {
        match self {
            Self::Store(flaw) => Some(flaw),
            Self::OperatorKeepsTheFence | Self::RetentionShrinks | Self::DoubtIsNotParked => None,
        }
    }

    /// Spoils the database, if it is to be.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn spoil(self, url: &str) -> anyhow::Result<()> {
        let what = match self {
            Self::Store(_) => return Ok(()),
            Self::OperatorKeepsTheFence => OPERATOR_KEEPS_THE_FENCE,
            Self::RetentionShrinks => RETENTION_SHRINKS,
            Self::DoubtIsNotParked => DOUBT_IS_NOT_PARKED,
        };
        let sql = format!(
            "CREATE FUNCTION race.spoil() RETURNS trigger LANGUAGE plpgsql AS \
             $f$ BEGIN {what} RETURN NEW; END $f$; \
             CREATE TRIGGER spoil BEFORE UPDATE ON semel.rec \
             FOR EACH ROW EXECUTE FUNCTION race.spoil();"
        );
        Ok(connect(url).await?.batch_execute(&sql).await?)
    }
}
