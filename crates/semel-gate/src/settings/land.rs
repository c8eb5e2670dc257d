//! What lands of a route's deliveries.

use std::time::Duration;

/// What lands of a route's deliveries. Where it lands is given to the gate beside its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandRule {
    /// What a row has.
    pub lands: Lands,
    /// Where the version of an event stands in its payload; without it, all have the same.
    pub version: Option<String>,
    /// How long after its arrival a delivery may land. What reads rows by their arrival must look back farther.
    pub within: Duration,
}

/// What a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lands {
    /// The delivery; no handler is called.
    Delivery,
    /// The delivery, and what the handler said to it.
    Answer,
}

/// How long after its arrival a delivery may land, unless told.
pub const LAND_WITHIN: Duration = Duration::from_secs(60);
